-- holders.lua - who holds a read-write lock, and what it takes to become a holder
--
-- uses:     token
--
-- holders  sorted set, owner id -> end of its lease, server ms. An id ends in its mode, :r or :w; there are
--          readers or one writer. A member past its end is no holder, whatever other members are there.
-- mark     string, of robust locks only: "<owner id> <token> <1: its previous writer died>" of the last
--          writer, or "unrecoverable". A mark without a writer means that the writer died.
--
-- A lock is a table: the six keys, now_text, robust, shared (its token, with Redisson), order, see admit.lua, and of an asker
-- lease_ms and tries (it does not queue).
local READERS_MAX = 100000

local function is_writer(id)
    return string.sub(id, -2) == ':w'
end

-- Delete leases that have ended. Returns one holder, whose mode is that of all, or nil when the lock is free.
local function look(holders, now)
    local first = redis.call('ZRANGE', holders, 0, 0, 'WITHSCORES')
    if first[1] and tonumber(first[2]) <= math.floor(now / 1000) then
        redis.call('ZREMRANGEBYSCORE', holders, '-inf', math.floor(now / 1000))
        first = redis.call('ZRANGE', holders, 0, 0)
    end
    return first[1]
end

-- `id` as it stands among the holders, and the end of its lease; or nil. A writer that was downgraded stands there as a
-- reader.
local function held_as(holders, id)
    local ends = redis.call('ZSCORE', holders, id)
    if not ends and is_writer(id) then
        id = string.sub(id, 1, -2) .. 'r'
        ends = redis.call('ZSCORE', holders, id)
    end
    if ends then
        return id, tonumber(ends)
    end
end

-- Milliseconds until the last lease ends; -1 when the lock is free.
local function left_ms(holders, now)
    local last = redis.call('ZRANGE', holders, -1, -1, 'WITHSCORES')[2]
    return last and tonumber(last) - math.floor(now / 1000) or -1
end

-- The holders last as long as the last lease does, when it was renewed ...
local function end_with_last(holders, now)
    local left = left_ms(holders, now)
    if left ~= -1 then
        redis.call('PEXPIRE', holders, left)
    end
end

-- ... and at least for that long. A server out of memory allows it, and then what follows in the same script. Returns
-- how long that is.
local function outlast(holders, lease_ms, now)
    local lasts_ms = math.max(left_ms(holders, now), lease_ms)
    redis.call('PEXPIRE', holders, lasts_ms)
    return lasts_ms
end

-- Write `id` as holder, and let the holders last for its lease at least; longer, when the one with the longest lease has
-- left, does no harm. `others`: nil, or it is known that there are others, and so an end.
local function put(holders, id, lease_ms, now, others)
    redis.call('ZADD', holders, math.floor(now / 1000) + lease_ms, id)
    local ends = others and 0 or redis.pcall('PEXPIRE', holders, lease_ms, 'NX')
    if ends == 0 then
        ends = redis.pcall('PEXPIRE', holders, lease_ms, 'GT')
    end
    if type(ends) == 'table' then
        redis.call('ZREM', holders, id)
        error(ends)
    end
end

-- Has the previous writer died, with nobody having repaired the lock since? 1 or 0.
local function died_before(lock)
    return lock.robust and redis.call('EXISTS', lock.mark) or 0
end

local function write_mark(lock, id, token_text, died)
    if lock.robust then
        redis.call('SET', lock.mark, id .. ' ' .. token_text .. ' ' .. died)
    end
end

local READERS_TOKEN = '1' -- readers have none of their own

-- Write `id` as holder; returns the digits of its token, and whether a writer died. The mark is written first: no writer is
-- without one, and a mark whose writer was never written reports one death too many, which is safe.
local function grant(lock, id, lease_ms, now)
    local died, token = died_before(lock), READERS_TOKEN
    if is_writer(id) then
        token = next_token(lock.token, now, lock.now_text, lock.shared)
        write_mark(lock, id, token, died)
    end
    put(lock.holders, id, lease_ms, now)
    return token, died
end

-- Set the lease of a holder again, and nobody else's. Returns whether there is such a holder.
local function renew(holders, id, lease_ms, now)
    local mine, ends = held_as(holders, id)
    if not mine or ends <= math.floor(now / 1000) then
        return false
    end
    local lasts_ms = outlast(holders, lease_ms, now)
    redis.call('ZADD', holders, 'XX', math.floor(now / 1000) + lease_ms, mine)
    if lasts_ms > lease_ms + 0 then -- perhaps because of the lease that is renewed
        end_with_last(holders, now)
    end
    return true
end
