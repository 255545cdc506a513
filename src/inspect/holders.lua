-- holders.lua - who holds an object, a page of them
--
-- uses:     holder
-- keys:     mutex hash                  of a mutex: owner id -> holds
--           holders zset                of what has a lease for each holder: its id -> the end, server ms
--           run string                  of what is done once: "<owner id> <token>"
-- args:     first digits                so many are left out
--           most digits                 so many are told
-- flags:    single running              a mutex; what is done once. Neither: the holders of the sorted set
-- verdicts: DONE count number, found text...      each "<left ms> <id>"
-- resend:   harmless: reads only
local function answer_one(key, id)
    if not id then
        return answer(DONE, 0)
    end
    return answer(DONE, 1, redis.call('PTTL', key) .. ' ' .. id)
end

if single then
    if redis.call('PTTL', mutex) == -1 and not is_mutex(mutex) then
        return no_mutex()
    end
    return answer_one(mutex, redis.call('HRANDFIELD', mutex))
end
if running then
    return answer_one(run, string.match(redis.call('GET', run) or '', '^(%S+) %d'))
end

local now_ms, found = math.floor(now / 1000), {}
local live = '(' .. now_ms
local page = redis.call('ZRANGEBYSCORE', holders, live, '+inf', 'WITHSCORES', 'LIMIT', first, most)
for i = 1, #page, 2 do
    table.insert(found, string.format('%.0f %s', tonumber(page[i + 1]) - now_ms, page[i]))
end
return answer(DONE, redis.call('ZCOUNT', holders, live, '+inf'), unpack(found))
