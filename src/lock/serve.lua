-- serve.lua - how a free mutex comes to one of those who wait for it
--
-- uses:     queue grant

-- Hand a free mutex to the first waiter that listens. Returns it, or nil, and whether the ask of another one goes on, see
-- hand_over(). `deaf`: nil, or a client that does not listen.
local function serve(name, token_key, queue, seen, mark, asker, now, now_text, robust, shared, deaf)
    local token, before
    local function take(id, its_claim_ms)
        if token then -- a second waiter is tried: only the owner changes
            own(name, mark, id, its_claim_ms, token, before, robust)
        else
            before = robust and redis.call('GET', mark)
            token = grant(name, token_key, mark, id, its_claim_ms, now, now_text, before, robust, shared)
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
    local round = { queue = queue, seen = seen, now = now, take = take, undo = undo }
    round.absent = deaf and { [deaf] = true }
    return hand_over(round, asker, CLAIM_MS)
end

-- What serve() does for most, when `id` gave back a mutex that is not robust, and nothing speaks against the first waiter:
-- it was heard of lately, its client let no claim end, and it listens. A process has one waiter at most, unless
-- the mutex is fair, or a condition moved several here; so nothing is noted of its claims. If it died with several, some of
-- their claims may end one after the other, until they were silent for half of their liveness: that costs time alone. Returns
-- false if nobody has it, and the first waiter's client if that did not listen. What is left to Java nobody of ours holds, and
-- so gives back, before Java's turn is over.
local function serve_first(name, token_key, queue, seen, first, id, now, now_text, fair, shared)
    local sign, theirs, ours
    if fair then
        theirs, ours = client_of(first), client_of(id)
        sign = redis.call('ZMSCORE', seen, first, theirs)
        sign = (theirs == ours or not sign[2]) and sign[1]
    else
        sign = redis.call('ZSCORE', seen, first)
    end
    sign = tonumber(sign or '0')
    local liveness_ms, claim_ms = terms_of(sign)
    if is_unheard(sign) or now / 1000 > sign - liveness_ms / 2 then
        return false
    end
    claim_ms = string.format('%d', claim_ms)
    local token = next_token(token_key, now, now_text, shared)
    redis.call('HSET', name, first, '1')
    local ends = redis.pcall('PEXPIRE', name, claim_ms, 'NX') -- 0: there is another field, so it is not free
    if ends ~= 1 or not tell(first, 'G ' .. first .. ' ' .. now_text .. ' ' .. claim_ms .. ' ' .. token .. ' 0') then
        redis.call('HDEL', name, first)
        return type(ends) == 'table' and error(ends), ends == 1 and client_of(first)
    end
    redis.call('ZREM', queue, first, id) -- a late copy of the first ask may have taken a place for its holder
    if fair then
        redis.call('ZADD', seen, note_of(sign, now), theirs)
    end
    if fair and theirs ~= ours then
        redis.call('ZREM', seen, first, id, ours) -- to give back is a sign of life
    else
        redis.call('ZREM', seen, first, id)
    end
    return true
end
