-- begin.lua - begin the run of what is to be done once, unless it is done or somebody runs it
--
-- uses:     runner token
-- keys:     run string                  who runs it, with the lease, see runner.lua
--           done hash                   `result`, `id` and `token` of the run that completed; without an end
--           token string                the last fencing token
-- args:     lease_ms digits
-- sent:     id deadline_us
-- verdicts: GRANTED token number
--           BUSY left_ms ms
--           PRESENT LATE                PRESENT: it is done
-- reply:    lk__asked acquire/acquire.h
-- resend:   harmless: a runner finds its own run
if redis.call('HEXISTS', done, 'result') == 1 then
    return answer(PRESENT)
end
local text = redis.call('GET', run)
if not text then
    local fresh = next_token(token, now, now_text)
    redis.call('SET', run, id .. ' ' .. fresh, 'PX', lease_ms)
    return answer(GRANTED, tonumber(fresh))
end
local runner, granted = runner_in(text)
if runner == id then
    redis.call('PEXPIRE', run, lease_ms)
    return answer(GRANTED, tonumber(granted))
end
return answer(BUSY, redis.call('PTTL', run))
