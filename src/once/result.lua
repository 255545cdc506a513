-- result.lua - the result of the run that completed
--
-- keys:     done hash                   see begin.lua
-- verdicts: DONE result text
--           ABSENT
-- resend:   harmless: reads only
local result = redis.call('HGET', done, 'result')
if not result then
    return answer(ABSENT)
end
return answer(DONE, result)
