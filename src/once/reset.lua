-- reset.lua - forget that it is done
--
-- keys:     done hash                   see begin.lua
-- sent:     deadline_us
-- verdicts: DONE ABSENT LATE
-- resend:   forgets the next run as well: not resent
if redis.call('HEXISTS', done, 'result') == 0 then
    return answer(ABSENT)
end
redis.call('HDEL', done, 'result')
redis.call('PEXPIRE', done, '60000') -- copies of the end of that run are still told that it completed
return answer(DONE)
