-- acquire.lua - take a read-write lock, or queue for it; first ask, poll and resend are the same
--
-- uses:     admit holders queue token
-- keys:     holders zset                owner id -> end of its lease: who holds it
--           token string                the last fencing token
--           queue zset, seen zset       the wait queue and its liveness, see queue.lua
--           mark string                 the robust mark, see holders.lua
-- args:     lease_ms ms
--           liveness_2048ths number     how long an ask counts as a sign of life, ms / 2048: see terms_of() of queue.lua
--           claim_ms ms                 lease of a claim
-- flags:    try robust shared           shared: its token, with Redisson
--           readers_first writers_first
-- sent:     id deadline_us arrival tell_holder unheard settings      the id ends in the mode, :r or :w
-- verdicts: GRANTED GRANTED_OWNERDEAD token number
--           QUEUED arrival number, left_ms ms, place number, holder text?      left of the present leases; see place_of()
--           BUSY left_ms ms
--           LATE UNRECOVERABLE FULL
--           DISAGREES found text
-- reply:    lk__asked acquire/acquire.h
-- resend:   harmless: an owner finds its own hold, a waiter its own place
local holder = look(holders, now)
local mine = holder and held_as(holders, id)
local dead = robust and not mine and redis.call('GET', mark) == 'unrecoverable'
local alone = redis.call('EXISTS', queue) == 0
local open = alone and not mine and not dead and (not holder or not is_writer(id) and not is_writer(holder))
if open and holder and redis.call('ZCARD', holders) >= READERS_MAX then
    return answer(FULL)
end
local lock = { holders = holders, token = token, queue = queue, seen = seen, mark = mark, claim_ms = claim_ms,
    robust = robust, shared = shared, now_text = now_text, tries = try, prefer = readers_first and 'r' or writers_first and 'w' or 'rw' }
if open and arrival == 0 then
    local fresh, died = grant(lock, id, lease_ms, now)
    return answer(died == 1 and GRANTED_OWNERDEAD or GRANTED, fresh)
end

local function held(fresh, died)
    if arrival ~= 0 then
        leave(queue, seen, id)
    end
    return answer(died == 1 and GRANTED_OWNERDEAD or GRANTED, fresh)
end

if open then
    return held(grant(lock, id, lease_ms, now))
elseif dead then
    leave(queue, seen, id)
    return answer(UNRECOVERABLE)
elseif mine then -- the message or reply with the grant got lost, and its token with it: issue another
    end_turn(seen, now, SHARED_TURN_MS, unheard)
    outlast(holders, lease_ms, now)
    put(holders, mine, lease_ms, now)
    if not is_writer(mine) then
        return held(readers_token(token), died_before(lock))
    end
    local died = robust and string.sub(redis.call('GET', mark) or '', -2) == ' 1' and 1 or 0
    local fresh = next_token(token, now, now_text, shared)
    write_mark(lock, mine, fresh, died)
    return held(fresh, died)
end

if not try then
    arrival = line_up(lock, id, arrival, now, liveness_2048ths / 2048 + unheard_by(unheard), alone)
end
if not alone then
    local fresh, died = let_in(lock, id, now)
    if fresh then
        put(holders, id, lease_ms, now)
        return held(fresh, died)
    end
end
local left = left_ms(holders, now)
if try then
    return answer(BUSY, left)
end
local place = place_of(queue, seen, id, now, unheard)
if tell_holder then
    return answer(QUEUED, arrival, left, place, look(holders, now) or '')
end
return answer(QUEUED, arrival, left, place)
