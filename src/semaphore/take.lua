-- take.lua - take permits, or queue for them; first ask, poll, confirmation and resend are the same
-- uses: whole once queue number order java counted
--
-- KEYS[1]  string, free permits
-- KEYS[2]  sorted set, grants that are not confirmed
-- KEYS[3]  sorted set, the wait queue
-- KEYS[4]  sorted set, its liveness
-- KEYS[5]  hash, last request of each owner (once-record)
-- ARGV[1]  waiter's id  ARGV[2] owner and ARGV[3] number of this request, for the once-record
-- ARGV[4]  n            ARGV[5] permits to begin with, 0: leave that to others
-- ARGV[6]  letters: t only try, j shared with Redisson  ARGV[7] Redisson's channel
-- ARGV[8]  how long an ask counts as a sign of life, ms  ARGV[9] lease of a claim, ms
-- ARGV[10] deadline of this request, server us  ARGV[11] own arrival number, 0 at first
-- ARGV[12] flags: 2 it hears no message
-- returns  { 1 taken | 0 queued | 3 too few | -1 past the deadline | -5 given back, or overtaken,
--            1 or arrival number, ms until the next claim ends or -1, server us, place in the queue }
-- resend   harmless: the once-record knows what was taken, the queue who waits
local name, claims, queue, seen, once = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, owner, number, n, initial = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local unheard = tonumber(ARGV[12]) >= 2
local try, shared = string.find(ARGV[6], 't', 1, true), string.find(ARGV[6], 'j', 1, true)
local claim_ms, arrival = tonumber(ARGV[9]), tonumber(ARGV[11])
local now = server_time()
if now > tonumber(ARGV[10]) then
    return { -1, 0, -1, now, 0 }
end
local value = number_in(name)
local done = once_answer(once, owner, number)
if done then
    return { done == '1' and 1 or -5, 1, -1, now, 0 }
end

local function record()
    once_keep(once, owner, number, 1)
end

if value and redis.call('ZSCORE', claims, id) then -- granted meanwhile, and confirmed by this
    record() -- first: who gives up then finds one of the two
    whole(function()
        redis.call('ZREM', claims, id)
    end, function()
        once_keep(once, owner, number, 0) -- the claim ends, and the permits come back
    end)
    end_turn(seen, now, TURN_MS, unheard)
    return { 1, 1, -1, now, 0 }
end
local back = 0
if value then
    back = reclaim(name, claims, now, queue, seen)
elseif initial > 0 then
    set_number(name, claims, initial)
end
value = (value or initial) + back

local function take()
    take_and(name, n, record)
    return { 1, 1, -1, now, 0 }
end

if value >= n and redis.call('EXISTS', queue) == 0 then
    local reply = take()
    if arrival ~= 0 then
        leave(queue, seen, id)
    end
    if back > 0 then
        pass_on(name, claims, queue, seen, value - n, now, claim_ms, ARGV[7], shared)
    end
    return reply
end
if try then
    local free, _, blocked = hand_out(name, claims, queue, seen, nil, value, now, claim_ms)
    if not blocked and free >= n then
        return take()
    end
    return { 3, 0, -1, now, 0 }
end

arrival = enqueue(queue, seen, id, arrival, now, tonumber(ARGV[8]) + unheard_by(unheard))
local _, got = hand_out(name, claims, queue, seen, id, value, now, claim_ms)
if got then
    return take()
end
local left, first = -1, redis.call('ZRANGE', claims, 0, 0, 'WITHSCORES')[2]
if first then
    left = math.max(tonumber(first) - math.floor(now / 1000), 0)
end
return { 0, arrival, left, now, place_of(queue, seen, id, now, unheard) }
