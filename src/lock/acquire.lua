-- acquire.lua - take a mutex, or queue for it; first ask, poll and resend are the same
-- uses: whole token queue grant holder
--
-- KEYS[1]  hash, owner id -> holds: the mutex, in the layout of Redisson's RLock
-- KEYS[2]  string, last fencing token
-- KEYS[3]  sorted set, the wait queue
-- KEYS[4]  sorted set, its liveness
-- KEYS[5]  string, the robust mark
-- ARGV[1]  owner id  ARGV[2] lease, ms  ARGV[3] how long an ask counts as a sign of life, ms
-- ARGV[4]  lease of a claim, ms  ARGV[5] letters: t only try, f fair, r robust, j shared with Redisson
-- ARGV[6]  deadline of this request, server us  ARGV[7] own arrival number, 0 at first
-- ARGV[8]  flags: 1 tell who holds it, 2 it hears no message
-- returns  { 1 held | 2 held, its previous holder died | 0 queued | 3 busy | -1 past the deadline |
--            -2 not recoverable, token or arrival number, ms left of the present lease, server us,
--            place in the queue or -1, see place_of(), holder }
-- resend   harmless: an owner finds its own hold, a waiter its own place
local name, token_key, queue, seen, mark = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, lease_ms, liveness_ms, claim_ms = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local unheard = tonumber(ARGV[8]) >= 2
local function has(letter)
    return string.find(ARGV[5], letter, 1, true) ~= nil
end
local robust, shared = has('r'), has('j')
local now = server_time()
if now > tonumber(ARGV[6]) then
    return { -1, 0, 0, now, 0 }
end

local left = redis.call('PTTL', name)
local arrival = tonumber(ARGV[7])
if left == -2 and shared then
    local turn = javas_turn_left(seen, now)
    if turn > 0 then
        left = turn -- as good as held until then
    end
end

local function take()
    local token, died = grant(name, token_key, mark, id, lease_ms, now, robust, shared)
    if arrival ~= 0 then
        leave(queue, seen, id)
    end
    return { 1 + died, token, 0, now, 0 }
end

if left ~= -2 then
    if redis.call('HEXISTS', name, id) == 1 then -- the grant's message or reply got lost
        redis.call('PEXPIRE', name, lease_ms)
        end_turn(seen, now, TURN_MS, unheard)
        local died = robust and string.sub(redis.call('GET', mark) or '', -2) == ' 1' and 1 or 0
        return { 1 + died, last_token(token_key), 0, now, 0 }
    elseif left == -1 and not is_mutex(name) then
        return no_mutex()
    end
elseif robust and redis.call('GET', mark) == 'unrecoverable' then
    leave(queue, seen, id)
    return { -2, 0, 0, now, 0 }
elseif not has('f') or redis.call('EXISTS', queue) == 0 then
    return take()
end

if has('t') and left ~= -2 then
    return { 3, 0, left, now, 0 }
end

if not has('t') then
    arrival = enqueue(queue, seen, id, arrival, now, liveness_ms + unheard_by(unheard))
end
if left == -2 then -- fair, free, and others came before
    local first = serve(name, token_key, queue, seen, mark, id, now, claim_ms, robust, shared)
    if first == id or (not first and has('t')) then
        return take()
    end
    left = redis.call('PTTL', name)
end
if has('t') then
    return { 3, 0, left, now, 0 }
end
local reply = { 0, arrival, left, now, place_of(queue, seen, id, now, unheard) }
if tonumber(ARGV[8]) % 2 == 1 then
    reply[6] = redis.call('HRANDFIELD', name) or ''
end
return reply
