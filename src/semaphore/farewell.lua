-- farewell.lua - the queue of a semaphore ends with it
--
-- uses:     queue

-- Take all waiters out of the queue, and tell those that came first: with their next ask they learn of it. The others
-- do not hear, and ask later.
local function dismiss(queue, alive)
    local waiters = redis.call('ZRANGE', queue, 0, 999)
    redis.call('DEL', queue, alive)
    for _, id in ipairs(waiters) do
        tell(id, 'F ' .. id)
    end
end
