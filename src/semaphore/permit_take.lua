-- permit_take.lua - take leased permits, or queue for them; first ask, poll and resend are the same
--
-- uses:     leased number queue
-- keys:     permits zset                permit -> when it ends, see leased.lua
--           total string                how many there are
--           queue zset, alive hash       the wait queue and its liveness, see queue.lua
-- args:     lease_ms digits
--           initial number              total to begin with, 0: leave that to others
-- flags:    try tell_total anonymous
-- sent:     id deadline_us terms arrival tell_holder again settings
-- verdicts: GRANTED token number, total number?
--           QUEUED arrival number, left_ms ms, place number, total number?, first text?, wants number?, since_ms ms?
--           BUSY left_ms ms             until the next permit ends, as above
--           LATE
--           ABSENT                      deleted while it waited; or over
--           IMPOSSIBLE                  it wants more than there are in all
--           OVERTAKEN                   its owner has some of them, and gave the others back
--           DISAGREES found text
-- reply:    lk__asked acquire/acquire.h
-- resend:   harmless: an owner finds its own permit, and gets no part of it again; a waiter its own place
local permit, n = permit_of(id)
local all = number_in(total)
local scores = redis.call('ZMSCORE', permits, permit, 'token', 'deleted')
local last, alone = scores[2] and -scores[2], redis.call('EXISTS', queue) == 0
local first_ask = arrival == 0 and all and n <= all and not scores[1]
local free = first_ask and free_permits(permits, all, now)
if first_ask and n == 1 and alone and free >= 1 and not anonymous and lasts_for(lease_ms, last, now) then -- most of all
    local token = lend_one(permits, permit, lease_ms, now, now_text, last)
    return tell_total and brief(GRANTED, token, all) or brief(GRANTED, token)
end

local function until_next_end()
    local first = redis.call('ZRANGEBYSCORE', permits, '(' .. math.floor(now / 1000), '+inf', 'WITHSCORES', 'LIMIT', '0',
        '1')[2]
    return first and first - math.floor(now / 1000) or -1
end

if first_ask and free <= 0 and not (again or try or tell_holder or tell_total) then -- most who wait
    local known
    if alone then
        known = false
    end
    local number, place = enqueue(queue, alive, id, 0, now, now_text, terms, known)
    return brief(QUEUED, digits_of(number, now, now_text), until_next_end(), place or 0)
end

local live = tonumber(scores[1] or '0') > math.floor(now / 1000)
if arrival ~= 0 and not live and scores[3] then -- in the time of the deleted semaphore
    local deleted = -tonumber(scores[3])
    if arrival <= deleted and deleted <= now then
        return answer(ABSENT)
    end
end
if anonymous and not all then
    return answer(ABSENT)
elseif not live and not all then
    all = initial
    if initial > 0 then
        redis.call('SET', total, initial)
    end
end
local open = not live and n <= all and alone and (free or free_permits(permits, all, now)) >= n
local told = tell_total and all or nil
if open and arrival == 0 then
    local token = lend(permits, permit, n, lease_ms, now, last, anonymous)
    return answer(GRANTED, token, told)
end

local function take()
    local token = lend(permits, permit, n, lease_ms, now, last_permit_token(permits), anonymous)
    return answer(GRANTED, token, told)
end

if open then
    leave(queue, alive, id, now)
    return take()
elseif live then -- the message or reply with the grant got lost, or this is a late copy
    if not is_live(permits, part(permit, n), now) then -- the last part is the first that is given back
        return answer(OVERTAKEN)
    end
    renew_parts(permits, permit, n, lease_ms, now)
    local token = token_after(last, now) -- the one that got lost with the grant may be another's by now, or unknown
    redis.call('ZADD', permits, negative(token), 'token')
    return answer(GRANTED, token, told)
elseif n > all and all > 0 then
    leave(queue, alive, id, now)
    lend_out(permits, queue, alive, nil, all, now, anonymous) -- it may have been told to go on
    return answer(IMPOSSIBLE)
elseif try then
    local free, _, blocked = lend_out(permits, queue, alive, nil, all, now, anonymous)
    if not blocked and free >= n then
        return take()
    end
    return answer(BUSY, until_next_end())
end

local number = enqueue(queue, alive, id, arrival, now, now_text, terms)
local _, got = lend_out(permits, queue, alive, id, all, now, anonymous)
if got then
    return take()
end
local place = redis.call('ZRANK', queue, id) or 0
if tell_holder then
    local first, wants, since_ms = first_of(queue, now)
    return answer(QUEUED, number, until_next_end(), place, told or 0, first, wants, since_ms)
end
return answer(QUEUED, number, until_next_end(), place, told)
