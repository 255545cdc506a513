-- wait.lua - give a mutex back and wait for a condition, then for the mutex; first ask, poll, confirmation and resend
--
-- uses:     condition
-- keys:     mutex hash, token string, queue zset, alive hash, mark string      see lock/acquire.lua
--           record string               with which mutex they wait: what `mine` says
--           waiting zset, calive hash    who waits for the condition, see queue.lua
--           moved zset                  who was signalled and did not confirm, see condition.lua
-- args:     mine text                   "<letters of its settings> <key of the mutex>"
--           old text                    id of the hold that is given back
--           lease_ms digits
--           levels number               how often it is to be held
--           channel text                Redisson's
-- flags:    robust shared
-- sent:     id deadline_us terms arrival again
-- verdicts: GRANTED GRANTED_OWNERDEAD token number
--           QUEUED arrival number, left_ms ms, place number      for the condition or for the mutex
--           GONE                        the hold was lost before
--           IMPOSSIBLE                  others wait for the condition with another mutex
--           LATE UNRECOVERABLE
-- reply:    lk__asked acquire/acquire.h
-- resend:   harmless: a waiter is found where it is; one that is nowhere counts as woken
local both = { mutex = mutex, token = token, queue = queue, alive = alive, mark = mark, record = record,
               waiting = waiting, calive = calive, moved = moved, mine = mine }

-- Wait for the condition: in its queue first, then the mutex is given back.
local function begin()
    local others = redis.call('EXISTS', waiting) == 1 and redis.call('GET', record)
    if others and not is_same(others, mine) then
        return answer(IMPOSSIBLE)
    end
    local number, place = enqueue(waiting, calive, id, 0, now, now_text, terms)
    keep_record(both)
    if robust then
        redis.call('DEL', mark)
    end
    redis.call('HDEL', mutex, old)
    leave(queue, alive, old, now)
    if not hand_to_first(both, nil, now, now_text, robust, shared) and redis.call('EXISTS', mutex) == 0 then
        publish(channel, '0')
    end
    return answer(QUEUED, number, NO_LEASE, place or redis.call('ZRANK', waiting, id) or 0)
end

local held_old = arrival == 0 and redis.call('HEXISTS', mutex, old) == 1
if held_old then
    return begin()
elseif arrival == 0 and not again then
    return answer(GONE)
end

local function confirm()
    redis.call('PEXPIRE', mutex, lease_ms)
    if levels > 1 then
        redis.call('HSET', mutex, id, levels)
    end
    redis.call('ZREM', moved, id)
    local told = robust and string.sub(redis.call('GET', mark) or '', -2) == ' 1'
    return answer(told and GRANTED_OWNERDEAD or GRANTED, known_token(token, now, now_text, shared))
end

if redis.call('HEXISTS', mutex, id) == 1 then
    return confirm()
end

if redis.call('ZSCORE', waiting, id) then
    local number = enqueue(waiting, calive, id, arrival, now, now_text, terms)
    keep_record(both)
    if pass_on(both, now) then
        hand_to_first(both, nil, now, now_text, robust, shared)
    end
    local place = redis.call('ZRANK', waiting, id)
    if place then
        return answer(QUEUED, number, NO_LEASE, place)
    elseif redis.call('HEXISTS', mutex, id) == 1 then
        return confirm()
    end
end

-- It was moved, or is nowhere: either way it is woken, and waits for the mutex.
local left = redis.call('PTTL', mutex)
if left == -2 and robust and redis.call('GET', mark) == 'unrecoverable' then
    leave(queue, alive, id, now)
    call_off(queue, CALLED_MAX - 1)
    return answer(UNRECOVERABLE)
end
local place = redis.call('ZSCORE', queue, id)
local number = enqueue(queue, alive, id, tonumber(place or '0'), now, now_text, terms)
note_heard(both, id, now, terms)
if left == -2 then
    if hand_to_first(both, id, now, now_text, robust, shared) == id then
        local died = robust and redis.call('GET', mark)
        grant(mutex, token, mark, id, lease_ms, now, now_text, died, robust, shared)
        leave(queue, alive, id, now)
        return confirm()
    end
    left = redis.call('PTTL', mutex)
end
return answer(QUEUED, number, left, redis.call('ZRANK', queue, id) or 0)
