-- acquire.lua - take a read-write lock, or queue for it; first ask, poll and resend are the same
--
-- uses:     admit holders queue token
-- keys:     holders zset                owner id -> end of its lease: who holds it
--           token string                the last fencing token
--           readers zset, writers zset   the wait queues, see admit.lua ...
--           alive hash                   ... and their liveness, see queue.lua
--           mark string                 the robust mark, see holders.lua
-- args:     lease_ms digits
-- flags:    try robust shared           shared: its token, with Redisson
--           readers_first writers_first phase_fair
-- sent:     id deadline_us terms arrival tell_holder again settings      the id ends in the mode, :r or :w
-- verdicts: GRANTED GRANTED_OWNERDEAD token number
--           QUEUED arrival number, left_ms ms, place number, holder text?      left of the present leases
--           BEHIND arrival number, left_ms ms, ours text      see line_up()
--           BUSY left_ms ms
--           LATE UNRECOVERABLE FULL
--           DISAGREES found text
-- reply:    lk__asked acquire/acquire.h
-- resend:   harmless: an owner finds its own hold, a waiter its own place
local there = redis.call('EXISTS', holders, readers, writers)
if there == 0 and arrival == 0 and not robust then -- most of all asks, so they meet nothing before this
    local fresh = is_writer(id) and next_token(token, now, now_text, shared) or READERS_TOKEN
    put(holders, id, lease_ms, now)
    return brief(GRANTED, fresh)
end

local first = redis.call('ZRANGE', holders, '0', '0', 'WITHSCORES')
local left = first[1] and first[2] - math.floor(now / 1000) or 0
local fresh_waiter = left > 0 and arrival == 0 and not (again or try or tell_holder)
if fresh_waiter and there == 1 and not (robust or is_writer(id) or is_writer(first[1])) then
    if redis.call('ZCARD', holders) >= READERS_MAX then
        return answer(FULL)
    end
    put(holders, id, lease_ms, now, true) -- others read, and nobody waits
    return brief(GRANTED, READERS_TOKEN)
end

local lock = { holders = holders, token = token, readers = readers, writers = writers, alive = alive, mark = mark,
    lease_ms = lease_ms, now_text = now_text, robust = robust, shared = shared, tries = try,
    order = readers_first and 'reader' or writers_first and 'writer' or phase_fair and 'phase' or 'fair' }
local queue, other = queues_of(lock, id)
local shares, number, ours = fresh_waiter and not is_writer(id), arrival, nil
if fresh_waiter and not robust and (is_writer(id) or is_writer(first[1])) then -- it could not come in
    number, ours = line_up(lock, id, 0, now, terms, there == 1, shares)
    left = is_writer(first[1]) and left or left_ms(holders, now)
    if ours then
        return answer(BEHIND, number, left, ours)
    elseif phase_fair and not is_writer(first[1]) then
        end_turn_of_readers(lock)
    end
    return brief(QUEUED, digits_of(number, now, now_text), left, there > 1 and redis.call('ZRANK', queue, id) or 0)
end

local alone = there == (first[1] and 1 or 0)
local holder = first[1]
if holder and left <= 0 then
    holder = look(holders, now)
end
local mine = holder and held_as(holders, id)
local dead = robust and not mine and redis.call('GET', mark) == 'unrecoverable'
local open = alone and not mine and not dead and (not holder or not is_writer(id) and not is_writer(holder))
if open and holder and redis.call('ZCARD', holders) >= READERS_MAX then
    return answer(FULL)
end

local function held(fresh, died)
    if number ~= 0 then
        leave(queue, alive, id, now, other)
    end
    return died == 1 and brief(GRANTED_OWNERDEAD, fresh) or brief(GRANTED, fresh)
end

if open then
    return held(grant(lock, id, lease_ms, now))
elseif dead then
    leave(queue, alive, id, now, other)
    call_off(queue, CALLED_MAX - 1)
    return answer(UNRECOVERABLE)
elseif mine then -- the message or reply with the grant got lost, and its token with it: issue another
    outlast(holders, lease_ms, now)
    put(holders, mine, lease_ms, now)
    if not is_writer(mine) then
        return held(READERS_TOKEN, died_before(lock))
    end
    local died = robust and string.sub(redis.call('GET', mark) or '', -2) == ' 1' and 1 or 0
    local fresh = next_token(token, now, now_text, shared)
    write_mark(lock, mine, fresh, died)
    return held(fresh, died)
end

if not try then
    number, ours = line_up(lock, id, arrival, now, terms, alone, shares)
end
if not alone then
    local fresh, died = let_in(lock, id, now)
    if fresh then
        return held(fresh, died)
    end
end
left = left_ms(holders, now)
if try then
    return answer(BUSY, left)
elseif ours then
    return answer(BEHIND, number, left, ours)
end
local place = redis.call('ZRANK', queue, id) or 0
if tell_holder then
    return answer(QUEUED, number, left, place, look(holders, now) or '')
end
return answer(QUEUED, number, left, place)
