-- look.lua - is it done, or does somebody run it?
--
-- keys:     run string, done hash       see begin.lua
-- verdicts: DONE FREE
--           TAKEN left_ms ms            of the runner's lease
-- resend:   harmless: reads only
if redis.call('HEXISTS', done, 'result') == 1 then
    return answer(DONE)
end
local left = redis.call('PTTL', run)
if left == -2 then
    return answer(FREE)
elseif left == -1 then
    redis.call('GET', run) -- no run is without an end: of another type it is none, and the script ends here
end
return answer(TAKEN, left)
