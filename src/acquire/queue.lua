-- queue.lua - the wait queue that all primitives share: order of arrival, liveness, hand-over
-- uses:     rollback
--
-- queue  sorted set, waiter's owner id -> arrival: max(last + 1, server microseconds)
-- seen   sorted set, waiter's owner id -> server milliseconds until which it counts as alive. What the waiter's client
--        asks for is in the fraction, in 2048ths: 128 x its liveness, 2 x the claims it wants, see terms_of(), and
--        1 if it hears no message.
--        Notes have scores below 0, so that they count as no waiter's: client id -> likewise, for the moment at which
--        the client was granted its last claim
--
-- State first, message last and by pcall: every prefix of a script leaves a legal state.

-- A client is the first part of its waiters' ids.
local function client_of(id)
    return string.sub(id, 1, 32)
end

-- Take `id` out of the queue, and with it the note of its client: leaving is a sign of life.
local function leave(queue, seen, id)
    redis.call('ZREM', queue, id)
    redis.call('ZREM', seen, id, client_of(id))
end

-- Evict waiters that were silent for too long, 32 at a time.
local function evict_silent(queue, seen, now)
    local silent = redis.call('ZRANGEBYSCORE', seen, 0, math.floor(now / 1000), 'LIMIT', 0, 32)
    if #silent > 0 then
        redis.call('ZREM', queue, unpack(silent))
        redis.call('ZREM', seen, unpack(silent))
        local notes = redis.call('ZRANGEBYSCORE', seen, -math.floor(now / 1000), '(0', 'LIMIT', 0, 32)
        if #notes > 0 then -- notes of times before every sign of life that is left
            redis.call('ZREM', seen, unpack(notes))
        end
    end
end

-- A waiter asks again before 0.4 of its liveness is over, and each but the first of its asks sets the ends of both keys
-- anew. Where waiters come and go so fast that none asks twice, those do who come in one part in five of the time: half of
-- a liveness, in which somebody comes or asks. So at least a liveness is left whenever somebody asks.
local LASTS, PERIOD_US, PART_US, LEAST_LIVENESS_MS = 4, 12500000, 2500000, 5000

local function sets_ends(now, liveness_ms)
    return now % PERIOD_US < PART_US or liveness_ms >= LEAST_LIVENESS_MS + 1
end

-- The clock went back: a newcomer stands behind all others all the same. Returns its number.
local function go_last(queue, id)
    local arrival = redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2] + 1
    redis.call('ZADD', queue, string.format('%.0f', arrival), id)
    return arrival
end

-- The number of a newcomer nearly always is the time.
local function digits_of(arrival, now, now_text)
    return arrival == now and now_text or string.format('%.0f', arrival)
end

-- Take or keep a place; a waiter that brings its arrival number regains its place after it was evicted or lost. The
-- fraction of liveness_ms says what its client asks for. `known`: nil, or for a new place that comes with its number,
-- whether others have one. Returns the number, and of a newcomer how many are before it.
local function enqueue(queue, seen, id, arrival, now, now_text, liveness_ms, known)
    local others, lasts_ms, place = nil, LASTS * math.floor(liveness_ms), nil
    if known ~= nil then
        others = known and 1 or 0
    elseif arrival == 0 then
        others = redis.call('ZCARD', queue)
    end
    local sets = others == 0 or not others or sets_ends(now, liveness_ms)
    redis.call('ZADD', seen, math.floor(now / 1000) + liveness_ms, id) -- first: a member that is in no queue is evicted
    if sets then
        lengthen_or_drop(seen, lasts_ms, others == 0)
    end
    local score = arrival == 0 and now_text or string.format('%.0f', arrival)
    local added = redis.call('ZADD', queue, 'NX', score, id) == 1
    if sets then
        lengthen_or_drop(queue, lasts_ms, others == 0)
    end
    if others and not added then
        arrival = tonumber(redis.call('ZSCORE', queue, id)) -- a copy of the first ask
    elseif arrival == 0 then
        arrival, place = now, others > 0 and redis.call('ZRANK', queue, id) or 0
        if place < others then
            arrival, place = go_last(queue, id), others
        end
    end
    if sets and others ~= 0 then
        evict_silent(queue, seen, now)
    end
    return arrival, place
end

local function tell(id, words)
    local heard = publish('latchkey:client:' .. string.sub(id, 1, 32) .. shard(), words)
    return type(heard) == 'number' and heard > 0
end

-- Some waiters hear no message: their client may not subscribe, or is not subscribed yet. They stand in the same queue under
-- the same rules. Near the front they ask again before such a claim ends, and so find it.
local QUIET_CLAIM_MS = 300

