-- permit_take.lua - take leased permits, or queue for them; first ask, poll and resend are the same
-- uses: whole queue order leased
--
-- KEYS[1]  sorted set, permits and when they end
-- KEYS[2]  string, how many there are in total
-- KEYS[3]  sorted set, the wait queue
-- KEYS[4]  sorted set, its liveness
-- ARGV[1]  waiter's id  ARGV[2] n  ARGV[3] lease, ms  ARGV[4] total to begin with, 0: leave that to others
-- ARGV[5]  letters: t only try  ARGV[6] how long an ask counts as a sign of life, ms
-- ARGV[7]  lease of a claim, ms  ARGV[8] deadline of this request, server us
-- ARGV[9]  own arrival number, 0 at first  ARGV[10] flags: 2 it hears no message
-- returns  { 1 taken | 0 queued | 3 too few | -1 past the deadline | -3 n is above the total |
--            -5 overtaken: its owner has some of the n, and gave the others back,
--            1 or arrival number, ms until the next permit ends or -1, server us, place in the queue }
-- resend   harmless: an owner finds its own permit, and gets no part of it again; a waiter its own place
local permits, queue, seen = KEYS[1], KEYS[3], KEYS[4]
local id, n, lease_ms, initial = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local unheard = tonumber(ARGV[10]) >= 2
local permit, claim_ms, arrival = permit_of(ARGV[1]), tonumber(ARGV[7]), tonumber(ARGV[9])
local now = server_time()
if now > tonumber(ARGV[8]) then
    return { -1, 0, -1, now, 0 }
end
local total = number_in(KEYS[2])
if total == false then
    return no_number()
end

local function take()
    lend(permits, permit, n, lease_ms, now)
    return { 1, 1, -1, now, 0 }
end

if is_live(permits, permit, now) then -- the grant's message or reply got lost, or this is a late copy
    if not is_live(permits, part(permit, n), now) then -- the last part is the first that is given back
        return { -5, 0, -1, now, 0 }
    end
    renew_parts(permits, permit, n, lease_ms, now)
    end_turn(seen, now, TURN_MS, unheard)
    return { 1, 1, -1, now, 0 }
end
if not total then
    total = initial
    if initial > 0 then
        redis.call('SET', KEYS[2], initial)
    end
end
if n > total and total > 0 then
    leave(queue, seen, id)
    return { -3, 0, -1, now, 0 }
end
if redis.call('EXISTS', queue) == 0 and free_permits(permits, total, now) >= n then
    if arrival ~= 0 then
        leave(queue, seen, id)
    end
    return take()
end
if string.find(ARGV[5], 't', 1, true) then
    local free, _, blocked = lend_out(permits, queue, seen, nil, total, now, claim_ms)
    if not blocked and free >= n then
        return take()
    end
    return { 3, 0, -1, now, 0 }
end

arrival = enqueue(queue, seen, id, arrival, now, tonumber(ARGV[6]) + unheard_by(unheard))
local _, got = lend_out(permits, queue, seen, id, total, now, claim_ms)
if got then
    return take()
end
local left = -1
local first = redis.call('ZRANGEBYSCORE', permits, '(' .. math.floor(now / 1000), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
if first then
    left = tonumber(first) - math.floor(now / 1000)
end
return { 0, arrival, left, now, place_of(queue, seen, id, now, unheard) }
