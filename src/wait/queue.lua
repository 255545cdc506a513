-- queue.lua - the wait queue that all primitives share: order of arrival, liveness, hand-over
--
-- queue  sorted set, waiter's owner id -> arrival: max(last + 1, server microseconds)
-- seen   sorted set, waiter's owner id -> server milliseconds until which it counts as alive. What the waiter's client
--        asks for is in the fraction, in 2048ths: 128 x its liveness and 2 x the claims it wants, see terms_of().
--        Beside them client id -> likewise, for the moment at which it was granted its last claim
--
-- State first, message last and by pcall: every prefix of a script leaves a legal state.

local function server_time()
    local time = redis.call('TIME')
    return time[1] * 1000000 + time[2]
end

-- A client is the first part of its waiters' ids.
local function client_of(id)
    return string.sub(id, 1, 32)
end

-- Whatever `id` does is a sign of life of its client.
local function leave(queue, seen, id)
    redis.call('ZREM', queue, id)
    redis.call('ZREM', seen, id, client_of(id))
end

-- Those who were silent for too long leave in one sweep.
local function sweep(queue, seen, now)
    local silent = redis.call('ZRANGEBYSCORE', seen, '-inf', math.floor(now / 1000), 'LIMIT', 0, 32)
    if #silent > 0 then
        redis.call('ZREM', queue, unpack(silent))
        redis.call('ZREM', seen, unpack(silent))
    end
end

-- Take or keep a place; who brings its arrival number regains its place after it was swept or lost. The fraction of
-- liveness_ms says what its client asks for.
local function enqueue(queue, seen, id, arrival, now, liveness_ms)
    if arrival == 0 then
        arrival = tonumber(redis.call('ZSCORE', queue, id) or '') or 0
    end
    local alone = false
    if arrival == 0 then
        local last = redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2]
        arrival, alone = now, not last
        if last and tonumber(last) >= now then
            arrival = tonumber(last) + 1
        end
    end
    local lasts_ms = math.floor(2 * liveness_ms)
    redis.call('ZADD', seen, math.floor(now / 1000) + liveness_ms, id) -- first: who is in no queue is swept
    lengthen_or_drop(seen, lasts_ms, alone)
    redis.call('ZADD', queue, 'NX', string.format('%.0f', arrival), id)
    lengthen_or_drop(queue, lasts_ms, alone)
    sweep(queue, seen, now)
    return arrival
end

local function tell(id, words)
    local heard = redis.pcall('PUBLISH', 'latchkey:client:' .. string.sub(id, 1, 32), words)
    return type(heard) == 'number' and heard > 0
end

-- What a sign of life says: liveness, ms, and how long a claim has to last; nil: whatever the one who grants it thinks.
local function terms_of(sign)
    local code = sign % 1 * 2048
    local claim = math.floor(code % 128 / 2)
    local claim_ms = math.floor((4 + claim % 4) * 2 ^ math.floor(claim / 4) * 15.625)
    return 5000 * 2 ^ math.floor(code / 128), claim > 0 and claim_ms or nil
end

-- The signs of life of these waiters, followed by those of their clients, in the same order.
local function signs_of(seen, batch)
    local members = {}
    for i, id in ipairs(batch) do
        members[i], members[#batch + i] = id, client_of(id)
    end
    return #batch > 0 and redis.call('ZMSCORE', seen, unpack(members)) or {}
end

-- The next `size` waiters behind the first `at`, and the signs of life of them and of their clients. Who was silent
-- for too long leaves.
local function next_batch(queue, seen, at, size, now)
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
        end
        redis.call('ZREM', queue, unpack(gone))
        redis.call('ZREM', seen, unpack(gone))
    end
end

-- How long a claim of waiter i of a batch has to last; nil when it is not to have one: it was silent for half of its
-- liveness, when a live one asks, or its client let a claim end and nobody of it was heard since, not even this one.
-- ended(client, since_ms)  nil, or did a hold of that client, granted then or later, end by itself?
local function claim_for(batch, signs, i, now, claim_ms, ended)
    local now_ms, sign, last = math.floor(now / 1000), tonumber(signs[i]), tonumber(signs[#batch + i] or '')
    local liveness_ms, wanted_ms = terms_of(sign)
    claim_ms = wanted_ms or claim_ms
    if now_ms > sign - liveness_ms / 2 then
        return nil
    elseif last and math.floor(sign) <= last and now_ms >= last - liveness_ms + claim_ms and
        (not ended or ended(client_of(batch[i]), last - liveness_ms)) then
        return nil
    end
    return claim_ms
end

-- Waiter i of a batch has its claim. If others of its client may be waiting, it is written down when that was.
local function note_claim(seen, batch, signs, i, size, now, noted)
    local client, others = client_of(batch[i]), #batch == size
    for k = i + 1, #batch do
        others = others or client_of(batch[k]) == client
    end
    if others and not noted[client] then
        noted[client] = true
        redis.call('ZADD', seen, math.floor(now / 1000) + terms_of(tonumber(signs[i])), client)
    end
end

local function leave_granted(queue, seen, id)
    redis.call('ZREM', queue, id)
    redis.call('ZREM', seen, id)
end

-- Hand a free object to the first waiter that listens, and return it; nil when there is none. The asker
-- needs no message: its reply tells it. A client that does not listen is asked once, however many of its
-- threads wait; who is passed over keeps its place.
--
-- claim_ms        how long a claim lasts if the waiter does not say
-- take(id, claim) writes it as owner, returns the words of its message; nil: neither it nor anybody behind it;
--                 false: pass it over
-- undo(id)        takes that back
-- ended           see claim_for()
-- several         go on until take() says nil; then the asker is taken as well and leaves the queue. Returns it
--                 if it was among them
local function hand_over(queue, seen, asker, now, claim_ms, take, undo, ended, several)
    local deaf, noted, at, size, reached = {}, {}, 0, 4, nil
    while true do
        local batch, signs = next_batch(queue, seen, at, size, now)
        local left = #batch
        for i, id in ipairs(batch) do
            if id == asker and not several then
                return id
            end
            local client, words, claim = client_of(id), false, claim_ms
            if id ~= asker and not deaf[client] then
                claim = claim_for(batch, signs, i, now, claim_ms, ended)
            end
            if claim and (id == asker or not deaf[client]) then
                words = take(id, claim)
            end
            if words == nil then
                return reached
            elseif words and id ~= asker and not tell(id, words) then
                undo(id)
                deaf[client] = true
            elseif words then
                if id ~= asker then
                    note_claim(seen, batch, signs, i, size, now, noted)
                end
                leave_granted(queue, seen, id)
                if not several then
                    return id
                end
                left = left - 1
                reached = id == asker and id or reached
            end
        end
        if #batch < size then
            return reached
        end
        at, size = at + left, 32
    end
end
