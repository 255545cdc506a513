-- acquire.lua - take a mutex, or queue for it; first ask, poll and resend are the same
--
-- uses:     serve holder redisson
-- keys:     mutex hash                  owner id -> holds, in the layout of Redisson's RLock
--           token string                the last fencing token
--           queue zset, seen zset       the wait queue and its liveness, see queue.lua
--           mark string                 the robust mark, see grant.lua
-- args:     lease_ms digits
--           liveness_2048ths number     how long an ask counts as a sign of life, ms / 2048: see terms_of() of queue.lua
-- flags:    try fair robust shared      shared: with Redisson
-- sent:     id deadline_us arrival tell_holder unheard again settings
-- short:    flags 0, arrival 0, mark
-- verdicts: GRANTED GRANTED_OWNERDEAD token number
--           QUEUED arrival number, left_ms ms, place number, holder text?      left of the present lease; see place_of()
--           BUSY left_ms ms
--           LATE UNRECOVERABLE
--           DISAGREES found text
-- reply:    lk__asked acquire/acquire.h
-- resend:   harmless: an owner finds its own hold, a waiter its own place
local left = redis.call('PTTL', mutex)
if left == -2 and short then -- most of all asks, so they meet nothing before this
    return answer(GRANTED, (grant(mutex, token, nil, id, lease_ms, now, now_text)))
end

if left >= 0 and arrival == 0 and not (again or try or tell_holder or unheard) then -- most of those that have to wait
    local number, place = enqueue(queue, seen, id, 0, now, now_text, liveness_2048ths / 2048)
    return answer(QUEUED, number, left, place or 0)
end

local died = left == -2 and robust and redis.call('GET', mark)
local open = left == -2 and not (fair and redis.call('EXISTS', queue) == 1)

if left == -2 and shared then
    local turn = javas_turn_left(seen, now)
    if turn > 0 then
        left = turn -- as if held until then
    end
end
local dead = left == -2 and died == 'unrecoverable'

local function take()
    local fresh = grant(mutex, token, mark, id, lease_ms, now, now_text, died, robust, shared)
    if arrival ~= 0 then
        leave(queue, seen, id)
    end
    return answer(died and GRANTED_OWNERDEAD or GRANTED, fresh)
end

if dead then
    leave(queue, seen, id)
    return answer(UNRECOVERABLE)
elseif open and left == -2 then
    return take()
elseif left ~= -2 then
    if redis.call('HEXISTS', mutex, id) == 1 then -- the message or reply with the grant got lost
        redis.call('PEXPIRE', mutex, lease_ms)
        end_turn(seen, now, TURN_MS, unheard)
        local told = robust and string.sub(redis.call('GET', mark) or '', -2) == ' 1'
        return answer(told and GRANTED_OWNERDEAD or GRANTED, last_token(token))
    elseif left == -1 and not is_mutex(mutex) then
        return no_mutex()
    elseif try then
        return answer(BUSY, left)
    end
end

if not try then
    arrival = enqueue(queue, seen, id, arrival, now, now_text, liveness_2048ths / 2048 + unheard_by(unheard))
end
if left == -2 then -- fair and free, but others came before
    local first = serve(mutex, token, queue, seen, mark, id, now, now_text, robust, shared)
    if first == id or (not first and try) then
        return take()
    end
    left = redis.call('PTTL', mutex)
end
if try then
    return answer(BUSY, left)
end
local place = place_of(queue, seen, id, now, unheard)
if tell_holder then
    return answer(QUEUED, arrival, left, place, redis.call('HRANDFIELD', mutex) or '')
end
return answer(QUEUED, arrival, left, place)
