-- admit.lua - the wait queue of a read-write lock, and how those in it come in
--
-- uses:     first queue holders token
-- Of two groups, readers and writers, the preferred one stands in front of the other in the queue, with scores below 0,
-- so that no script has to look for it after all the others. Its scores are arrivals less this number, which is larger
-- than any arrival, and exact in a double.
-- In phase-fair order readers stand in front of writers, as a writer is followed by all readers that came meanwhile. While
-- readers have the lock, the next writer stands in front as well, and new readers behind it: the first of them that comes
-- puts it there. So the queue is in the order of turns, whoever serves it, and nobody has to know whose phase it is.
local FRONT = 2 ^ 52

-- A reader that came behind another one of its client, with nobody between them, takes no place of its own: that client
-- has all of them ask, with the other one's number, when that one is in. Returns this number and the id; or nil.
-- `in_front`: readers stand in front of writers.
local function place_of_ours(queue, id, in_front)
    local last = in_front and
        redis.call('ZRANGE', queue, '(0', '-inf', 'BYSCORE', 'REV', 'LIMIT', '0', '1', 'WITHSCORES') or
        redis.call('ZRANGE', queue, '-1', '-1', 'WITHSCORES')
    local ours = last[1]
    if ours and not is_writer(ours) and client_of(ours) == client_of(id) then
        return last[2] + (in_front and FRONT or 0), ours
    end
end

