-- serve.lua - how a free mutex comes to one of those who wait for it
--
-- uses:     queue grant

-- Hand a free mutex to the first waiter that listens. Returns it, or nil.
local function serve(name, token_key, queue, seen, mark, asker, now, now_text, robust, shared)
    local token, before
    local function take(id, its_claim_ms)
        if token then -- a second waiter is tried: only the owner changes
            own(name, mark, id, its_claim_ms, token, before, robust)
        else
            before = robust and redis.call('GET', mark)
            token = select(2, grant(name, token_key, mark, id, its_claim_ms, now, now_text, before, robust, shared))
        end
        return string.format('G %s %s %d %s %d', id, now_text, its_claim_ms, token, before and 1 or 0)
    end
    local function undo(id)
        redis.call('HDEL', name, id)
        if before then
            redis.call('SET', mark, before)
        elseif robust then
            redis.call('DEL', mark)
        end
    end
    local round = { queue = queue, seen = seen, now = now, turn_ms = TURN_MS, take = take, undo = undo }
    return hand_over(round, asker, CLAIM_MS)
end
