-- release_hold.lua - give a mutex back, and no more: who waits finds that it is free by asking, or by release.lua later
--
-- keys:     mutex hash                  this key alone, so that it works while a cluster moves it
-- args:     channel text                Redisson's
-- sent:     id keep_until_us            the id is finished from now on
-- instead:  release 2
-- verdicts: DONE GONE                   GONE: it was not the holder
-- resend:   harmless: a finished id is nowhere
local mine
if keep_until_us + 0 > now then
    mine = redis.call('HEXISTS', mutex, id)
    if mine == 1 then
        redis.call('PEXPIRE', mutex, math.ceil(keep_until_us / 1000) - math.floor(now / 1000)) -- as release.lua has it
        if redis.call('HEXISTS', mutex, id) == 1 then
            redis.call('HSET', mutex, id, '0')
        end
    end
else
    mine = redis.call('HDEL', mutex, id)
end
if mine == 0 then
    return answer(GONE)
end
publish(channel, '0')
return answer(DONE)
