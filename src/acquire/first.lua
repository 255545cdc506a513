-- first.lua - most hand-overs: to the first waiter, when nothing speaks against it
--
-- uses:     queue

-- `id` gave something back. The note of a claim for the first waiter, the digits of the claim that it wants, and the fraction
-- of its sign of life; nothing, when it was not heard of lately, hears no message, or its client may have let a claim end:
-- that of `id` did not, to give back is a sign of life.
local function terms_of_first(seen, first, id, now)
    local theirs = client_of(first)
    local signs = redis.call('ZMSCORE', seen, first, theirs)
    local sign = tonumber(signs[1] or '0')
    local liveness_ms, claim_ms = terms_of(sign)
    if is_unheard(sign) or signs[2] and theirs ~= client_of(id) or now / 1000 > sign - liveness_ms / 2 then
        return nil
    end
    return note_of(sign, now), string.format('%d', claim_ms), sign % 1
end

-- The first waiter has it, and waits no more. Its claim is noted, if others of its client may wait: with that `note`.
local function leave_first(queue, seen, first, id, note)
    local theirs, ours = client_of(first), client_of(id)
    redis.call('ZREM', queue, first, id) -- a late copy of the first ask may have taken a place for its holder
    if note then
        redis.call('ZADD', seen, note, theirs)
    end
    if note and theirs == ours then
        redis.call('ZREM', seen, first, id)
    else
        redis.call('ZREM', seen, first, id, ours) -- to give back is a sign of life
    end
end
