-- whole.lua - how many permits a counting semaphore has in all, and when the last one of its name was deleted
--
-- total  string, "<total>", "<total> <server microseconds of the deletion>" or "- <microseconds>"
--
-- The number that Redisson knows says how many permits are free, and not how many there are. What this library was told
-- is kept beside it. Redisson changes the number alone: where more are free than there should be in all, or nothing is
-- kept, those that are free are all that is known of.

local DELETED_MS = 600000 -- for so long waiters of a deleted semaphore are told

-- `free`: the number. Without a semaphore there is no total.
local function total_in(total, free)
    local all = tonumber(string.match(redis.call('GET', total) or '', '^%d+') or '')
    return all and all >= free and all or math.max(free, 0)
end

-- nil: nobody said how many there are.
local function write_total(total, n)
    local text = redis.call('GET', total) or ''
    local deleted = string.match(text, ' %d+$')
    local new = string.format('%.0f', math.max(n or 0, 0)) .. (deleted or '')
    if n and string.match(text, '^%d') then
        redis.call('SET', total, new, 'KEEPTTL') -- that of an anonymous semaphore ends
    elseif n then
        redis.call('SET', total, new)
    elseif deleted then
        redis.call('SET', total, '-' .. deleted, 'PX', DELETED_MS)
    else
        redis.call('DEL', total)
    end
end

-- Was the semaphore deleted that this waiter came for, or that was taken from at that moment?
local function was_deleted(total, arrival, now)
    local deleted = tonumber(string.match(redis.call('GET', total) or '', ' (%d+)$') or '')
    return deleted and arrival <= deleted and deleted <= now
end
