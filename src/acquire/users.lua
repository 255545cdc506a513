-- users.lua - an anonymous object lives as long as somebody uses it
-- uses:     rollback
--
-- users  sorted set, id -> server milliseconds until which that one uses it; a client is renewed as a hold is

-- Set the end of a key, but never an earlier one, nor one of a key that has none.
local function lengthen(key, ms)
    redis.call('PEXPIRE', key, ms, 'GT')
end

local function join_users(users, id, lease_ms, now)
    redis.call('ZADD', users, math.floor(now / 1000) + lease_ms, id)
    do_or_undo(function()
        if redis.call('PEXPIRE', users, lease_ms, 'GT') == 0 and redis.call('ZCARD', users) == 1 then
            redis.call('PEXPIRE', users, lease_ms) -- the only one; it may have no end yet, or a later one
        end
    end, function()
        redis.call('ZREM', users, id)
    end)
end

local function is_user(users, id, now)
    local ends = tonumber(redis.call('ZSCORE', users, id) or '')
    return ends and ends > math.floor(now / 1000)
end

-- Returns whether that was the last one.
local function quit_users(users, id, now)
    redis.call('ZREM', users, id)
    redis.call('ZREMRANGEBYSCORE', users, 0, math.floor(now / 1000))
    return redis.call('ZCARD', users) == 0
end
