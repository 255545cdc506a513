-- acquire.lua - take a read-write lock, or queue for it; first ask, poll and resend are the same
-- uses: whole token queue share
--
-- KEYS[1]  sorted set, owner id -> end of its lease: who holds it
-- KEYS[2]  string, last fencing token
-- KEYS[3]  sorted set, the wait queue
-- KEYS[4]  sorted set, its liveness
-- KEYS[5]  string, the robust mark
-- ARGV[1]  owner id with its mode, :r or :w  ARGV[2] lease, ms
-- ARGV[3]  how long an ask counts as a sign of life, ms  ARGV[4] lease of a claim, ms
-- ARGV[5]  letters: t only try, r robust, j token shared with Redisson, R prefer readers, W writers
-- ARGV[6]  deadline of this request, server us  ARGV[7] own arrival number, 0 at first
-- ARGV[8]  flags: 1 tell who holds it, 2 it hears no message
-- returns  { 1 held | 2 held, a writer died before | 0 queued | 3 busy | -1 past the deadline |
--            -2 not recoverable | -4 too many readers, token or arrival number, ms left of the present
--            leases, server us, place in the queue or -1, see place_of(), holder }
-- resend   harmless: an owner finds its own hold, a waiter its own place
local lock = new_lock(KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], ARGV[5])
local unheard = tonumber(ARGV[8]) >= 2
local id, lease_ms, arrival = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[7])
lock.claim_ms = tonumber(ARGV[4])
local now = server_time()
if now > tonumber(ARGV[6]) then
    return { -1, 0, 0, now, 0 }
end

local function held(token, died)
    if arrival ~= 0 then
        leave(lock.queue, lock.seen, id)
    end
    return { 1 + died, token, 0, now, 0 }
end

local holder = look(lock, now)
local mine = held_as(lock, id)
if mine then -- the grant's message or reply got lost; its token was never told, so it gets another
    end_turn(lock.seen, now, SHARED_TURN_MS, unheard)
    redis.call('PEXPIRE', lock.holders, math.max(left_ms(lock, now), lease_ms))
    put(lock, mine, lease_ms, now)
    if not is_writer(mine) then
        return held(math.max(last_token(lock.token), 1), is_broken(lock) and 1 or 0)
    end
    local died = string.sub(lock.robust and redis.call('GET', lock.mark) or '', -2) == ' 1' and 1 or 0
    local token = next_token(lock.token, now, lock.shared)
    write_mark(lock, mine, token, died)
    return held(token, died)
elseif lock.robust and redis.call('GET', lock.mark) == 'unrecoverable' then
    leave(lock.queue, lock.seen, id)
    return { -2, 0, 0, now, 0 }
end

local alone = redis.call('EXISTS', lock.queue) == 0
if alone and not is_writer(id) and holder and redis.call('ZCARD', lock.holders) >= READERS_MAX then
    return { -4, 0, 0, now, 0 }
elseif alone and (not holder or not is_writer(id) and not is_writer(holder)) then
    return held(grant(lock, id, lease_ms, now))
end

if not lock.tries then
    arrival = line_up(lock, id, arrival, now, tonumber(ARGV[3]) + unheard_by(unheard), alone)
end
if not alone then
    local token, died = serve(lock, id, now)
    if token then
        put(lock, id, lease_ms, now)
        return held(token, died)
    end
end
if lock.tries then
    return { 3, 0, left_ms(lock, now), now, 0 }
end
local reply = { 0, arrival, left_ms(lock, now), now, place_of(lock.queue, lock.seen, id, now, unheard) }
if tonumber(ARGV[8]) % 2 == 1 then
    reply[6] = look(lock, now) or ''
end
return reply
