-- idempotent.lua - a request that is sent twice counts once, on objects that are plain numbers
--
-- key  hash, owner -> "<number of its last request> <result> <server microseconds>"
--
-- An owner, which is a slot of a client, sends one request at a time, and its numbers rise. So one entry for each owner
-- is enough: a copy of the last request finds the result, a copy of an older one finds that it is older. Every entry
-- lives for at least a minute; requests have deadlines of half a minute at most, so no copy outlives its entry.

local IDEMPOTENT_SECONDS = 60
local IDEMPOTENT_OVERTAKEN = '-5' -- the answer when the entry belongs to a later request: nothing is done

-- The first request of an owner in each such period lets the record last for long enough for all of that period's, and
-- deletes old entries. So does whoever has no entry yet: where no entry is added, nothing has to be deleted either.
local IDEMPOTENT_PERIOD_US = 30000000
local IDEMPOTENT_LASTS = '90' -- seconds: a period more than an entry

-- The result, a text, of request `nth` of `owner`, or nil when the request is new; and when the owner's last one was
-- recorded, nil if there is none. An older request is never answered with the result of a later one: its sender is told
-- that it is overtaken.
local function idempotent_answer(key, owner, number)
    local entry = redis.call('HGET', key, owner)
    if not entry then
        return nil
    end
    local last, result, at = string.match(entry, '^(%d+) (%S+) (%d+)')
    if not last then
        return nil
    end
    last, number = last + 0, number + 0
    return last >= number and (last == number and result or IDEMPOTENT_OVERTAKEN) or nil, at + 0
end

-- Let the record last, look at eight entries, and delete old ones. As each new owner does so, about an eighth of all
-- entries are of owners that are gone. Returns 0 when there is no record. The first command is one that a server out of
-- memory allows.
local function idempotent_tidy(key, now)
    local lasts = redis.call('EXPIRE', key, IDEMPOTENT_LASTS)
    local others = redis.call('HRANDFIELD', key, '8', 'WITHVALUES')
    for i = 1, #others, 2 do
        local kept = tonumber(string.match(others[i + 1], '(%d+)$') or '')
        if not kept or kept + IDEMPOTENT_SECONDS * 1000000 < now then
            redis.call('HDEL', key, others[i])
            lasts = redis.call('EXPIRE', key, IDEMPOTENT_LASTS) -- 0: that was the last entry
        end
    end
    return lasts
end

-- Write an entry into a record that lasts. Returns the error, or nil.
local function idempotent_write(key, owner, number_text, result_text, now_text)
    local written = redis.pcall('HSET', key, owner, number_text .. ' ' .. result_text .. ' ' .. now_text)
    return type(written) == 'table' and written or nil
end

-- Does the record last, for what the owner records now, whose last request was recorded `at` that moment?
local function idempotent_lasts(at, now)
    return at and at - at % IDEMPOTENT_PERIOD_US == now - now % IDEMPOTENT_PERIOD_US
end

-- Record the result, a number.
local function idempotent_record(key, owner, number, result, now)
    local lasts = idempotent_tidy(key, now)
    local failed = idempotent_write(key, owner, string.format('%.0f', number), result, string.format('%.0f', now))
    if not failed and lasts == 0 then
        local ends = redis.pcall('EXPIRE', key, IDEMPOTENT_LASTS)
        if type(ends) == 'table' then
            redis.call('HDEL', key, owner)
            failed = ends
        end
    end
    if failed then
        error(failed)
    end
end
