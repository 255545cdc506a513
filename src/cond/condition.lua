-- condition.lua - waiters of a condition move to the queue of its mutex
-- uses:     serve
--
-- A waiter stands in `waiting` and `calive`, which are a wait queue and its liveness as queue.lua has them. A signal moves
-- it to those of the mutex, and notes it in `moved`: waiter -> server milliseconds until which it is
-- to confirm that it woke, or be heard of. A signal whose waiter is not goes to the next; whoever asks then does it. The
-- note is made only while others wait: nobody else has a claim on that signal.
--
-- Record and notes outlast every silence of a waiter: they end no earlier than `waiting`, and nobody shortens them.
--
-- both  the keys of the condition and of its mutex, by their names; mine, as `record` has it

local NO_LEASE = -1 -- what a waiter of the condition is told of the lease before it
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
local function keep_record(both)
    redis.call('SET', both.record, both.mine, 'PX', KEEP_MS)
    redis.call('PEXPIRE', both.moved, KEEP_MS)
end

-- With the last who waits go the notes.
local function end_condition(both)
    if redis.call('EXISTS', both.waiting) == 0 then
        redis.call('DEL', both.record, both.moved, both.calive)
    end
end

-- Move these waiters, in this order. A script that ends in between leaves some that are nowhere: those count as woken, and
-- queue when they ask. It begins with what a server out of memory allows.
local function move(both, ids, lives, now)
    redis.call('ZREM', both.waiting, unpack(ids))
    local last = tonumber(redis.call('ZRANGE', both.queue, -1, -1, 'WITHSCORES')[2] or '0')
    local arrival, now_ms = math.max(last + 1, now), math.floor(now / 1000)
    local known, heard, places, notes = lives_of(both.alive, ids), {}, {}, {}
    for i, id in ipairs(ids) do
        local ends = life_of(lives[i])
        if ends > life_of(known[i]) then
            heard[#heard + 1] = client_of(id)
            heard[#heard + 1] = lives[i]
        end
        places[2 * i - 1], places[2 * i] = string.format('%.0f', arrival + i - 1), id
        notes[2 * i - 1], notes[2 * i] = string.format('%.0f', math.max(ends, now_ms)), id
    end
    if #heard > 0 then
        redis.call('HSET', both.alive, unpack(heard))
        lengthen_or_drop(both.alive, KEEP_MS, last == 0)
    end
    redis.call('ZADD', both.queue, unpack(places))
    lengthen_or_drop(both.queue, KEEP_MS, last == 0)
    if redis.call('EXISTS', both.waiting) == 1 then -- who asks by then sees whether the signal arrived
        local alone = redis.call('EXISTS', both.moved) == 0
        redis.call('ZADD', both.moved, unpack(notes))
        lengthen_or_drop(both.moved, KEEP_MS, alone)
    else
        redis.call('DEL', both.record, both.moved, both.calive)
    end
end

-- More waiters are dead than this script may drop: the last one is moved.
local function wake_latest(both, now)
    local last = redis.call('ZRANGE', both.waiting, -1, -1)
    move(both, last, lives_of(both.calive, last), now)
    return true
end

-- Move the first waiter that was heard of lately, and whose client listens, if it ever did. Where there is none, move the
-- first: if it is not heard of, the signal goes on.
local function wake_one(both, now)
    local at, size, first, life, absent = 0, 4, nil, nil, {}
    while true do
        local batch, lives = next_batch(both, both.waiting, both.calive, at, size, now)
        if not batch then
            return wake_latest(both, now)
        end
        for i, id in ipairs(batch) do
            local _, _, quiet = life_of(lives[i])
            local client = client_of(id)
            if not absent[client] then
                absent[client] = not (quiet or tell(id, 'P'))
                if not absent[client] then
                    move(both, { id }, { lives[i] }, now)
                    return true
                end
            end
            first, life = first or id, life or lives[i]
        end
        if #batch < size then
            break
        end
        at, size = at + size, 32
    end
    if first then
        move(both, { first }, { life }, now)
        return true
    end
    end_condition(both)
    return false
end

-- Move all, or as many as one script may. Returns how many.
local function wake_all(both, now)
    local batch, lives = next_batch(both, both.waiting, both.calive, 0, MOVES_MAX, now)
    if not batch then
        return 0
    elseif #batch > 0 then
        move(both, batch, lives, now)
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
local function note_heard(both, id, now, terms)
    redis.call('ZADD', both.moved, 'XX', string.format('%.0f', math.floor(now / 1000) + string.match(terms, '^%d+')), id)
    redis.call('PEXPIRE', both.moved, KEEP_MS)
end

-- The mutex may be free: it goes to the first who waits for it.
local function hand_to_first(both, asker, now, now_text, robust, shared)
    if redis.call('EXISTS', both.mutex) == 1 then
        return nil
    elseif robust and redis.call('GET', both.mark) == 'unrecoverable' then
        return nil
    end
    return serve(both.mutex, both.token, both.queue, both.alive, both.mark, asker, now, now_text, robust, shared)
end
