-- page.lua - a page of a wait queue, the next one first

-- How many wait, and the ids of those at these places.
local function page_of(queue, seen, first, last, now)
    local waiters = redis.call('ZCOUNT', seen, math.floor(now / 1000) + 1, '+inf')
    return waiters, redis.call('ZRANGE', queue, first, last)
end
