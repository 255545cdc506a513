-- permit_release.lua - give leased permits back, give up waiting for them, or give back what was granted meanwhile
--
-- uses:     leased queue
-- keys:     permits zset, total string, queue zset, alive hash      see permit_take.lua
-- args:     kept number                 parts that are not given back
-- flags:    anonymous
-- sent:     id                          waiter's id, or the permit's own
-- verdicts: DONE
--           GONE ended number           1: its lease had ended
-- resend:   harmless: the parts are there once
local permit, n = permit_of(id)
local scores = redis.call('ZMSCORE', permits, permit, 'token')
local live, last = scores[1] and scores[1] * 1000 > now - now % 1000, scores[2] and -scores[2]
local line
if n == 1 and kept == 0 then -- most of all
    redis.call('ZREM', permits, permit)
    line = redis.call('ZRANGE', queue, '0', '1')
    if live and not line[1] then
        return brief(DONE)
    end
end

local all = tonumber(redis.call('GET', total) or '') or 0
if live and line and not anonymous and lend_first(permits, all, queue, alive, line, id, now, now_text, last) then
    return brief(DONE)
end
unlend(permits, permit, kept, n)
if redis.call('EXISTS', queue) == 1 then
    leave(queue, alive, id, now)
    lend_out(permits, queue, alive, nil, all, now, anonymous)
end
if live then
    return answer(DONE)
end
return answer(GONE, scores[1] and 1 or 0)
