-- end.lua - a run is complete: it is done, for all
--
-- uses:     runner
-- keys:     run string, done hash       see begin.lua
-- args:     result text
--           channel text                messages for who waits
-- sent:     id
-- verdicts: DONE GONE                   GONE: it was not the runner
-- resend:   harmless: what is done tells by whom
local running = is_runner(run, id)
if redis.call('HGET', done, 'id') ~= id then
    if not running or redis.call('HEXISTS', done, 'result') == 1 then
        return answer(GONE)
    end
    local _, token = runner_in(redis.call('GET', run))
    redis.call('PEXPIRE', run, math.max(redis.call('PTTL', run), 1)) -- first: then a server out of memory allows the rest
    redis.call('DEL', done) -- what a reset left has an end
    redis.call('HSET', done, 'result', result, 'id', id, 'token', token)
end
if running then
    redis.call('DEL', run)
end
publish(channel, '0')
return answer(DONE)
