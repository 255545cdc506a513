-- queue.lua - the wait queue that all primitives share: order of arrival, liveness, hand-over
-- uses:     rollback
--
-- queue  sorted set, waiter's owner id -> arrival: max(last + 1, server microseconds)
-- alive  hash, client -> "<server ms until which it counts as alive> <terms>". Its terms are "<liveness ms> <claim ms> <1: it
--        receives no messages, or 0>"
--
-- Liveness belongs to a client: each ask of any of its waiters moves it on. A claim shortens it to the end of the claim. So a
-- claim that nobody confirms ends a silent client, and its waiters leave the queue as scripts meet them. A waiter that asks
-- again brings its arrival, and regains its place.
--
-- A read-write lock has two queues, one of them the `other`, with one key `alive`.
--
-- State first, message last and by pcall: every prefix of a script leaves a legal state.

-- A client is the first part of its waiters' ids.
local function client_of(id)
    return string.sub(id, 1, 32)
end

-- Both keys last an hour from the last ask. The time is the same for all, so nobody shortens it. A waiter asks again within
-- a minute; newcomers set the end one time in sixteen.
local KEEP_MS = 3600000

-- Read an entry of `alive`: until when the client is alive, how long a claim lasts, and whether it receives no messages.
local function life_of(entry)
    local ends, claim_ms, quiet = string.match(entry or '', '^(%d+) %d+ (%d+) (%d)$')
    return tonumber(ends or '0'), claim_ms, quiet == '1'
end

-- Let a client count as alive until then.
local function set_alive(alive, id, ends_ms, terms)
    return redis.call('HSET', alive, client_of(id), string.format('%.0f', ends_ms) .. ' ' .. terms)
end

-- As long as its terms say.
local function give_sign(alive, id, now, terms)
    return set_alive(alive, id, math.floor(now / 1000) + string.match(terms, '^%d+'), terms)
end

-- Look at some entries, and delete those that ended. Each new client does so, hence about an eighth are of clients that left.
-- Fields with other names are no clients.
local function tidy_alive(alive, now)
    local some = redis.call('HRANDFIELD', alive, '8', 'WITHVALUES')
    for i = 1, #some, 2 do
        if #some[i] == 32 and life_of(some[i + 1]) < now / 1000 then
            redis.call('HDEL', alive, some[i])
        end
    end
end

-- The last waiter left: nobody needs the signs of life any more.
local function forget_if_empty(queue, alive, other)
    if redis.call('EXISTS', queue, other or queue) == 0 then
        redis.call('DEL', alive)
    end
end

-- Take `id` out of the queue.
local function remove(queue, alive, id, other)
    if redis.call('ZREM', queue, id) == 1 then
        forget_if_empty(queue, alive, other)
    end
end

-- Its owner gives something back, or gives up, which is a sign of life of its client.
local function leave(queue, alive, id, now, other)
    remove(queue, alive, id, other)
    local terms = string.match(redis.call('HGET', alive, client_of(id)) or '', '^%d+ (.*)$')
    if terms then
        give_sign(alive, id, now, terms)
    end
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

-- The entries of the clients of these waiters, in the same order.
local function lives_of(alive, batch)
    local clients = {}
    for i, id in ipairs(batch) do
        clients[i] = client_of(id)
    end
    return #batch > 0 and redis.call('HMGET', alive, unpack(clients)) or {}
end

local DROPPED_MAX = 128 -- by one script: others wait while it runs

