-- condition.lua - waiters of a condition move to the queue of its mutex
-- uses:     serve
--
-- A waiter stands in `waiting` and `alive`, which are a wait queue and its liveness as queue.lua has them. A signal moves
-- it to those of the mutex, with its sign of life, and notes it in `moved`: waiter -> server milliseconds until which it is
-- to confirm that it woke, or be heard of. A signal whose waiter is not goes to the next; whoever asks then does it. The
-- note is made only while others wait: nobody else has a claim on that signal.
--
-- Record and notes outlast every silence of a waiter: they end no earlier than `waiting`, and nobody shortens them.
--
-- both  the keys of the condition and of its mutex, by their names; mine, as `record` has it

-- Who waits for long rests, see queue.lua, but while a signal is under way: then who asks is told of a lease that is too
-- short for it, and waiters of two clients are told to ask.
local WAITS_MS, NO_LEASE = 4999, -1
local WATCHERS, LOOKED_AT = 2, 16
local MOVES_MAX = 100 -- others wait while a script runs

-- Do two records name one mutex? Whether Redisson shares it each client says for itself, as it does for mutexes.
local function is_same(found, mine)
    return found == mine or
        (string.sub(found, 1, 1) == string.sub(mine, 1, 1) and string.sub(found, 3) == string.sub(mine, 3))
end

-- Do those who wait do so with this mutex?
local function is_ours(both)
    return is_same(redis.call('GET', both.record) or '', both.mine)
end

-- One that waits is heard of: the record says with which mutex, and lasts as the queue does, and so do the notes.
local function keep_record(both, liveness_ms)
    local lasts_ms = LASTS * math.floor(liveness_ms)
    redis.call('SET', both.record, both.mine, 'PX', math.max(lasts_ms, redis.call('PTTL', both.record)))
    redis.call('PEXPIRE', both.moved, lasts_ms, 'GT')
end

-- With the last who waits go the notes.
local function end_condition(both)
    if redis.call('EXISTS', both.waiting) == 0 then
        redis.call('DEL', both.record, both.moved, both.alive)
    end
end

-- What a waiter of the condition is told of the lease before it, and of its place: wherever it stands, it may rest.
local PLACE_MAX = 64

local function outlook(both, place)
    return redis.call('EXISTS', both.moved) == 1 and WAITS_MS or NO_LEASE, math.min(place, PLACE_MAX)
end

-- Does it rest, and hear when it is called?
local function may_be_called(sign)
    return terms_of(sign) >= RESTS_MS and not is_unheard(sign)
end

-- The sign of life of one that was called.
local function sign_called(sign, now)
    return math.floor(now / 1000) + LEAST_LIVENESS_MS + sign % 1 % (1 / 16) -- without its liveness
end

