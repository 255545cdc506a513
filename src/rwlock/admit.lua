-- admit.lua - the wait queue of a read-write lock, and how those in it come in
--
-- uses:     queue holders
local ROUND_MAX = 1000
local SHARED_TURN_MS = 1000 -- first those who read have to leave
-- Of two groups, readers and writers, the preferred one stands in front of the other in the queue, below 0: so nobody
-- looks for it behind all the others. This is what its scores lack: more than any arrival, and exact in a double.
local FRONT = 2 ^ 52

-- Take or keep a place in the queue; as enqueue(). `alone`: nobody is there.
local function line_up(lock, id, arrival, now, liveness_ms, alone)
    if string.sub(id, -1) ~= lock.prefer then
        return enqueue(lock.queue, lock.seen, id, arrival, now, liveness_ms)
    end
    local place, known = arrival - FRONT, nil
    if arrival == 0 then
        local last = redis.call('ZRANGE', lock.queue, '(0', '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')[2]
        place, known = math.max(now - FRONT, last and tonumber(last) + 1 or -FRONT), not alone
    end
    return enqueue(lock.queue, lock.seen, id, place, now, liveness_ms, known) + FRONT
end

-- A round is one hand-over, as queue.lua has it, and besides: the lock; modes, of the group whose turn it is; in_front,
-- whether that is the one in front of all others; readers, how many there are; writing, a writer came in; shut, nobody
-- else may; told, how many came in; token, died, before: of the first writer that was tried, and the mark until then;
-- asker, who needs no message, and once it is in mine, mine_died: its token, and whether a writer died.

-- A writer that waits for readers to leave keeps out all behind it; one that hears no message only when it has a turn.
local function keeps_out(round, id, sign)
    local unheard = sign and is_unheard(sign) and not tell(id, 'P') -- the asker has no sign here
    return not unheard or has_turn(round.seen, sign, round.now, round.turn_ms)
end

-- May `id` come in? True · false: it is passed over · nil: neither it nor anybody behind it may.
local function may_enter(round, id, sign)
    if round.writing or round.shut then
        return nil
    elseif not string.find(round.modes, string.sub(id, -1), 1, true) then
        if round.in_front then
            return nil -- its group is through
        end
        return false
    elseif is_writer(id) and round.readers > 0 then
        round.shut = keeps_out(round, id, sign)
    elseif not is_writer(id) and round.readers >= READERS_MAX then
        return nil
    elseif round.told >= ROUND_MAX then
        round.shut = tell(id, 'F ' .. id) -- this script took long enough: the next one goes on
    else
        return true
    end
    if round.shut then
        return nil
    end
    return false
end

-- Write `id` as holder; returns its token, and whether a writer died.
local function admit(round, id, claim_ms)
    local lock, now = round.lock, round.now
    if not is_writer(id) then
        round.readers = round.readers + 1
        return grant(lock, id, claim_ms, now)
    end
    round.writing = true
    if round.token then -- not the first one that is tried: nothing but the owner changes
        write_mark(lock, id, round.token, round.died)
        put(lock.holders, id, claim_ms, now)
    else
        round.before = lock.robust and redis.call('GET', lock.mark)
        round.token, round.died = grant(lock, id, claim_ms, now)
    end
    return round.token, round.died
end

local function take(id, claim_ms, sign, round)
    local may = may_enter(round, id, sign)
    if not may then
        return may
    end
    local token, died = admit(round, id, claim_ms)
    round.told = round.told + 1
    if id == round.asker then
        round.mine, round.mine_died = token, died
    end
    return string.format('G %s %.0f %d %.0f %d', id, round.now, claim_ms, token, died)
end

local function undo(id, round)
    local lock = round.lock
    redis.call('ZREM', lock.holders, id)
    round.told = round.told - 1
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

-- While somebody holds it, nobody can tell which claims stand.
local function none_is_known_to_end()
    return false
end

-- Who only tries stands behind all others of its group.
local function let_in_group(round, modes, in_front)
    local lock, asker = round.lock, round.asker
    round.modes, round.in_front = modes, in_front
    hand_over(round, asker, lock.claim_ms, round.ended, true)
    if asker and lock.tries then
        take(asker, lock.claim_ms, nil, round)
    end
end

-- Let in those who wait, as far as there is room: one writer, or all readers up to a writer that has to go before them.
-- Returns the token of the asker if it is in, or nil, and whether a writer died.
local function let_in(lock, asker, now)
    local holder = look(lock.holders, now)
    if holder and is_writer(holder) then
        return nil
    end
    local round = { queue = lock.queue, seen = lock.seen, now = now, turn_ms = SHARED_TURN_MS, take = take, undo = undo,
        lock = lock, asker = asker, told = 0, readers = holder and redis.call('ZCARD', lock.holders) or 0,
        ended = holder and none_is_known_to_end }
    let_in_group(round, lock.prefer, true)
    if lock.prefer ~= 'rw' then
        let_in_group(round, lock.prefer == 'r' and 'w' or 'r', false)
    end
    return round.mine, round.mine_died
end
