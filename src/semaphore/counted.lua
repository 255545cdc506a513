-- counted.lua - permits that are a plain number, in the layout of Redisson's RSemaphore
-- uses:     admission first idempotent redisson whole
--
-- name    string, how many permits are free; may be negative. No key: none
-- claims  sorted set, waiter's id -> server milliseconds by which it has to confirm what it was granted

local CLAIMS_MS = '2592000000' -- a permit of a waiter that died comes back with the next request, even after weeks

-- Set a number where there was none. Claims are left of a semaphore that was deleted: put back, their permits would be
-- too many. The number is written first, as a server out of memory refuses that.
local function set_number(name, claims, total, n)
    redis.call('SET', name, n)
    do_or_undo(function()
        redis.call('DEL', claims)
        write_total(total, n)
    end, function()
        redis.call('DEL', name)
    end)
end

-- Write a total, nil if nobody said how many there are, and record that the request is done. Undone, the number of the
-- request is spent.
local function resize_recorded(total, n, once, owner, nth, now)
    idempotent_record(once, owner, nth, 1, now)
    do_or_undo(function()
        write_total(total, n)
    end, function()
        idempotent_record(once, owner, nth, IDEMPOTENT_OVERTAKEN, now)
    end)
end

-- The parts of a waiter's id: its slot in the idempotency record, the digits of the request's number, and how many permits
-- it wants.
local function taker_of(id)
    local owner, nth, n = string.match(id, '^(%x+:%w+):(%d+):(%d+)$')
    return owner, nth, n + 0
end

-- Take permits, and record who has them.
local function take_recorded(name, n, once, owner, nth, result, now)
    redis.call('DECRBY', name, n)
    do_or_undo(function()
        idempotent_record(once, owner, nth, result, now)
    end, function()
        redis.call('INCRBY', name, n)
    end)
end

-- Put the permits of a claim back. The number is written first, as a server out of memory refuses that.
local function unclaim(name, claims, id, n)
    redis.call('INCRBY', name, n)
    do_or_undo(function()
        redis.call('ZREM', claims, id)
    end, function()
        redis.call('DECRBY', name, n)
    end)
end

-- Put back permits of waiters that did not confirm in time; returns how many.
local function reclaim(name, claims, now)
    local back = 0
    local late = redis.call('ZRANGEBYSCORE', claims, '-inf', now / 1000, 'WITHSCORES', 'LIMIT', 0, 32)
    for i = 1, #late, 2 do
        unclaim(name, claims, late[i], wanted(late[i]))
        back = back + wanted(late[i])
    end
    return back
end

-- Hand `free` permits to waiters; returns what lend_out() of leased.lua returns.
local function hand_out(name, claims, queue, alive, asker, free, now)
    local round = { queue = queue, alive = alive, now = now, free = free }
    function round.take(id, its_claim_ms, _, quiet)
        local n = wanted(id)
        local enough = set_aside(round, id, n, asker, quiet)
        if not enough or id == asker then
            return enough
        end
        local ends = math.floor(now / 1000) + its_claim_ms
        if redis.call('ZADD', claims, 'NX', ends, id) == 1 then -- 0: the waiter has them already
            do_or_undo(function()
                local lasts_ms = redis.call('PTTL', name) -- of an anonymous one; its users lengthen both
                if lasts_ms > 0 then
                    lasts_ms = math.max(lasts_ms, 2 * its_claim_ms, redis.call('PTTL', claims))
                end
                redis.call('PEXPIRE', claims, lasts_ms > 0 and lasts_ms or CLAIMS_MS)
                redis.call('DECRBY', name, n)
            end, function()
                redis.call('ZREM', claims, id)
            end)
        end
        return string.format('G %s %.0f %s 1 0', id, now, its_claim_ms)
    end
    function round.undo(id)
        unclaim(name, claims, id, wanted(id))
        round.free = round.free + wanted(id)
    end
    local got = free > 0 and hand_over(round, asker, nil, true)
    return round.free, got, round.blocked or round.shut
end

-- How many of the `free` permits may be taken by us: all, but one while Java has its turn, of which there are `turn`
-- milliseconds left.
local function free_for_us(free, turn)
    return turn > 0 and free > 0 and free - 1 or free
end

-- Permits became free: our waiters get them, and Redisson's are told of the rest. On a semaphore shared with Redisson,
-- one time in sixteen Redisson's waiters have a turn, if they listen, as a hand-over leaves nothing for them.
local function pass_on(name, claims, queue, alive, free, now, channel, shared)
    if free <= 0 then
        return
    end
    local first = redis.call('ZRANGE', queue, 0, 0)[1]
    if first and shared and now % 16 == 0 and tell_redisson(channel, string.format('%.0f', free)) then
        begin_javas_turn(alive, now, KEEP_MS)
        if tell(first, 'F ' .. first) then -- it asks when that is over; else nobody would
            return
        end
    end
    if first then
        local ours = free_for_us(free, shared and javas_turn_left(alive, now) or 0)
        free = free - ours + hand_out(name, claims, queue, alive, nil, ours, now)
    end
    if free > 0 then
        publish(channel, string.format('%.0f', free))
    end
end

-- What give and pass_on() do for most, where others wait: `n` permits are given where none was free, and the first waiter
-- wants as many, so they are never free. True: it has them · nil: they are given and free, as it does not listen · false:
-- nothing was done.
local function give_first(name, claims, queue, alive, once, id, nth, n, now, now_text)
    local first = redis.call('ZRANGE', queue, '0', '0')[1]
    if not first or wanted(first) ~= n then
        return false
    end
    local claim_ms, lives = terms_of_first(alive, first, first, now)
    if not claim_ms then
        return false
    end
    redis.call('EXPIRE', once, IDEMPOTENT_LASTS) -- first: then a server out of memory allows the rest
    if redis.call('ZADD', claims, 'NX', math.floor(now / 1000) + claim_ms, first) == 0 then
        return false -- it has a claim already
    end
    local failed = redis.pcall('PEXPIRE', claims, CLAIMS_MS)
    failed = type(failed) == 'table' and failed or idempotent_write(once, id, nth, '1', now_text)
    if failed then
        redis.call('ZREM', claims, first)
        error(failed)
    elseif not tell(first, 'G ' .. first .. ' ' .. now_text .. ' ' .. claim_ms .. ' 1 0') then
        unclaim(name, claims, first, n)
        silence(queue, alive, first)
        return nil
    end
    leave_first(queue, alive, first, first, claim_ms, lives, now)
    return true
end