-- Move these waiters, in this order. A script that ends in between leaves some that are nowhere: those count as woken, and
-- queue when they ask. It begins with what a server out of memory allows.
local function move(both, ids, signs, now)
    redis.call('ZREM', both.waiting, unpack(ids))
    redis.call('ZREM', both.alive, unpack(ids))
    local last = tonumber(redis.call('ZRANGE', both.queue, -1, -1, 'WITHSCORES')[2] or '0')
    local arrival, lasts_ms, now_ms = math.max(last + 1, now), 0, math.floor(now / 1000)
    local places, lives, notes, called = {}, {}, {}, {}
    for i, id in ipairs(ids) do
        local sign = tonumber(signs[i])
        if may_be_called(sign) then
            sign, called[#called + 1] = sign_called(sign, now), id
        end
        local liveness_ms = terms_of(sign)
        lasts_ms = math.max(lasts_ms, LASTS * liveness_ms)
        places[2 * i - 1], places[2 * i] = string.format('%.0f', arrival + i - 1), id
        lives[2 * i - 1], lives[2 * i] = sign, id
        notes[2 * i - 1], notes[2 * i] = now_ms + liveness_ms, id
    end
    redis.call('ZADD', both.seen, unpack(lives))
    lengthen_or_drop(both.seen, lasts_ms, last == 0)
    redis.call('ZADD', both.queue, unpack(places))
    lengthen_or_drop(both.queue, lasts_ms, last == 0)
    local rest_ms = redis.call('PTTL', both.waiting)
    if rest_ms ~= -2 then -- who asks by then sees whether the signal arrived
        local alone = redis.call('EXISTS', both.moved) == 0
        redis.call('ZADD', both.moved, unpack(notes))
        lengthen_or_drop(both.moved, math.max(lasts_ms, rest_ms), alone)
    else
        redis.call('DEL', both.record, both.moved, both.alive)
    end
    for _, id in ipairs(called) do
        tell(id, 'F ' .. id) -- it waits for the mutex now
    end
end

-- A signal is under way: somebody has to see whether it arrives. The first waiters of some clients do not rest then.
local function call_watchers(both, now)
    if redis.call('EXISTS', both.moved) == 0 or not redis.call('ZSCORE', both.alive, 'resting') then
        return
    end
    local batch = redis.call('ZRANGE', both.waiting, 0, LOOKED_AT - 1)
    local signs, seen, watching = signs_of(both.alive, batch), {}, 0
    for i, id in ipairs(batch) do
        local sign, client = tonumber(signs[i] or '') or 0, client_of(id)
        if watching < WATCHERS and not seen[client] then
            seen[client] = true
            local rests = may_be_called(sign)
            if rests then
                redis.pcall('ZADD', both.alive, 'XX', sign_called(sign, now), id)
            end
            if not rests or tell(id, 'F ' .. id) then
                watching = watching + 1
            end
        end
    end
end

-- More waiters are dead than this script may evict: the one that was heard of last is moved.
local function wake_latest(both, now)
    local last = redis.call('ZRANGE', both.alive, -1, -1, 'WITHSCORES')
    move(both, { last[1] }, { last[2] }, now)
    return true
end

-- Move the first waiter that was heard of lately, and whose client listens, if it ever did. Where there is none, move the
-- first: if it is not heard of, the signal goes on.
local function wake_one(both, now)
    local at, size, first, sign, absent = 0, 4, nil, nil, {}
    while true do
        local batch, signs = next_batch(both, both.waiting, both.alive, at, size, now)
        if not batch then
            return wake_latest(both, now)
        end
        for i, id in ipairs(batch) do
            local ends = tonumber(signs[i])
            local liveness_ms, client = terms_of(ends), client_of(id)
            if now / 1000 <= ends - liveness_ms / 2 and not absent[client] then
                absent[client] = not (is_unheard(ends) or tell(id, 'P'))
                if not absent[client] then
                    move(both, { id }, { signs[i] }, now)
                    return true
                end
            end
            first, sign = first or id, sign or signs[i]
        end
        if #batch < size then
            break
        end
        at, size = at + size, 32
    end
    if first then
        move(both, { first }, { sign }, now)
        return true
    end
    end_condition(both)
    return false
end

-- Move all, or as many as one script may. Returns how many.
local function wake_all(both, now)
    local batch, signs = next_batch(both, both.waiting, both.alive, 0, MOVES_MAX, now)
    if not batch then
        return 0
    elseif #batch > 0 then
        move(both, batch, signs, now)
    end
    if #batch < MOVES_MAX then
        end_condition(both)
    end
    return #batch
end

-- Signals whose waiters are not heard of go to the next ones. Returns whether somebody was moved.
local function pass_on(both, now)
    local late = redis.call('ZRANGEBYSCORE', both.moved, 0, math.floor(now / 1000), 'LIMIT', 0, 16)
    if #late == 0 then
        return false
    end
    local moved = false
    for _, id in ipairs(late) do
        moved = wake_one(both, now) or moved
        redis.call('ZREM', both.moved, id) -- behind it: a script that ends in between wakes one too many
    end
    return moved
end

-- A moved waiter is heard of, and is to confirm in its own time.
local function note_heard(both, id, now, liveness_ms)
    redis.call('ZADD', both.moved, 'XX', math.floor(now / 1000) + math.floor(liveness_ms), id)
    redis.call('PEXPIRE', both.moved, LASTS * math.floor(liveness_ms), 'GT')
end

-- The mutex may be free: it goes to the first who waits for it.
local function hand_to_first(both, asker, now, now_text, robust, shared)
    if redis.call('EXISTS', both.mutex) == 1 then
        return nil
    elseif robust and redis.call('GET', both.mark) == 'unrecoverable' then
        return nil
    end
    return serve(both.mutex, both.token, both.queue, both.seen, both.mark, asker, now, now_text, robust, shared)
end
