-- take.lua - take permits, or queue for them; first ask, poll, confirmation and resend are the same
--
-- uses:     counted number queue idempotent redisson rollback whole
-- keys:     name string                 free permits; no key: none
--           claims zset                 waiter's id -> until when it may confirm its grant, see counted.lua
--           queue zset, alive hash       the wait queue and its liveness, see queue.lua
--           once hash                   the idempotency record
--           total string                how many permits there are in all, see whole.lua
-- args:     initial number              permits to begin with, 0: leave that to others
--           channel text                Redisson's
-- flags:    try shared                  shared: with Redisson
--           tell_total
--           anonymous                   none is made
-- sent:     id deadline_us terms arrival tell_holder again settings       "<owner>:<number>:<n>", the first two as in the idempotency record
-- verdicts: GRANTED token number, total number?               1: there are no tokens
--           QUEUED arrival number, left_ms ms, place number, total number?, first text?, wants number?, since_ms ms?      left of the next claim, or of Java's turn
--           BUSY LATE
--           ABSENT                      deleted while it waited; or over
--           OVERTAKEN                   or given back
--           DISAGREES found text
-- reply:    lk__asked acquire/acquire.h
-- resend:   harmless: the idempotency record knows what was taken, the queue who waits
local owner, nth, n = taker_of(id)
local value = number_in(name)
local done, at = idempotent_answer(once, owner, nth)
local usual = value and not (done or tell_total) and idempotent_lasts(at, now)
if usual and arrival == 0 and value >= n and redis.call('EXISTS', claims, queue) == 0 and
    not (shared and redis.call('HEXISTS', alive, 'java') == 1) then -- most of all
    redis.call('DECRBY', name, n)
    local failed = idempotent_write(once, owner, nth, '1', now_text)
    if failed then
        redis.call('INCRBY', name, n)
        error(failed)
    end
    return brief(GRANTED, '1')
end

if usual and arrival ~= 0 and redis.call('ZSCORE', claims, id) then -- most of those that waited: confirmed by this
    redis.call('EXPIRE', once, IDEMPOTENT_LASTS) -- first: then a server out of memory allows the rest
    local failed = idempotent_write(once, owner, nth, '1', now_text) -- a waiter that gives up then finds one of the two
    if failed then
        error(failed)
    end
    local ended = redis.pcall('ZREM', claims, id)
    if type(ended) == 'table' then
        idempotent_write(once, owner, nth, '0', now_text) -- the claim ends, and the permits come back
        error(ended)
    end
    return brief(GRANTED, '1')
end

local ends = value and not done and value <= 0 and arrival == 0 and
    not (again or try or tell_holder or tell_total or shared) and redis.call('ZRANGE', claims, '0', '0', 'WITHSCORES')
if ends and (not ends[1] or ends[2] * 1000 > now) then -- most of those that have to wait: no claim has ended
    local left_ms = ends[1] and math.max(math.floor(ends[2]) - math.floor(now / 1000), 0) or -1
    local number, place = enqueue(queue, alive, id, 0, now, now_text, terms)
    return brief(QUEUED, digits_of(number, now, now_text), left_ms, place or 0)
end

if done == '1' then
    redis.call('EXPIRE', once, IDEMPOTENT_LASTS) -- written, for replicas to acknowledge that they have it
    return answer(GRANTED, 1)
elseif done then
    return answer(OVERTAKEN)
elseif value and redis.call('ZSCORE', claims, id) then -- granted meanwhile, and confirmed by this
    idempotent_record(once, owner, nth, 1, now) -- first: a waiter that gives up then finds one of the two
    do_or_undo(function()
        redis.call('ZREM', claims, id)
    end, function()
        idempotent_record(once, owner, nth, 0, now) -- the claim ends, and the permits come back
    end)
    return answer(GRANTED, 1)
elseif anonymous and not value or arrival ~= 0 and was_deleted(total, arrival, now) then
    return answer(ABSENT)
end

local back = 0
if value then
    back = reclaim(name, claims, now)
elseif initial > 0 then
    set_number(name, claims, total, initial)
end
value = (value or initial) + back
local all = tell_total and total_in(total, value) or nil
if try and value <= 0 then
    return answer(BUSY)
end

local turn = shared and value > 0 and javas_turn_left(alive, now) or 0
value = free_for_us(value, turn)
if value >= n and redis.call('EXISTS', queue) == 0 then
    take_recorded(name, n, once, owner, nth, 1, now)
    if arrival ~= 0 then
        leave(queue, alive, id, now)
    end
    if back > 0 then
        pass_on(name, claims, queue, alive, value - n, now, channel, shared)
    end
    return answer(GRANTED, 1, all)
elseif try then
    local free, _, blocked = hand_out(name, claims, queue, alive, nil, value, now)
    if not blocked and free >= n then
        take_recorded(name, n, once, owner, nth, 1, now)
        return answer(GRANTED, 1, all)
    end
    return answer(BUSY)
end

local number = enqueue(queue, alive, id, arrival, now, now_text, terms)
local _, got = hand_out(name, claims, queue, alive, id, value, now)
if got then
    take_recorded(name, n, once, owner, nth, 1, now)
    return answer(GRANTED, 1, all)
end
local left_ms, first = -1, redis.call('ZRANGE', claims, 0, 0, 'WITHSCORES')[2]
if first then
    left_ms = math.max(tonumber(first) - math.floor(now / 1000), 0)
end
if turn > 0 and (left_ms < 0 or turn < left_ms) then
    left_ms = turn -- then what is left to Java is free for all
end
local place = redis.call('ZRANK', queue, id) or 0
if tell_holder then
    local first, wants, since_ms = first_of(queue, now)
    return answer(QUEUED, number, left_ms, place, all or 0, first, wants, since_ms)
end
return answer(QUEUED, number, left_ms, place, all)
