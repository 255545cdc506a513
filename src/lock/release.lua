-- release.lua - give a mutex back, give up waiting for it, or give back what was granted meanwhile
-- uses: whole token queue grant java
--
-- KEYS[1]  hash, the mutex
-- KEYS[2]  string, last fencing token
-- KEYS[3]  sorted set, the wait queue
-- KEYS[4]  sorted set, its liveness
-- KEYS[5]  string, the robust mark
-- ARGV[1]  owner id, finished from now on  ARGV[2] lease of a claim, ms
-- ARGV[3]  letters: r robust, j shared with Redisson  ARGV[4] Redisson's channel
-- ARGV[5]  server us until which the name stays taken  ARGV[6] 1: robust and unrepaired
-- returns  { 1 it was the holder | 0 it was not, server us }
-- resend   harmless: a finished id is nowhere
local name, token_key, queue, seen, mark = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, claim_ms = ARGV[1], tonumber(ARGV[2])
local robust, shared = string.find(ARGV[3], 'r', 1, true) ~= nil, string.find(ARGV[3], 'j', 1, true) ~= nil
local now = server_time()

local unrepaired = robust and tonumber(ARGV[6]) == 1

local function settle_mark()
    if unrepaired then
        redis.call('SET', mark, 'unrecoverable')
    elseif robust then
        redis.call('DEL', mark)
    end
end

-- Both ways begin with a command that a server out of memory allows; then it allows the rest.
local keep_ms = math.ceil((tonumber(ARGV[5]) - now) / 1000)
if keep_ms > 0 and redis.call('HEXISTS', name, id) == 1 then
    redis.call('PEXPIRE', name, keep_ms) -- nobody's any more, and not free before then
    settle_mark()
    local first = redis.call('ZRANGE', queue, 0, 0)[1]
    if first then
        redis.call('ZREM', seen, client_of(id)) -- it did not let a claim end
        tell(first, 'F ' .. first) -- each sleeps by the lease it knew, which was longer
    end
    redis.pcall('PUBLISH', ARGV[4], '0')
    return { 1, now }
end
local mine = redis.call('HDEL', name, id)
local dead_end = mine == 1 and unrepaired
if mine == 1 then
    settle_mark()
end

if redis.call('EXISTS', queue) == 0 then
    if mine == 1 then
        redis.pcall('PUBLISH', ARGV[4], '0')
    end
    return { mine, now }
end
leave(queue, seen, id)
if redis.call('EXISTS', name) == 1 then
    return { mine, now }
end

if dead_end then
    for _, waiter in ipairs(redis.call('ZRANGE', queue, 0, 99)) do
        tell(waiter, 'F ' .. waiter) -- each asks, and hears that it is not recoverable
    end
elseif not (robust and redis.call('GET', mark) == 'unrecoverable') then
    -- One release in sixteen leaves it to Java, if Java listens: a hand-over never frees the key.
    local javas_turn = mine == 1 and shared and math.max(last_token(token_key) + 1, now) % 16 == 0 and
        tell_java(ARGV[4], '0')
    if shared and not javas_turn and javas_turn_left(seen, now) > 0 then
        return { mine, now } -- somebody else's release left it to Java a moment ago
    end
    if javas_turn then
        local first = redis.call('ZRANGE', queue, 0, 0)[1]
        if first then -- else nobody of ours waits, and keys of the queue would have no end
            begin_javas_turn(seen, now)
            tell(first, 'F ' .. first)
        end
        return { mine, now }
    end
    if serve(name, token_key, queue, seen, mark, nil, now, claim_ms, robust, shared) then
        return { mine, now }
    end
end
if mine == 1 then
    redis.pcall('PUBLISH', ARGV[4], '0')
end
return { mine, now }
