-- share.lua - who may hold a read-write lock, and what it takes to become a holder
-- uses:     token queue
--
-- holders  sorted set, owner id -> end of its lease, server ms. An id ends in its mode, :r or :w; there are
--          readers or one writer. Who is past its end is no holder, whoever else may be one.
-- mark     string, of robust locks only: "<owner id> <token> <1: its previous writer died>" of the last
--          writer, or "unrecoverable". A mark without a writer means that the writer died.
--
-- A lock is a table: the five keys, claim_ms, robust, shared (its token, with Redisson), and prefer: the
-- modes that get their turn together, one such group after the other. Of two groups the first stands in front
-- of the other in the queue, below 0: so nobody looks for it behind all the others.
local READERS_MAX, ROUND_MAX = 100000, 1000
local SHARED_TURN_MS = 1000 -- first those who read have to leave
local FRONT = 2 ^ 52 -- what the scores of the first group lack: more than any arrival, and exact in a double

local function new_lock(holders, token, queue, seen, mark, letters)
    local function has(letter)
        return string.find(letters, letter, 1, true) ~= nil
    end
    local prefer = has('R') and { 'r', 'w' } or has('W') and { 'w', 'r' } or { 'rw' }
    return { holders = holders, token = token, queue = queue, seen = seen, mark = mark, prefer = prefer,
        robust = has('r'), shared = has('j'), tries = has('t') }
end

local function is_writer(id)
    return string.sub(id, -2) == ':w'
end

-- Ended leases go. Returns one holder, whose mode is that of all, or nil when it is free.
local function look(lock, now)
    local first = redis.call('ZRANGE', lock.holders, 0, 0, 'WITHSCORES')
    if first[1] and tonumber(first[2]) <= math.floor(now / 1000) then
        redis.call('ZREMRANGEBYSCORE', lock.holders, '-inf', math.floor(now / 1000))
        first = redis.call('ZRANGE', lock.holders, 0, 0)
    end
    return first[1]
end

-- How long until the last lease ends; -1 when it is free.
local function left_ms(lock, now)
    local last = redis.call('ZRANGE', lock.holders, -1, -1, 'WITHSCORES')[2]
    return last and tonumber(last) - math.floor(now / 1000) or -1
end

-- `id` as it stands among the holders, or nil: a writer that was downgraded is there as a reader.
local function held_as(lock, id)
    local reader = string.sub(id, 1, -2) .. 'r'
    return redis.call('ZSCORE', lock.holders, id) and id or redis.call('ZSCORE', lock.holders, reader) and reader
        or nil
end

local function put(lock, id, lease_ms, now)
    redis.call('ZADD', lock.holders, math.floor(now / 1000) + lease_ms, id)
    whole(function()
        redis.call('PEXPIRE', lock.holders, left_ms(lock, now))
    end, function()
        redis.call('ZREM', lock.holders, id)
    end)
end

-- Has its previous writer died, and nobody repaired it?
local function is_broken(lock)
    return lock.robust and redis.call('EXISTS', lock.mark) == 1
end

local function write_mark(lock, id, token, died)
    if lock.robust then
        redis.call('SET', lock.mark, id .. ' ' .. string.format('%.0f', token) .. ' ' .. died)
    end
end

-- Write `id` as holder; returns its token, of a reader the last writer's or 1, and whether a writer died. No
-- writer is without its mark, so that comes first; a mark that nobody got to hold says too much.
local function grant(lock, id, lease_ms, now)
    local died = is_broken(lock) and 1 or 0
    if not is_writer(id) then
        put(lock, id, lease_ms, now)
        return math.max(last_token(lock.token), 1), died
    end
    local token = next_token(lock.token, now, lock.shared)
    write_mark(lock, id, token, died)
    put(lock, id, lease_ms, now)
    return token, died
end

-- Take or keep a place in the queue; as enqueue(). `alone`: nobody is there.
local function line_up(lock, id, arrival, now, liveness_ms, alone)
    if string.sub(id, -1) ~= lock.prefer[1] then
        return enqueue(lock.queue, lock.seen, id, arrival, now, liveness_ms)
    end
    local place, known = arrival - FRONT, nil
    if arrival == 0 then
        local last = redis.call('ZRANGE', lock.queue, '(0', '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')[2]
        place, known = math.max(now - FRONT, last and tonumber(last) + 1 or -FRONT), not alone
    end
    return enqueue(lock.queue, lock.seen, id, place, now, liveness_ms, known) + FRONT
end

-- Hand what room there is to those who wait: one writer, or all readers up to a writer that has to go
-- before them. The asker needs no message; if it only tries it stands behind all others. Returns its token,
-- or nil, and whether a writer died.
local function serve(lock, asker, now)
    local holder = look(lock, now)
    if holder and is_writer(holder) then
        return nil
    end
    local readers, writing, shut = holder and redis.call('ZCARD', lock.holders) or 0, false, false
    local told, before, token, died, modes, first, mine, mine_died = 0

    -- While somebody holds it, nobody can tell which claims stand.
    local function ended()
        return not holder
    end
    local function take_writer(id, claim_ms)
        if token then -- not the first one that is tried: nothing but the owner changes
            write_mark(lock, id, token, died)
            put(lock, id, claim_ms, now)
        else
            before = lock.robust and redis.call('GET', lock.mark)
            token, died = grant(lock, id, claim_ms, now)
        end
        writing = true
        return token, died
    end
    local function take_reader(id, claim_ms)
        readers = readers + 1
        return grant(lock, id, claim_ms, now)
    end
    local function take(id, claim_ms, sign)
        if writing or shut then
            return nil
        elseif not string.find(modes, string.sub(id, -1), 1, true) then
            if first then
                return nil -- it stands in front of all others
            end
            return false
        elseif is_writer(id) and readers > 0 then
            local passed = sign and is_unheard(sign) and not tell(id, 'P') -- the asker has no sign here
            if passed and not has_turn(lock.seen, sign, now, SHARED_TURN_MS) then
                return false
            end
            shut = true -- it waits, and readers behind it do
            return nil
        elseif not is_writer(id) and readers >= READERS_MAX then
            return nil
        elseif told >= ROUND_MAX then -- this script took long enough: the next one goes on
            shut = tell(id, 'F ' .. id)
            if shut then
                return nil
            end
            return false
        end
        local its_token, its_died = (is_writer(id) and take_writer or take_reader)(id, claim_ms)
        told = told + 1
        if id == asker then
            mine, mine_died = its_token, its_died
        end
        return string.format('G %s %.0f %d %.0f %d', id, now, claim_ms, its_token, its_died)
    end
    local function undo(id)
        redis.call('ZREM', lock.holders, id)
        told = told - 1
        if not is_writer(id) then
            readers = readers - 1
            return
        end
        writing = false
        if before then
            redis.call('SET', lock.mark, before)
        elseif lock.robust then
            redis.call('DEL', lock.mark)
        end
    end

    local round = { queue = lock.queue, seen = lock.seen, now = now, turn_ms = SHARED_TURN_MS, take = take,
        undo = undo }
    for i, group in ipairs(lock.prefer) do
        modes, first = group, i == 1
        hand_over(round, asker, lock.claim_ms, ended, true)
        if asker and lock.tries then
            take(asker, lock.claim_ms)
        end
    end
    return mine, mine_died
end
