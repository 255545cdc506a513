-- permit_release.lua - give leased permits back, give up waiting for them, or give back what was granted meanwhile
--
-- uses:     leased queue
-- keys:     permits zset, total string, queue zset, seen zset      see permit_take.lua
-- args:     claim_ms ms                 lease of a claim
--           kept number                 parts that are not given back
-- flags:    anonymous
-- sent:     id                          waiter's id, or the permit's own
-- verdicts: DONE
--           GONE ended number           1: its lease had ended
-- resend:   harmless: the parts are there once
local permit, n = permit_of(id)
local live, ends = is_live(permits, permit, now)
local all = tonumber(redis.call('GET', total) or '') or 0
unlend(permits, permit, kept, n)
if redis.call('EXISTS', queue) == 1 then
    leave(queue, seen, id)
    lend_out(permits, queue, seen, nil, all, now, claim_ms, anonymous)
end
if live then
    return answer(DONE)
end
return answer(GONE, ends and 1 or 0)
