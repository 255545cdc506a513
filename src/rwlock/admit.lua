-- admit.lua - the two wait queues of a read-write lock, and how those in them come in
--
-- uses:     first queue holders token
-- Readers have a queue, and writers have one, with one sequence of arrivals. The order says which queue is next:
--   fair      the one whose first waiter came first
--   reader, writer    that one, if somebody waits there
--   phase     after a writer the readers, up to the last that waited when the first of them came in; then a writer. `alive`
--             has the arrival of that last one as 'turn'. While it has none, a writer was the last one that came in

local function queues_of(lock, id)
    if is_writer(id) then
        return lock.writers, lock.readers
    end
    return lock.readers, lock.writers
end

-- The arrival of the last waiter, 0 if there is none, and its id.
local function last_of(queue)
    local last = redis.call('ZRANGE', queue, '-1', '-1', 'WITHSCORES')
    return tonumber(last[2] or '0'), last[1]
end

-- Writers wait while readers have the lock: who comes to read from now on waits for a writer.
local function end_turn_of_readers(lock)
    if redis.call('HEXISTS', lock.alive, 'turn') == 0 then
        redis.call('HSET', lock.alive, 'turn', string.format('%.0f', (last_of(lock.readers))))
    end
end

-- Take or keep a place, as enqueue() does; a newcomer stands behind all others. `alone`: nobody waits. Returns its arrival.
-- A reader that `shares` takes no place behind another one of its client: that client has all of them ask, with the other
-- one's arrival, when that one is in. Then this arrival is returned, and the id. In fair order no writer may stand between.
local function line_up(lock, id, arrival, now, terms, alone, shares)
    local queue, other = queues_of(lock, id)
    local known
    if arrival == 0 and alone then
        arrival, known = now, false
    elseif arrival == 0 then
        local last, ours = last_of(queue)
        local beside = last_of(other)
        if shares and ours and client_of(ours) == client_of(id) and (lock.order ~= 'fair' or beside < last) then
            return last, ours
        end
        arrival, known = math.max(now, last + 1, beside + 1), last > 0
    end
    return (enqueue(queue, lock.alive, id, arrival, now, lock.now_text, terms, known))
end

-- A round is one hand-over, see queue.lua, with more fields: the lock; readers, their number; writing, a writer came in;
-- full, the next one does not fit; token, died, unmarked: the digits of the token of the first writer tried, whether a
-- writer died before it, and the mark until then; asker, who needs no message; mine, mine_died: the asker's token once it
-- is in, and whether a writer died.

-- The arrival of the first waiter; nil: there is none.
local function first_of(queue)
    return tonumber(redis.call('ZRANGE', queue, '0', '0', 'WITHSCORES')[2])
end

-- Whether the readers are next, and the arrival of the first one that is not meant, if there is one. `reader` and `writer`
-- are the first arrivals.
local function readers_are_next(order, alive, reader, writer)
    if not (reader and writer) then
        return reader
    elseif order == 'phase' then
        local last = tonumber(redis.call('HGET', alive, 'turn') or math.huge)
        return reader <= last, last + 1
    elseif order == 'fair' then
        return reader < writer, writer
    end
    return order == 'reader'
end

-- Write `id` as holder; returns the digits of its token, and whether a writer died.
local function admit(round, id, claim_ms)
    local lock, now = round.lock, round.now
    if not is_writer(id) then
        round.readers = round.readers + 1
        return grant(lock, id, claim_ms, now)
    end
    round.writing = true
    if round.token then -- a second writer is tried: only the owner changes
        write_mark(lock, id, round.token, round.died)
        put(lock.holders, id, claim_ms, now)
        return round.token, round.died
    end
    round.unmarked = lock.robust and redis.call('GET', lock.mark)
    round.token, round.died = grant(lock, id, claim_ms, now)
    return round.token, round.died
end

local function take(id, claim_ms, round)
    if round.writing or round.readers > 0 and is_writer(id) or round.readers >= READERS_MAX then
        round.full = true
        return nil
    end
    local token, died = admit(round, id, claim_ms)
    if id == round.asker then
        round.mine, round.mine_died = token, died
    end
    return string.format('G %s %s %s %s %d', id, round.lock.now_text, claim_ms, token, died)
end

local function undo(id, round)
    local lock = round.lock
    redis.call('ZREM', lock.holders, id)
    if not is_writer(id) then
        round.readers = round.readers - 1
        return
    end
    round.writing = false
    if round.unmarked then
        redis.call('SET', lock.mark, round.unmarked)
    elseif lock.robust then
        redis.call('DEL', lock.mark)
    end
end

-- Let waiters in, as far as the lock is free for them: one writer, or all readers up to a writer that goes before them.
-- `free`: nobody holds it, as a writer left. Returns the token of the asker if it is in, else nil, and whether a writer died.
local function let_in(lock, asker, now, free)
    local holder = not free and look(lock.holders, now)
    if holder and is_writer(holder) then
        return nil
    end
    local round = { alive = lock.alive, now = now, take = take, undo = undo, lock = lock, asker = asker,
        readers = holder and redis.call('ZCARD', lock.holders) or 0 }
    local reads, writes = lock.tries and not is_writer(asker), lock.tries and is_writer(asker)
    while not (round.writing or round.full or round.shut) do
        local reader = first_of(lock.readers) or reads and math.huge -- who only tries stands behind all others
        local writer = first_of(lock.writers) or writes and math.huge
        local read, before = readers_are_next(lock.order, lock.alive, reader, writer)
        if not (reader or writer) then
            break
        elseif (read and reader or writer) == math.huge then
            take(asker, lock.lease_ms, round)
            break
        end
        round.queue, round.other = lock.writers, lock.readers
        if read then
            round.queue, round.other = lock.readers, lock.writers
        end
        round.before = read and before and before < math.huge and string.format('%.0f', before) or nil
        hand_over(round, asker, lock.lease_ms, true)
    end
    if lock.order ~= 'phase' then
        return round.mine, round.mine_died
    elseif round.writing then
        redis.call('HDEL', lock.alive, 'turn')
    elseif round.readers > 0 and redis.call('EXISTS', lock.writers) == 1 then
        end_turn_of_readers(lock)
    end
    return round.mine, round.mine_died
end

-- What let_in() does for most, when `id` gave back a lock that is not robust, and a writer is next: that has the lock now, or
-- waits for the last of the readers. False: let_in() has to look.
local function let_writer_in(holders, token_key, queue, alive, first, id, now, now_text, shared, other, phase_fair)
    local claim_ms, lives = terms_of_first(alive, first, id, now)
    if not claim_ms then
        return false
    elseif not is_writer(id) then
        local reader = redis.call('ZRANGE', holders, '0', '0', 'WITHSCORES')
        if reader[1] then
            return reader[2] * 1000 > now
        end
    end
    local token = next_token(token_key, now, now_text, shared)
    redis.call('ZADD', holders, math.floor(now / 1000) + claim_ms, first)
    local ends = redis.pcall('PEXPIRE', holders, claim_ms, 'NX') -- 0: it has an end, so there is somebody else
    if ends == 1 and phase_fair then
        redis.call('HDEL', alive, 'turn')
    end
    if ends ~= 1 or not tell(first, 'G ' .. first .. ' ' .. now_text .. ' ' .. claim_ms .. ' ' .. token .. ' 0') then
        redis.call('ZREM', holders, first)
        return take_back(ends, queue, alive, first, other)
    end
    leave_first(queue, alive, first, id, claim_ms, lives, now, other)
    return true
end