-- Of a sign of life, or of liveness_ms as it comes with an ask.
local function is_unheard(sign)
    return sign % 1 * 2048 % 2 == 1
end

local CLAIM_MS = 3000 -- the default of a claim: with it the sign of life is a whole number, which is cheaper

-- What a sign of life says: liveness, ms, and how long a claim has to last.
local function terms_of(sign)
    local code = sign % 1 * 2048
    if code == 0 then
        return LEAST_LIVENESS_MS, CLAIM_MS
    end
    local claim = math.floor(code % 128 / 2)
    local claim_ms = math.floor((4 + claim % 4) * 2 ^ math.floor(claim / 4) * 15.625)
    claim_ms = claim > 0 and claim_ms or CLAIM_MS
    return 5000 * 2 ^ math.floor(code / 128), is_unheard(sign) and math.min(claim_ms, QUIET_CLAIM_MS) or claim_ms
end

-- When a sign of life was given, or the claim granted that a note is of, ms.
local function moment_of(sign)
    return math.floor(sign) - terms_of(sign)
end

-- The signs of life of these waiters, followed by those of their clients, in the same order.
local function signs_of(seen, batch)
    local members = {}
    for i, id in ipairs(batch) do
        members[i], members[#batch + i] = id, client_of(id)
    end
    return #batch > 0 and redis.call('ZMSCORE', seen, unpack(members)) or {}
end

local EVICTED_MAX = 128 -- by one script: others wait while it runs

-- The next `size` waiters after the first `at`, with the signs of life of them and of their clients. Waiters that were
-- silent for too long are evicted first; where all were, with their keys. Returns nil if there are more of them than this
-- script may evict, which `evicted` of the round counts.
local function next_batch(round, queue, seen, at, size, now)
    while true do
        local batch, gone = redis.call('ZRANGE', queue, at, at + size - 1), {}
        local signs = signs_of(seen, batch)
        for i, id in ipairs(batch) do
            if (tonumber(signs[i] or '') or 0) <= now / 1000 then
                gone[#gone + 1] = id
            end
        end
        if #gone == 0 then
            return batch, signs
        elseif (round.evicted or 0) >= EVICTED_MAX then
            local last = redis.call('ZRANGE', seen, -1, -1, 'WITHSCORES')
            if tonumber(last[2] or '0') > now / 1000 then
                return nil
            end
            redis.call('DEL', queue, seen)
            return {}, {}
        end
        redis.call('ZREM', queue, unpack(gone))
        redis.call('ZREM', seen, unpack(gone))
        round.evicted = (round.evicted or 0) + #gone
    end
end

-- Nobody lives but this waiter: with all others go both keys, and it regains its place.
local function evict_others(queue, seen, last, now)
    local place, sign = redis.call('ZSCORE', queue, last), redis.call('ZSCORE', seen, last)
    if not place or redis.call('ZCOUNT', seen, '(' .. math.floor(now / 1000), '+inf') ~= 1 then
        return
    end
    local lasts_ms = LASTS * terms_of(tonumber(sign))
    redis.call('DEL', queue, seen)
    redis.call('ZADD', seen, sign, last)
    lengthen_or_drop(seen, lasts_ms, true)
    redis.call('ZADD', queue, place, last)
    lengthen_or_drop(queue, lasts_ms, true)
end

-- More waiters are dead than this script may evict: whoever was heard of last is told to ask, and its ask goes on. Returns
-- false where that waiter does not listen, as a newcomer; then this script goes on.
local function leave_the_rest(round, queue, seen, now)
    local last = redis.call('ZRANGE', seen, -1, -1)[1]
    if tell(last, 'F ' .. last) then
        return true
    end
    round.evicted = -math.huge
    evict_others(queue, seen, last, now)
    return false
end

-- How long a claim of waiter i of a batch has to last; nil when the waiter gets none: it was silent for half of its
-- liveness while a live one asks, or its client let a claim end and was not heard since, by this waiter or another.
-- ended(client, since_ms)  nil, or: did a hold of that client, granted then or later, end by itself?
local function claim_for(batch, signs, i, now, ended)
    local now_ms, sign, last = math.floor(now / 1000), tonumber(signs[i]), -(tonumber(signs[#batch + i] or '') or 0)
    local liveness_ms, claim_ms = terms_of(sign)
    if now_ms > sign - liveness_ms / 2 then
        return nil
    elseif last > 0 and moment_of(sign) <= moment_of(last) and now_ms >= moment_of(last) + claim_ms and
        (not ended or ended(client_of(batch[i]), moment_of(last))) then
        return nil
    end
    return claim_ms
end

-- What a note says of a claim that is granted now to a waiter with this sign of life: it has the same terms.
local function note_of(sign, now)
    return -math.floor(now / 1000) - terms_of(sign) - sign % 1
end

-- Waiter i of a batch got a claim. If others of its client may be waiting, note when.
local function note_claim(seen, batch, signs, i, size, now, noted)
    local client, others = client_of(batch[i]), #batch == size
    for k = i + 1, #batch do
        others = others or client_of(batch[k]) == client
    end
    if others and not noted[client] then
        noted[client] = true
        redis.call('ZADD', seen, note_of(tonumber(signs[i]), now), client)
    end
end

local function leave_granted(queue, seen, id)
    redis.call('ZREM', queue, id)
    redis.call('ZREM', seen, id)
end

-- Offer what is free to a waiter. Returns true: the waiter has it, and was told or will find it · false: the waiter is passed
-- over · nil: take() returned nil.
--
-- round  one hand-over: queue, seen, now; take(id, claim, round, sign) writes a waiter as owner and returns the words of
--        its message, nil: neither this waiter nor any after it, false: pass it over; undo(id, round) takes that back; absent,
--        nil or which clients do not listen; free, nil or how much is left, which take() and undo() count; unnoted, true if
--        nobody notes who got a claim
local function offer(round, id, sign, claim_ms)
    local words = round.take(id, claim_ms, round, tonumber(sign))
    if not words or tell(id, words) or is_unheard(tonumber(sign)) then
        return words and true
    end
    round.undo(id, round)
    round.absent[client_of(id)] = true
    return false
end

local ROUND_MAX = 48 -- others wait while a script runs

-- May this script give waiter `id` something, after all that it gave? Else the waiter is told to ask, and goes on.
local function may_go_on(round, id)
    if (round.given or 0) < ROUND_MAX then
        return true
    end
    round.shut = tell(id, 'F ' .. id)
    round.absent[client_of(id)] = not round.shut
    return false
end

local CALLED_MAX = 128

-- Nobody gets the object any more. Those near the front are told to ask, from this place on, and each of them that learns it
-- and leaves tells the next one.
local function call_off(queue, from)
    for _, id in ipairs(redis.call('ZRANGE', queue, from, CALLED_MAX - 1)) do
        tell(id, 'F ' .. id)
    end
end

-- Hand a free object to the first waiter that listens, and return it; nil when there is none. The asker
-- needs no message: its reply tells it. A client that does not listen is tried once, however many of its
-- threads wait. A waiter that is passed over keeps its place.
--
-- round     see offer(); and after a script that handed out, or evicted, all it may, `shut`: the next waiter was told to
--           ask, and its ask goes on
-- lease_ms  of the asker
-- ended     see claim_for()
-- several   go on until take() says nil or nothing is left; then the asker is taken as well and leaves the queue.
--           Returns the asker if it was among them
--
-- Returns `shut` as well.
local function hand_over(round, asker, lease_ms, ended, several)
    local queue, seen, now, noted, at, size, reached = round.queue, round.seen, round.now, {}, 0, 4, nil
    round.absent = round.absent or {}
    while not round.shut do
        local batch, signs = next_batch(round, queue, seen, at, size, now)
        if not batch and leave_the_rest(round, queue, seen, now) then
            round.shut = true
            return reached, round.shut
        elseif not batch then
            batch, signs = next_batch(round, queue, seen, at, size, now)
        end
        local left = #batch
        for i, id in ipairs(batch) do
            if id == asker and not several then
                return id
            end
            local has = false
            if id == asker then
                has = round.take(id, lease_ms, round)
            elseif not round.absent[client_of(id)] and may_go_on(round, id) then
                local claim = claim_for(batch, signs, i, now, ended)
                if claim then
                    has = offer(round, id, signs[i], claim)
                end
            end
            if has == nil or round.shut then
                return reached, round.shut
            elseif has then
                round.given = (round.given or 0) + 1
                if not round.unnoted then
                    note_claim(seen, batch, signs, i, size, now, noted)
                end
                leave_granted(queue, seen, id)
                if not several then
                    return id
                end
                left = left - 1
                reached = id == asker and id or reached
                if round.free == 0 then
                    return reached, round.shut
                end
            end
        end
        if #batch < size then
            return reached, round.shut
        end
        at, size = at + left, 32
    end
    return nil, true
end