-- Read the next `size` waiters or more after the first `at`, with the entries of their clients. Waiters of silent clients
-- leave the queue, but the asker stays: it lives, even if its client does not receive messages any more. Returns nil if there
-- are more of them than this script may drop, which `dropped` of the round counts.
local function next_batch(round, queue, alive, at, size, now)
    while true do
        local gone, batch = {}, nil
        if round.before then
            batch = redis.call('ZRANGE', queue, '-inf', '(' .. round.before, 'BYSCORE', 'LIMIT', at, size)
        else
            batch = redis.call('ZRANGE', queue, at, at + size - 1)
        end
        local lives = lives_of(alive, batch)
        for i, id in ipairs(batch) do
            if id ~= round.asker and life_of(lives[i]) <= now / 1000 then
                gone[#gone + 1] = id
            end
        end
        if #gone == 0 then
            if #batch == 0 and at == 0 and round.dropped then
                forget_if_empty(queue, alive, round.other)
            end
            return batch, lives
        elseif (round.dropped or 0) >= DROPPED_MAX then
            return nil
        end
        redis.call('ZREM', queue, unpack(gone))
        round.dropped, size = (round.dropped or 0) + #gone, 64
    end
end

-- Take or keep a place; a waiter that brings its arrival number regains its place after it was dropped or lost. `known`:
-- nil, or for a new place that comes with its number, whether others have one. Returns the number, and of a newcomer how
-- many are before it.
local function enqueue(queue, alive, id, arrival, now, now_text, terms, known)
    local others, place = nil, nil
    if known ~= nil then
        others = known and 1 or 0
    elseif arrival == 0 then
        others = redis.call('ZCARD', queue)
    end
    local sets = others == 0 or not others or now % 16 == 0
    local new = give_sign(alive, id, now, terms) == 1 -- first: a waiter of no client is dropped
    if sets then
        lengthen_or_drop(alive, KEEP_MS, others == 0)
    end
    local score = arrival == 0 and now_text or string.format('%.0f', arrival)
    -- A late copy of the first ask may have taken another place: the number that the waiter brings is the lower one.
    local added = redis.call('ZADD', queue, arrival == 0 and 'NX' or 'LT', score, id) == 1
    if sets then
        lengthen_or_drop(queue, KEEP_MS, others == 0)
    end
    if others and not added then
        arrival = tonumber(redis.call('ZSCORE', queue, id)) -- a copy of the first ask
    elseif arrival == 0 then
        arrival, place = now, others > 0 and redis.call('ZRANK', queue, id) or 0
        if place < others then
            arrival, place = go_last(queue, id), others
        end
    end
    if new and others ~= 0 then
        tidy_alive(alive, now)
    end
    if sets and others ~= 0 then
        next_batch({}, queue, alive, 0, 4, now) -- of those that died the first leave
    end
    return arrival, place
end

-- The channel of a sharded message lies in the slot of the first key.
local function tell(id, words)
    local shard = PUBLISH == 'SPUBLISH' and ':{' .. (string.match(KEYS[1], '{(.-)}') or KEYS[1]) .. '}' or ''
    local heard = publish('latchkey:client:' .. string.sub(id, 1, 32) .. shard, words)
    return type(heard) == 'number' and heard > 0
end

-- More waiters are to be dropped than one script may: the last one is told to ask, and its ask goes on. Returns false where
-- that one does not listen either; then this script goes on.
local function leave_the_rest(round, queue)
    local last = redis.call('ZRANGE', queue, -1, -1)[1]
    if tell(last, 'F ' .. last) then
        return true
    end
    round.dropped = -math.huge
    return false
end

-- The client of `id` got a claim: if that ends, it was silent since now.
local function shorten(alive, id, entry, claim_ms, now)
    local ends, terms = string.match(entry, '^(%d+) (.*)$')
    local claim_ends = math.floor(now / 1000) + claim_ms
    if ends + 0 > claim_ends then
        set_alive(alive, id, claim_ends, terms)
    end
end

-- The client of `id` does not receive what it should: its waiters are dropped, and come again with their next asks.
local function silence(queue, alive, id, other)
    redis.call('HDEL', alive, client_of(id))
    remove(queue, alive, id, other)
end

-- Offer what is free to a waiter. Returns true: the waiter has it, and was told or will find it · false: its client does not
-- listen, and it left the queue · nil: it does not fit.
--
-- round  one hand-over: queue, alive, now, and nil or other and before, the arrival of the first waiter that is not meant;
--        take(id, claim, round, quiet) writes a waiter as owner and returns the words of its message, nil: neither this
--        waiter nor any after it fits, false: its client does not listen; undo(id, round) takes that back; free, nil or how
--        much is left, which take() and undo() count
local function offer(round, id, entry)
    local _, claim_ms, quiet = life_of(entry)
    local words = round.take(id, claim_ms, round, quiet)
    if words == nil then
        return nil
    elseif words and (tell(id, words) or quiet) then
        shorten(round.alive, id, entry, claim_ms, round.now)
        return true
    elseif words then
        round.undo(id, round)
    end
    silence(round.queue, round.alive, id, round.other)
    return false
end

local ROUND_MAX = 48 -- others wait while a script runs

-- May this script give waiter `id` something, after all that it gave? Else the waiter is told to ask, and its ask goes on; a
-- waiter that receives no messages asks soon by itself.
local function may_go_on(round, id, entry)
    if (round.given or 0) < ROUND_MAX then
        return true
    end
    local _, _, quiet = life_of(entry)
    round.shut = tell(id, 'F ' .. id) or quiet
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

-- Hand a free object to the first waiter of a live client that listens, and return it; nil when there is none. The asker
-- needs no message: its reply tells it.
--
-- round     see offer(); and after a script that handed out, or dropped, all it may, `shut`: the next waiter was told to
--           ask, and its ask goes on
-- lease_ms  of the asker
-- several   go on until take() says nil or nothing is left; then the asker is taken as well and leaves the queue.
--           Returns the asker if it was among them
--
-- Returns `shut` as well.
local function hand_over(round, asker, lease_ms, several)
    local queue, alive, size, reached = round.queue, round.alive, 4, nil
    round.asker = asker
    while not round.shut do
        local batch, lives = next_batch(round, queue, alive, 0, size, round.now)
        if not batch and leave_the_rest(round, queue) then
            round.shut = true
            break
        elseif not batch then
            batch, lives = next_batch(round, queue, alive, 0, size, round.now)
        end
        local dropped = false
        for i, id in ipairs(batch) do
            local has
            if id == asker and not several then
                return id
            elseif id == asker then
                has = round.take(id, lease_ms, round)
            elseif may_go_on(round, id, lives[i]) then
                has = offer(round, id, lives[i])
            elseif not round.shut then
                silence(queue, alive, id, round.other)
                has = false
            end
            if has == nil then
                return reached, round.shut
            elseif has == false then
                dropped = true -- and others of its client are with the next batch
                break
            end
            round.given = (round.given or 0) + 1
            remove(queue, alive, id, round.other)
            if not several then
                return id
            end
            reached = id == asker and id or reached
            if round.free == 0 then
                return reached, round.shut
            end
        end
        if not dropped and #batch < size then
            return reached, round.shut
        end
        size = dropped and size or 64
    end
    return reached, round.shut
end
