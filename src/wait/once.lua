-- once.lua - a request that comes twice takes effect once
--
-- key  hash, owner -> "<number> <result>" of its last request. An owner makes one request after the other
--      and numbers them upwards: what does not come after the last one is a copy, which nobody awaits.

-- The result that was kept for a request, a number, or nil: it was not carried out yet.
local function once_answer(key, owner, number)
    local kept, result = string.match(redis.call('HGET', key, owner) or '', '^(%d+) (-?%d+)$')
    if kept and tonumber(kept) >= tonumber(number) then
        return tonumber(result)
    end
    return nil
end

-- Keep the result of a request, a number, for a minute; returns it.
local function once_keep(key, owner, number, result)
    redis.call('HSET', key, owner, number .. ' ' .. result)
    redis.call('PEXPIRE', key, 60000)
    return result
end
