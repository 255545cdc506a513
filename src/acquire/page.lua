-- page.lua - a page of a wait queue, the next one first

-- How many wait, and the ids of those at these places.
local function page_of(queue, first, last)
    return redis.call('ZCARD', queue), redis.call('ZRANGE', queue, first, last)
end
