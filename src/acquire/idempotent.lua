-- idempotent.lua - a request that is sent twice counts once, on objects that are plain numbers
-- uses:     rollback
--
-- key  hash, owner -> "<number of its last request> <result> <server microseconds>"
--
-- An owner, which is a slot of a client, sends one request at a time, and its numbers rise. So one entry for each owner
-- is enough: a copy of the last request finds the result, a copy of an older one finds that it is older. Every entry
-- lives for at least a minute; requests have deadlines of half a minute at most, so no copy outlives its entry.

local IDEMPOTENT_SECONDS = 60
local IDEMPOTENT_OVERTAKEN = '-5' -- the answer when the entry belongs to a later request: nothing is done

-- The result, a text, of request `nth` of `owner`, and when it was recorded; or nil when the request is new. An older
-- request is never answered with the result of a later one: its sender is told that it is overtaken.
local function idempotent_answer(key, owner, number)
    local entry = redis.call('HGET', key, owner)
    if not entry then
        return nil
    end
    local last, result, at = string.match(entry, '^(%d+) (%S+) (%d+)')
    if not last or tonumber(last) < tonumber(number) then
        return nil
    end
    return tonumber(last) == tonumber(number) and result or IDEMPOTENT_OVERTAKEN, tonumber(at)
end

-- Record the result, a number. Each call looks at two other entries and deletes old ones, so that the record of a busy
-- object does not grow with owners that are gone. The first command is one that a server out of memory allows.
local function idempotent_record(key, owner, number, result, now)
    local lasts = redis.call('EXPIRE', key, IDEMPOTENT_SECONDS)
    local others = redis.call('HRANDFIELD', key, 2, 'WITHVALUES')
    for i = 1, #others, 2 do
        local kept = tonumber(string.match(others[i + 1], '(%d+)$') or '')
        if not kept or kept + IDEMPOTENT_SECONDS * 1000000 < now then
            redis.call('HDEL', key, others[i])
            lasts = redis.call('EXPIRE', key, IDEMPOTENT_SECONDS) -- 0: that was the last entry
        end
    end
    redis.call('HSET', key, owner, string.format('%.0f %.0f %.0f', number, result, now))
    if lasts == 0 then
        do_or_undo(function()
            redis.call('EXPIRE', key, IDEMPOTENT_SECONDS)
        end, function()
            redis.call('HDEL', key, owner)
        end)
    end
end
