-- leased.lua - permits with a lease each
-- uses:     admission first
--
-- permits  sorted set, permit -> server milliseconds at which it ends. A permit is the id of its owner, or
--          32 hex digits of its own; an owner of n has also "<permit>/2" to "<permit>/n". Permits that ended are
--          remembered for ten minutes, so that a late release can be told what happened. Scores below 0 are those of
--          `token`, the last fencing token, and of `deleted`, when the last semaphore of this name was deleted.

local REMEMBERED_MS, LASTS_MS = 600000, 86400000 -- the second is for the tokens; those of an anonymous one go with it
local MINUTE_US = 60000000

-- The permit that a waiter's id, or an id of its own, stands for, and how many parts it has.
local function permit_of(id)
    local n, own = string.match(id, '^%x+:%w+:%d+:(%d+):?(%x*)$')
    return own and own ~= '' and own or id, tonumber(n) or 1
end

local function part(permit, i)
    return i == 1 and permit or permit .. '/' .. i
end

local function is_live(permits, permit, now)
    local ends = tonumber(redis.call('ZSCORE', permits, permit) or '')
    return ends and ends > math.floor(now / 1000), ends
end

local function free_permits(permits, total, now)
    return total - redis.call('ZCOUNT', permits, '(' .. math.floor(now / 1000), '+inf')
end

-- Free the parts above `kept`. A server out of memory allows it.
local function unlend(permits, permit, kept, n)
    for i = n, kept + 1, -1 do
        redis.call('ZREM', permits, part(permit, i))
    end
end

-- The token after `last`, nil if there was none; it is larger than all before it, as those of token.lua.
local function token_after(last, now)
    return math.max(now, (last or 0) + 1)
end

local function negative(number)
    return string.format('-%.0f', number)
end

local function last_permit_token(permits)
    local score = redis.call('ZSCORE', permits, 'token')
    return score and -tonumber(score)
end

-- The first grant of a minute lets the permits last for half a day at least, and forgets old ones. Was that the last one,
-- or one after it, and is that enough for this lease?
local function lasts_for(lease_ms, last, now)
    return last and last - last % MINUTE_US == now - now % MINUTE_US and lease_ms + 2 * REMEMBERED_MS < LASTS_MS / 2
end

-- Write a permit of one part, where lasts_for() says so; returns the digits of its token.
local function lend_one(permits, permit, lease_ms, now, now_text, last)
    local token = last < now and now_text or string.format('%.0f', last + 1)
    redis.call('ZADD', permits, math.floor(now / 1000) + lease_ms, permit, '-' .. token, 'token')
    return token
end

-- Write all parts of a permit with that lease, and the token after `last`, which is returned.
local function lend(permits, permit, n, lease_ms, now, last, anonymous)
    local ends_ms, token = math.floor(now / 1000) + lease_ms, token_after(last, now)
    do_or_undo(function()
        redis.call('ZADD', permits, ends_ms, permit, negative(token), 'token')
        for i = 2, n do
            redis.call('ZADD', permits, ends_ms, part(permit, i))
        end
        local lasts_ms = anonymous and 0 or LASTS_MS
        if redis.call('PTTL', permits) < math.max(lease_ms + REMEMBERED_MS, lasts_ms / 2) then
            redis.call('PEXPIRE', permits, math.max(lease_ms + REMEMBERED_MS, lasts_ms))
        end
    end, function()
        unlend(permits, permit, 0, n)
        if last then
            redis.call('ZADD', permits, negative(last), 'token') -- the first one of a minute is still to come
        else
            redis.call('ZREM', permits, 'token')
        end
    end)
    redis.call('ZREMRANGEBYSCORE', permits, 0, math.floor(now / 1000) - REMEMBERED_MS)
    return token
end

-- All permits end, held or not, and the moment is noted; the tokens go on.
local function end_all(permits, now)
    redis.call('ZREMRANGEBYSCORE', permits, 0, '+inf')
    redis.call('ZADD', permits, negative(now), 'deleted')
    do_or_undo(function()
        if redis.call('PTTL', permits) < REMEMBERED_MS then
            redis.call('PEXPIRE', permits, REMEMBERED_MS)
        end
    end, function()
        redis.call('ZREM', permits, 'deleted')
    end)
end

-- Set the lease of the parts that exist; lends nothing. A server out of memory allows it.
local function renew_parts(permits, permit, n, lease_ms, now)
    local ends_ms = math.max(redis.call('PTTL', permits), lease_ms + REMEMBERED_MS) -- even of a key made persistent
    redis.call('PEXPIRE', permits, ends_ms)
    for i = 1, n do
        redis.call('ZADD', permits, 'XX', math.floor(now / 1000) + lease_ms, part(permit, i))
    end
end

-- Set the lease of the permit of `id` again. Returns whether there is such a permit.
local function renew(permits, id, parts, lease_ms, now)
    local permit = permit_of(id)
    if not is_live(permits, permit, now) then
        return false
    end
    renew_parts(permits, permit, parts, lease_ms, now)
    return true
end

-- Hand free permits to waiters. Returns how many are free then, whether the asker gets its permits, and whether
-- waiters are left that go first. The asker only leaves the queue: the caller takes its permits.
local function lend_out(permits, queue, alive, asker, total, now, anonymous)
    local round = { queue = queue, alive = alive, now = now, free = free_permits(permits, total, now) }
    function round.take(id, its_claim_ms, _, quiet)
        local permit, n = permit_of(id)
        if n > total and id ~= asker then
            tell(id, 'F ' .. id) -- its ask says that it never gets them, and it blocks nobody
            return false
        end
        local enough = set_aside(round, id, n, asker, quiet)
        if not enough or id == asker then
            return enough
        end
        local token = lend(permits, permit, n, its_claim_ms, now, last_permit_token(permits), anonymous)
        return string.format('G %s %.0f %s %.0f 0', id, now, its_claim_ms, token)
    end
    function round.undo(id)
        local permit, n = permit_of(id)
        unlend(permits, permit, 0, n)
        round.free = round.free + n
    end
    local got = round.free > 0 and hand_over(round, asker, nil, true)
    return round.free, got, round.blocked or round.shut
end

-- What lend_out() does for most: as many permits are free as the first in `line` wants, one, and nothing speaks against that
-- waiter. False: lend_out() has to look.
local function lend_first(permits, total, queue, alive, line, id, now, now_text, last)
    local first = line[1]
    local permit, n = permit_of(first)
    local claim_ms, lives = terms_of_first(alive, first, id, now)
    if n ~= 1 or first == id or not claim_ms or not lasts_for(claim_ms, last, now) or
        free_permits(permits, total, now) ~= 1 then
        return false
    end
    local token = lend_one(permits, permit, claim_ms, now, now_text, last)
    if not tell(first, 'G ' .. first .. ' ' .. now_text .. ' ' .. claim_ms .. ' ' .. token .. ' 0') then
        redis.call('ZREM', permits, permit)
        silence(queue, alive, first)
        return false
    end
    leave_first(queue, alive, first, id, claim_ms, lives, now)
    return true
end
