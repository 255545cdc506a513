-- acquire.lua - take a read-write lock, or queue for it; first ask, poll and resend are the same
--
-- uses:     admit holders queue token
-- keys:     holders zset                owner id -> end of its lease: who holds it
--           token string                the last fencing token
--           queue zset, alive hash       the wait queue and its liveness, see queue.lua
--           mark string                 the robust mark, see holders.lua
-- args:     lease_ms digits
-- flags:    try robust shared           shared: its token, with Redisson
--           readers_first writers_first phase_fair
-- sent:     id deadline_us terms arrival tell_holder again settings      the id ends in the mode, :r or :w
-- short:    flags 0, arrival 0, mark
-- verdicts: GRANTED GRANTED_OWNERDEAD token number
--           QUEUED arrival number, left_ms ms, place number, holder text?      left of the present leases
--           BEHIND arrival number, left_ms ms, ours text      see place_of_ours()
--           BUSY left_ms ms
--           LATE UNRECOVERABLE FULL
--           DISAGREES found text
-- reply:    lk__asked acquire/acquire.h
-- resend:   harmless: an owner finds its own hold, a waiter its own place
local there = redis.call('EXISTS', holders, queue)
if there == 0 and arrival == 0 and not robust then -- most of all asks, so they meet nothing before this
    local fresh = is_writer(id) and next_token(token, now, now_text, shared) or READERS_TOKEN
    put(holders, id, lease_ms, now)
    return brief(GRANTED, fresh)
end

local first = redis.call('ZRANGE', holders, '0', '0', 'WITHSCORES')
local left = first[1] and first[2] - math.floor(now / 1000) or 0
local fresh_waiter = left > 0 and arrival == 0 and not (again or try or tell_holder)
local usual = fresh_waiter and not (robust or readers_first or writers_first)
local writing, writes = usual and is_writer(first[1]), usual and is_writer(id)
if usual and there == 1 and not (writing or writes) then -- readers have it, and nobody waits
    if redis.call('ZCARD', holders) >= READERS_MAX then
        return answer(FULL)
    end
    put(holders, id, lease_ms, now, true)
    return brief(GRANTED, READERS_TOKEN)
end

if there == 2 and usual and not writes then
    local before, ours
    if phase_fair and not writing then
        before, ours = place_behind_writer(queue, id)
    else
        before, ours = place_of_ours(queue, id, phase_fair)
    end
    if ours then
        return answer(BEHIND, before, writing and left or left_ms(holders, now), ours)
    end
end

if writing or writes then -- most of those that have to wait: nobody behind them could come in
    local known, number, place
    if there == 1 then
        known = false
    end
    if phase_fair and not writes then
        number = stand_in_front(queue, alive, id, now, now_text, terms, there == 1)
        place = there == 2 and redis.call('ZRANK', queue, id)
    else
        number, place = enqueue(queue, alive, id, 0, now, now_text, terms, known)
    end
    return brief(QUEUED, digits_of(number, now, now_text), writing and left or left_ms(holders, now), place or 0)
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
local lock = { holders = holders, token = token, queue = queue, alive = alive, mark = mark, lease_ms = lease_ms,
    now_text = now_text, robust = robust, shared = shared, tries = try,
    prefer = readers_first and 'r' or writers_first and 'w' or 'rw',
    front = (readers_first or phase_fair) and 'r' or writers_first and 'w' }

local function held(fresh, died)
    if arrival ~= 0 then
        leave(queue, alive, id, now)
    end
    return died == 1 and brief(GRANTED_OWNERDEAD, fresh) or brief(GRANTED, fresh)
end

if open then
    return held(grant(lock, id, lease_ms, now))
elseif dead then
    leave(queue, alive, id, now)
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

local no_writer = not (first[1] and is_writer(first[1]))
if phase_fair and no_writer and arrival == 0 and not (alone or try or is_writer(id)) and
    not put_writer_in_front(queue, alive, now) then
    lock.front = nil
end
local number, ours
if fresh_waiter and not (alone or is_writer(id)) then
    number, ours = place_of_ours(queue, id, lock.front == 'r')
end
if not (try or ours) then
    arrival = line_up(lock, id, arrival, now, terms, alone)
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
end
if ours then
    return answer(BEHIND, number, left, ours)
end
local place = redis.call('ZRANK', queue, id) or 0
if tell_holder then
    return answer(QUEUED, arrival, left, place, look(holders, now) or '')
end
return answer(QUEUED, arrival, left, place)
