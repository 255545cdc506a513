-- admit.lua - the wait queue of a read-write lock, and how those in it come in
--
-- uses:     first queue holders token
local SHARED_TURN_MS = 1000 -- the readers have to leave first
-- Of two groups, readers and writers, the preferred one stands in front of the other in the queue, with scores below 0,
-- so that no script has to look for it after all the others. Its scores are arrivals less this number, which is larger
-- than any arrival, and exact in a double.
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

-- Take or keep a place in the queue, as enqueue() does. `alone`: the queue is empty.
local function line_up(lock, id, arrival, now, liveness_ms, alone)
    if string.sub(id, -1) ~= lock.prefer then
        return enqueue(lock.queue, lock.seen, id, arrival, now, lock.now_text, liveness_ms)
    end
    local place, known = arrival - FRONT, nil
    if arrival == 0 then
        local last = redis.call('ZRANGE', lock.queue, '(0', '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')[2]
        place, known = math.max(now - FRONT, last and tonumber(last) + 1 or -FRONT), not alone
    end
    return enqueue(lock.queue, lock.seen, id, place, now, lock.now_text, liveness_ms, known) + FRONT
end

-- A round is one hand-over, see queue.lua, with more fields: the lock; modes, those of the group whose turn it is;
-- in_front, whether that group stands in front of the other; readers, their number; writing, a writer came in; shut,
-- nobody else may come in; token, died, before: the digits of the token of the first writer tried, whether a writer died
-- before it, and the mark until then; asker, who needs no message; mine, mine_died: the asker's token once it is in, and
-- whether a writer died.

-- A writer that waits for readers to leave keeps out all after it; a writer that hears no message only in its turn.
local function keeps_out(round, id, sign)
    local unheard = sign and is_unheard(sign) and not tell(id, 'P') -- the asker has no sign here
    return not unheard or has_turn(round.seen, sign, round.now, round.turn_ms)
end

-- May `id` come in? True · false: `id` is passed over · nil: neither `id` nor any waiter after it may.
local function may_enter(round, id, sign)
    if round.writing or round.shut then
        return nil
    elseif not string.find(round.modes, string.sub(id, -1), 1, true) then
        if round.in_front then
            return nil -- all of the group were tried
        end
        return false
    elseif is_writer(id) and round.readers > 0 then
        round.shut = keeps_out(round, id, sign)
    elseif not is_writer(id) and round.readers >= READERS_MAX then
        return nil
    else
        return true
    end
    if round.shut then
        return nil
    end
    return false
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

local function take(id, claim_ms, sign, round)
    local may = may_enter(round, id, sign)
    if not may then
        return may
    end
    local token, died = admit(round, id, claim_ms)
    if id == round.asker then
        round.mine, round.mine_died = token, died
    end
    return string.format('G %s %s %d %s %d', id, round.lock.now_text, claim_ms, token, died)
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

-- While the lock is held, nothing tells which claims stand.
local function none_is_known_to_end()
    return false
end

-- A try has the last place of its group.
local function let_in_group(round, modes, in_front)
    local lock, asker = round.lock, round.asker
    round.modes, round.in_front = modes, in_front
    hand_over(round, asker, lock.lease_ms or CLAIM_MS, round.ended, true)
    if asker and lock.tries then
        take(asker, lock.lease_ms, nil, round)
    end
end

-- Let waiters in, as far as the lock is free for them: one writer, or all readers up to a writer that goes before them.
-- Returns the token of the asker if it is in, else nil, and whether a writer died.
local function let_in(lock, asker, now)
    local holder = look(lock.holders, now)
    if holder and is_writer(holder) then
        return nil
    end
    local round = { queue = lock.queue, seen = lock.seen, now = now, turn_ms = SHARED_TURN_MS, take = take, undo = undo,
        lock = lock, asker = asker, readers = holder and redis.call('ZCARD', lock.holders) or 0,
        ended = holder and none_is_known_to_end }
    let_in_group(round, lock.prefer, true)
    if lock.prefer ~= 'rw' then
        let_in_group(round, lock.prefer == 'r' and 'w' or 'r', false)
    end
    return round.mine, round.mine_died
end

-- What let_in() does for most, when `id` gave back a lock that is not robust: a writer is the first in `line`, and either
-- has the lock now or waits for the last of the readers. False: let_in() has to look.
local function let_writer_in(holders, token_key, queue, seen, line, id, now, now_text, shared)
    local first = line[1]
    if first == id or not is_writer(first) then
        return false
    end
    local note, claim_ms = terms_of_first(seen, first, id, now)
    if not note then
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
        return type(ends) == 'table' and error(ends)
    end
    leave_first(queue, seen, first, id, line[2] and note)
    return true
end
