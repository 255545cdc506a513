-- acquire.lua - take a mutex, or queue for it; first ask, poll and resend are the same
--
-- uses:     serve holder redisson
-- keys:     mutex hash                  owner id -> holds, in the layout of Redisson's RLock
--           token string                the last fencing token
--           queue zset, alive hash       the wait queue and its liveness, see queue.lua
--           mark string                 the robust mark, see grant.lua
-- args:     lease_ms digits
-- flags:    try fair robust shared      shared: with Redisson
-- sent:     id deadline_us terms arrival tell_holder again settings
-- verdicts: GRANTED GRANTED_OWNERDEAD token number
--           QUEUED arrival number, left_ms ms, place number, holder text?      left of the present lease
--           BUSY left_ms ms
--           LATE UNRECOVERABLE
--           DISAGREES found text
-- reply:    lk__asked acquire/acquire.h
-- resend:   harmless: an owner finds its own hold, a waiter its own place
local left = redis.call('PTTL', mutex)
if left == -2 and flags == '0' and arrival == 0 then -- most of all asks, so they meet nothing before this
    local fresh = next_token(token, now, now_text)
    own(mutex, nil, id, lease_ms)
    return brief(GRANTED, fresh)
end

local open = left == -2 and not (fair and redis.call('EXISTS', queue) == 1)
if open and arrival == 0 and not robust and not (shared and redis.call('HEXISTS', alive, 'java') == 1) then -- most others
    local fresh = next_token(token, now, now_text, shared)
    own(mutex, nil, id, lease_ms)
    return brief(GRANTED, fresh)
end

local usual = left >= 0 and left < 10 ^ 14 and arrival == 0
if usual and string.sub(terms, -1) == '0' and not (again or try or tell_holder) then -- most of those that have to wait
    local number, place = enqueue(queue, alive, id, 0, now, now_text, terms)
    return brief(QUEUED, digits_of(number, now, now_text), left, place or 0)
end

local died = left == -2 and robust and redis.call('GET', mark)

if left == -2 and shared then
    local turn = javas_turn_left(alive, now)
    if turn > 0 then
        left = turn -- as if held until then
    end
end
local dead = left == -2 and died == 'unrecoverable'

local number = arrival
local function take()
    local fresh = grant(mutex, token, mark, id, lease_ms, now, now_text, died, robust, shared)
    if number ~= 0 then
        leave(queue, alive, id, now)
    end
    return died and brief(GRANTED_OWNERDEAD, fresh) or brief(GRANTED, fresh)
end

if dead then
    leave(queue, alive, id, now)
    call_off(queue, CALLED_MAX - 1)
    return answer(UNRECOVERABLE)
elseif open and left == -2 then
    return take()
elseif left ~= -2 then
    local holds = redis.call('HGET', mutex, id)
    if holds == '0' then -- a late copy: it was given back, as release.lua has it
        return answer(BUSY, left)
    elseif holds then -- the message or reply with the grant got lost
        redis.call('PEXPIRE', mutex, lease_ms)
        local told = robust and string.sub(redis.call('GET', mark) or '', -2) == ' 1'
        return answer(told and GRANTED_OWNERDEAD or GRANTED, known_token(token, now, now_text, shared))
    elseif left == -1 and not is_mutex(mutex) then
        return no_mutex()
    elseif try then
        return answer(BUSY, left)
    end
end

if not try then
    number = enqueue(queue, alive, id, arrival, now, now_text, terms)
end
if left == -2 then -- fair and free, but others came before
    local first, shut = serve(mutex, token, queue, alive, mark, id, now, now_text, robust, shared)
    if first == id or (not first and try and not shut) then
        return take()
    end
    left = redis.call('PTTL', mutex)
end
if try then
    return answer(BUSY, left)
end
local place = redis.call('ZRANK', queue, id) or 0
if tell_holder then
    return answer(QUEUED, number, left, place, redis.call('HRANDFIELD', mutex) or '')
end
return answer(QUEUED, number, left, place)
