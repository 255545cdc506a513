-- first.lua - most hand-overs: to the first waiter, when nothing speaks against it
--
-- uses:     queue

-- The entries of the clients of the first waiter, and of `id`, which gave something back; and the digits of the claim of the
-- first waiter, nil if its client is silent or receives no messages.
local function terms_of_first(alive, first, id, now)
    local lives = redis.call('HMGET', alive, client_of(first), client_of(id))
    local ends, claim_ms, quiet = life_of(lives[1])
    return ends * 1000 > now and not quiet and claim_ms, lives
end

-- The first waiter does not have it: its lease could not be set, or its client does not listen, or (0) there is another holder.
local function take_back(ends, queue, alive, first, other)
    if type(ends) == 'table' then
        error(ends)
    elseif ends == 1 then
        silence(queue, alive, first, other)
    end
    return false
end

-- The first waiter has it, and waits no more. To give back is a sign of life.
local function leave_first(queue, alive, first, id, claim_ms, lives, now, other)
    redis.call('ZREM', queue, first, id) -- a late copy of the first ask may have taken a place for its holder
    if redis.call('EXISTS', queue, other or queue) == 0 then
        redis.call('DEL', alive)
        return
    end
    shorten(alive, first, lives[1], claim_ms, now)
    local terms = lives[2] and client_of(first) ~= client_of(id) and string.match(lives[2], '^%d+ (.*)$')
    if terms then
        give_sign(alive, id, now, terms)
    end
end
