-- info.lua - who runs it, for how long, or whose run completed
--
-- uses:     runner
-- keys:     run string, done hash       see begin.lua
-- verdicts: DONE FREE TAKEN token number, left_ms ms, runner text
-- resend:   harmless: reads only
local ended = redis.call('HMGET', done, 'result', 'token', 'id')
if ended[1] then
    return answer(DONE, tonumber(ended[2] or '') or 0, 0, ended[3] or '')
end
local runner, token = runner_in(redis.call('GET', run))
if runner then
    return answer(TAKEN, tonumber(token), redis.call('PTTL', run), runner)
end
return answer(FREE, 0, 0, '')
