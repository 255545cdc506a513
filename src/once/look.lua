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
end
return answer(TAKEN, left)
