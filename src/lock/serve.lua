-- serve.lua - how a free mutex comes to one of those who wait for it
--
-- uses:     queue grant

-- Hand a free mutex to the first waiter that listens. Returns it, or nil.
local function serve(name, token_key, queue, seen, mark, asker, now, claim_ms, robust, shared)
    local token, died, before
    local function take(id, its_claim_ms)
        if token then -- a second waiter is tried: only the owner changes
            own(name, mark, id, its_claim_ms, token, died, robust)
        else
            before = robust and redis.call('GET', mark)
            token, died = grant(name, token_key, mark, id, its_claim_ms, now, robust, shared)
        end
        return string.format('G %s %.0f %d %.0f %d', id, now, its_claim_ms, token, died)
    end
    local function undo(id)
        redis.call('HDEL', name, id)
        if robust and before then
            redis.call('SET', mark, before)
        elseif robust then
            redis.call('DEL', mark)
        end
    end
    local round = { queue = queue, seen = seen, now = now, turn_ms = TURN_MS, take = take, undo = undo }
    return hand_over(round, asker, claim_ms)
end