-- The same for a reader in phase-fair order while readers have the lock: a writer has to be the first of those in front.
-- Where many stand there, it does not look.
local function place_behind_writer(queue, id)
    local front = redis.call('ZRANGE', queue, '-inf', '(0', 'BYSCORE', 'LIMIT', '0', '8', 'WITHSCORES')
    local ours = front[#front - 1]
    if ours and #front < 16 and is_writer(front[1]) and not is_writer(ours) and client_of(ours) == client_of(id) then
        return front[#front] + FRONT, ours
    end
end

-- The score of a newcomer behind all those in front.
local function last_in_front(queue, now)
    local last = redis.call('ZRANGE', queue, '(0', '-inf', 'BYSCORE', 'REV', 'LIMIT', '0', '1', 'WITHSCORES')[2]
    return math.max(now - FRONT, last and last + 1 or -FRONT)
end

-- A newcomer stands behind all those in front. `alone`: the queue is empty. Returns its number.
local function stand_in_front(queue, alive, id, now, now_text, terms, alone)
    local place = alone and now - FRONT or last_in_front(queue, now)
    return enqueue(queue, alive, id, place, now, now_text, terms, not alone) + FRONT
end

-- Take or keep a place in the queue, as enqueue() does. `alone`: the queue is empty.
local function line_up(lock, id, arrival, now, terms, alone)
    local in_front = string.sub(id, -1) == lock.front
    if in_front and arrival == 0 then
        return stand_in_front(lock.queue, lock.alive, id, now, lock.now_text, terms, alone)
    end
    local place = in_front and arrival - FRONT or arrival
    local number = enqueue(lock.queue, lock.alive, id, place, now, lock.now_text, terms)
    return number < 0 and number + FRONT or number
end

-- So many of those in front are looked at, from each end, and so many writers behind them.
local LOOK_MAX, WRITERS_MAX = 16, 8

-- Append the writers among these waiters.
local function append_writers(writers, ids)
    for _, id in ipairs(ids) do
        if is_writer(id) then
            writers[#writers + 1] = id
        end
    end
end

-- The writers in front, and the first ones of the others; how many of them are in front, and whether there may be more.
local function writers_in_line(queue)
    local writers = {}
    local front = redis.call('ZRANGE', queue, '-inf', '(0', 'BYSCORE', 'LIMIT', '0', LOOK_MAX)
    append_writers(writers, front)
    if #front == LOOK_MAX and #writers == 0 then
        append_writers(writers, redis.call('ZRANGE', queue, '(0', '-inf', 'BYSCORE', 'REV', 'LIMIT', '0', LOOK_MAX))
    end
    local in_front = #writers
    local back = redis.call('ZRANGE', queue, '0', '+inf', 'BYSCORE', 'LIMIT', '0', WRITERS_MAX)
    append_writers(writers, back)
    return writers, in_front, #back == WRITERS_MAX
end

-- Phase-fair order, and a reader comes while no writer has the lock: the next writer is to stand in front, and the reader
-- behind it. Writers of silent clients do not count, or readers would pass for ever those behind them. Returns false
-- when there are so many of them that the reader has to stand behind all writers.
local function put_writer_in_front(queue, alive, now)
    local writers, in_front, more = writers_in_line(queue)
    local lives = lives_of(alive, writers)
    for i = 1, #writers do
        if life_of(lives[i]) * 1000 > now then
            if i > in_front then
                redis.call('ZADD', queue, 'XX', string.format('%.0f', last_in_front(queue, now)), writers[i])
            end
            return true
        end
    end
    return not more
end

-- A round is one hand-over, see queue.lua, with more fields: the lock; modes, those of the group whose turn it is;
-- in_front, whether that group stands in front of the other; readers, their number; writing, a writer came in; shut,
-- nobody else may come in; token, died, before: the digits of the token of the first writer tried, whether a writer died
-- before it, and the mark until then; asker, who needs no message; mine, mine_died:
-- the asker's token once it is in, and whether a writer died.

-- May `id` come in? True · 'pass': `id` is passed over · nil: neither `id` nor any waiter after it may.
local function may_enter(round, id)
    if round.writing or round.shut then
        return nil
    elseif not string.find(round.modes, string.sub(id, -1), 1, true) then
        if round.in_front then
            return nil -- all of the group were tried
        end
        return 'pass'
    elseif is_writer(id) and round.readers > 0 then
        round.shut = true -- a writer that waits for readers to leave keeps out all after it
        return nil
    elseif not is_writer(id) and round.readers >= READERS_MAX then
        return nil
    end
    return true
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
    round.before = lock.robust and redis.call('GET', lock.mark)
    round.token, round.died = grant(lock, id, claim_ms, now)
    return round.token, round.died
end

local function take(id, claim_ms, round)
    local may = may_enter(round, id)
    if may ~= true then
        return may
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
    if round.before then
        redis.call('SET', lock.mark, round.before)
    elseif lock.robust then
        redis.call('DEL', lock.mark)
    end
end

-- A try has the last place of its group.
local function let_in_group(round, modes, in_front)
    local lock, asker = round.lock, round.asker
    round.modes, round.in_front = modes, in_front
    hand_over(round, asker, lock.lease_ms, true)
    if asker and lock.tries then
        take(asker, lock.lease_ms, round)
    end
end

-- Let waiters in, as far as the lock is free for them: one writer, or all readers up to a writer that goes before them.
-- Returns the token of the asker if it is in, else nil, and whether a writer
-- died.
local function let_in(lock, asker, now)
    local holder = look(lock.holders, now)
    if holder and is_writer(holder) then
        return nil
    end
    local round = { queue = lock.queue, alive = lock.alive, now = now, take = take, undo = undo,
        lock = lock, asker = asker, readers = holder and redis.call('ZCARD', lock.holders) or 0 }
    let_in_group(round, lock.prefer, true)
    if lock.prefer ~= 'rw' then
        let_in_group(round, lock.prefer == 'r' and 'w' or 'r', false)
    end
    return round.mine, round.mine_died
end

-- What let_in() does for most, when `id` gave back a lock that is not robust: a writer is the first in `line`, and either
-- has the lock now or waits for the last of the readers. False: let_in() has to look.
local function let_writer_in(holders, token_key, queue, alive, line, id, now, now_text, shared)
    local first = line[1]
    if first == id or not is_writer(first) then
        return false
    end
    local claim_ms, lives = terms_of_first(alive, first, id, now)
    if not claim_ms then
        return false
    elseif not is_writer(id) then
        local other = redis.call('ZRANGE', holders, '0', '0', 'WITHSCORES')
        if other[1] then
            return other[2] * 1000 > now
        end
    end
    local token = next_token(token_key, now, now_text, shared)
    redis.call('ZADD', holders, math.floor(now / 1000) + claim_ms, first)
    local ends = redis.pcall('PEXPIRE', holders, claim_ms, 'NX') -- 0: it has an end, so there is somebody else
    if ends ~= 1 or not tell(first, 'G ' .. first .. ' ' .. now_text .. ' ' .. claim_ms .. ' ' .. token .. ' 0') then
        redis.call('ZREM', holders, first)
        return take_back(ends, queue, alive, first)
    end
    leave_first(queue, alive, first, id, claim_ms, lives, now)
    return true
end
