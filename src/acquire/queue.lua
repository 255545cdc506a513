-- queue.lua - the wait queue that all primitives share: order of arrival, liveness, hand-over
-- uses:     rollback
--
-- queue  sorted set, waiter's owner id -> arrival: max(last + 1, server microseconds)
-- seen   sorted set, waiter's owner id -> server milliseconds until which it counts as alive. What the waiter's client
--        asks for is in the fraction, in 2048ths: 128 x its liveness, 2 x the claims it wants, see terms_of(), and
--        1 if it hears no message.
--        Notes have scores below 0, so that they count as no waiter's: client id -> likewise, for the moment at which
--        the client was granted its last claim; `turn`, see below
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

-- Some waiters hear no message: their client may not subscribe, or is new and not subscribed yet. Waiters that hear
-- would pass them for ever. So the first waiter that hears no message has a turn now and then, if it asked a moment
-- ago: it is granted a claim, which it finds with its next ask. One twentieth of the time goes to such turns, or a
-- quarter while nobody near the front hears, who would have to wait. Member `turn` of `seen` is when the next turn may
-- begin; a turn lasts that share of the time until then. A score with a quarter of a millisecond is of the larger share,
-- and one with half a millisecond a call without a turn: the first waiter that hears nothing asks as often as it can from
-- its next ask on.
local QUIET_CLAIM_MS, RECENT_MS, CALL_MS = 100, 500, 1500
local FRONT_MAX = 64 -- so many are looked at for that
local SHARES = { [0] = 20, [0.25] = 4 } -- a turn has one part in so many of the time
local TURN_MS = 100 -- a turn on an object that is free when the turn begins

-- When the next turn may begin; 0: there was none.
local function turn_in(seen)
    return -(tonumber(redis.call('ZSCORE', seen, 'turn') or '') or 0)
end

local function put_turn(seen, next_ms)
    redis.call('ZADD', seen, -next_ms, 'turn')
end

-- Of a sign of life, or of liveness_ms as it comes with an ask.
local function is_unheard(sign)
    return sign % 1 * 2048 % 2 == 1
end

-- The place of `id` in the queue; -1: `id` is the first waiter that hears no message, and is to ask as often as it can: also
-- when its turn may have begun, as the next script that gives something back grants it a short claim.
local function place_of(queue, seen, id, now, liveness_ms)
    local place = redis.call('ZRANK', queue, id) or 0
    if place == 0 and is_unheard(liveness_ms) and turn_in(seen) + RECENT_MS > now / 1000 then
        return -1
    end
    return place
end

-- A waiter found the claim of its turn: the rest of the turn is left to the next waiter.
local function end_turn(seen, now, turn_ms, liveness_ms)
    local now_ms = math.floor(now / 1000)
    local next_ms = is_unheard(liveness_ms) and turn_in(seen) or 0
    local kind = next_ms % 1
    local share = SHARES[kind]
    if share and next_ms - now_ms > (share - 1) * turn_ms then
        local began_ms = next_ms - kind - share * turn_ms
        put_turn(seen, began_ms + share * (now_ms - began_ms) + kind)
    end
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
    return 5000 * 2 ^ math.floor(code / 128), claim > 0 and claim_ms or CLAIM_MS
end

-- When a sign of life was given, or the claim granted that a note is of, ms.
local function moment_of(sign)
    return math.floor(sign) - terms_of(sign)
end

-- Does none of those near the front hear messages?
local function nobody_hears(queue, seen)
    local signs = redis.call('ZMSCORE', seen, unpack(redis.call('ZRANGE', queue, 0, FRONT_MAX - 1)))
    for _, sign in ipairs(signs) do
        if sign and not is_unheard(tonumber(sign)) then
            return false
        end
    end
    return true
end

-- May a waiter that hears no message, and has this sign of life, have a turn now? `queue`: nil, or who would have to wait for
-- it, and if nobody does that hears, turns may have the larger share of the time.
local function has_turn(seen, sign, now, turn_ms, queue)
    local now_ms = math.floor(now / 1000)
    local next_ms = turn_in(seen)
    local share = SHARES[next_ms % 1]
    local called = not share
    if share and next_ms > now_ms then
        return next_ms - now_ms > (share - 1) * turn_ms
    elseif now_ms - moment_of(sign) > (called and RECENT_MS or QUIET_CLAIM_MS) then
        put_turn(seen, now_ms + CALL_MS + 0.5)
        return false
    end
    local kind = queue and nobody_hears(queue, seen) and 0.25 or 0
    put_turn(seen, now_ms + SHARES[kind] * turn_ms + kind)
    return true
end

-- Give waiter i of a batch a turn: it may hear the message after all, and the next waiter that hears asks when the turn
-- is over.
local function tell_of_turn(batch, signs, i)
    tell(batch[i], 'F ' .. batch[i])
    for k = i + 1, #batch do
        if not is_unheard(tonumber(signs[k])) then
            tell(batch[k], 'F ' .. batch[k])
            return
        end
    end
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
local function claim_for(batch, signs, i, now, claim_ms, ended)
    local now_ms, sign, last = math.floor(now / 1000), tonumber(signs[i]), -(tonumber(signs[#batch + i] or '') or 0)
    local liveness_ms, wanted_ms = terms_of(sign)
    claim_ms = wanted_ms or claim_ms
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

-- Offer what is free to waiter i of a batch. Returns true: the waiter has it and was told · 'turn': the waiter has it,
-- and will find it · false: the waiter is passed over · nil: take() returned nil.
--
-- round  one hand-over: queue, seen, now; turn_ms, how long a turn may last; take(id, claim, sign, round) writes a
--        waiter as owner and returns the words of its message, nil: neither this waiter nor any after it, false: pass
--        it over; undo(id, round) takes that back; absent, nil or which clients do not listen; turned, whether
--        somebody had a turn; free, nil or how much is left, which take() and undo() count; unnoted, true if nobody
--        notes who got a claim
local function offer(round, batch, signs, i, claim_ms)
    local id, sign = batch[i], tonumber(signs[i])
    local words = round.take(id, claim_ms, sign, round)
    if not words or tell(id, words) then
        return words and true
    end
    round.undo(id, round)
    round.absent[client_of(id)] = true
    if round.turned or not is_unheard(sign) or
        not has_turn(round.seen, sign, round.now, round.turn_ms, round.queue) then
        return false
    end
    round.turned = true
    if not round.take(id, QUIET_CLAIM_MS, sign, round) then
        return false
    end
    tell_of_turn(batch, signs, i)
    return 'turn'
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
-- claim_ms  how long a claim lasts if the waiter does not say
-- ended     see claim_for()
-- several   go on until take() says nil or nothing is left; then the asker is taken as well and leaves the queue.
--           Returns the asker if it was among them
--
-- Returns `shut` as well.
local function hand_over(round, asker, claim_ms, ended, several)
    local queue, seen, now, noted, at, size, reached = round.queue, round.seen, round.now, {}, 0, 4, nil
    round.absent, round.turned = round.absent or {}, false
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
                has = round.take(id, claim_ms, nil, round)
            elseif not round.absent[client_of(id)] and may_go_on(round, id) then
                local claim = claim_for(batch, signs, i, now, claim_ms, ended)
                if claim then
                    has = offer(round, batch, signs, i, claim)
                end
            end
            if has == nil or round.shut then
                return reached, round.shut
            elseif has then
                round.given = (round.given or 0) + 1
                if has == true and not round.unnoted then
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
