-- queue.lua - the wait queue that all primitives share: order of arrival, liveness, hand-over
--
-- queue  sorted set, waiter's owner id -> arrival: max(last + 1, server microseconds)
-- seen   sorted set, waiter's owner id -> server milliseconds until which it counts as alive
--
-- State first, message last and by pcall: every prefix of a script leaves a legal state.

local function server_time()
    local time = redis.call('TIME')
    return time[1] * 1000000 + time[2]
end

local function leave(queue, seen, id)
    redis.call('ZREM', queue, id)
    redis.call('ZREM', seen, id)
end

-- Those who were silent for too long leave in one sweep.
local function sweep(queue, seen, now)
    local silent = redis.call('ZRANGEBYSCORE', seen, '-inf', math.floor(now / 1000), 'LIMIT', 0, 32)
    if #silent > 0 then
        redis.call('ZREM', queue, unpack(silent))
        redis.call('ZREM', seen, unpack(silent))
    end
end

-- Take or keep a place; who brings its arrival number regains its place after it was swept or lost.
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
    redis.call('ZADD', seen, math.floor(now / 1000) + liveness_ms, id) -- first: who is in no queue is swept
    lengthen_or_drop(seen, 2 * liveness_ms, alone)
    redis.call('ZADD', queue, 'NX', string.format('%.0f', arrival), id)
    lengthen_or_drop(queue, 2 * liveness_ms, alone)
    sweep(queue, seen, now)
    return arrival
end

local function tell(id, words)
    local heard = redis.pcall('PUBLISH', 'latchkey:client:' .. string.sub(id, 1, 32), words)
    return type(heard) == 'number' and heard > 0
end

-- Hand a free object to the first waiter that listens, and return it; nil when there is none. The asker
-- needs no message: its reply tells it. A client that does not listen is asked once, however many of its
-- threads wait; they keep their places.
--
-- take(id)  writes it as owner, returns the words of its message; nil: neither it nor anybody behind it;
--           false: pass it over
-- undo(id)  takes that back
-- several   go on until take() says nil; then the asker is taken as well and leaves the queue. Returns it
--           if it was among them
local function hand_over(queue, seen, asker, take, undo, several)
    local deaf, at, size, reached = {}, 0, 4, nil
    while true do
        local batch = redis.call('ZRANGE', queue, at, at + size - 1)
        local left = #batch
        for _, id in ipairs(batch) do
            if id == asker and not several then
                return id
            end
            local client = string.sub(id, 1, 32)
            local words = false
            if id == asker or not deaf[client] then
                words = take(id)
            end
            if words == nil then
                return reached
            elseif words and id ~= asker and not tell(id, words) then
                undo(id)
                deaf[client] = true
            elseif words then
                leave(queue, seen, id)
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
