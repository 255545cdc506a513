-- serve.lua - how a free mutex comes to one of those who wait for it
--
-- uses:     queue grant first

-- Hand a free mutex to the first waiter that listens. Returns it, or nil, and whether the ask of another one goes on, see
-- hand_over().
local function serve(name, token_key, queue, alive, mark, asker, now, now_text, robust, shared)
    local token, before
    local function take(id, its_claim_ms)
        if token then -- a second waiter is tried: only the owner changes
            own(name, mark, id, its_claim_ms, token, before, robust)
        else
            before = robust and redis.call('GET', mark)
            token = grant(name, token_key, mark, id, its_claim_ms, now, now_text, before, robust, shared)
        end
        return 'G ' .. id .. ' ' .. now_text .. ' ' .. its_claim_ms .. ' ' .. token .. (before and ' 1' or ' 0')
    end
    local function undo(id)
        redis.call('HDEL', name, id)
        if before then
            redis.call('SET', mark, before)
        elseif robust then
            redis.call('DEL', mark)
        end
    end
    local round = { queue = queue, alive = alive, now = now, take = take, undo = undo }
    return hand_over(round, asker)
end

-- The short way of serve(), when `id` gave back a mutex that is not robust, and nothing speaks against the first waiter.
-- Returns whether that waiter has it. A mutex that is left to Java is held by nobody of ours until Java's turn is over.
local function serve_first(name, token_key, queue, alive, first, id, now, now_text, shared)
    local claim_ms, lives = terms_of_first(alive, first, id, now)
    if not claim_ms then
        return false
    end
    local token = next_token(token_key, now, now_text, shared)
    redis.call('HSET', name, first, '1')
    local ends = redis.pcall('PEXPIRE', name, claim_ms, 'NX') -- 0: there is another field, so it is not free
    if ends ~= 1 or not tell(first, 'G ' .. first .. ' ' .. now_text .. ' ' .. claim_ms .. ' ' .. token .. ' 0') then
        redis.call('HDEL', name, first)
        return take_back(ends, queue, alive, first)
    end
    leave_first(queue, alive, first, id, claim_ms, lives, now)
    return true
end
