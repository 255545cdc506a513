-- permit_release.lua - give leased permits back, give up waiting for them, or give back what was granted meanwhile
-- uses: whole queue order leased
--
-- KEYS[1]  sorted set, permits and when they end
-- KEYS[2]  string, how many there are in total
-- KEYS[3]  sorted set, the wait queue
-- KEYS[4]  sorted set, its liveness
-- ARGV[1]  waiter's id, or the permit's own  ARGV[2] n, parts that it has  ARGV[3] lease of a claim, ms
-- ARGV[4]  parts that are kept, 0: none  ARGV[5] unused
-- returns  { 1 given back | 0 there was nothing, server us, 1: it had ended }
-- resend   harmless: the parts are there once
local permits, queue, seen = KEYS[1], KEYS[3], KEYS[4]
local id, permit, n, kept = ARGV[1], permit_of(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4])
local now = server_time()
local live, ends = is_live(permits, permit, now)
local total = number_in(KEYS[2]) or 0
unlend(permits, permit, kept, n)
leave(queue, seen, id)
lend_out(permits, queue, seen, nil, total, now, tonumber(ARGV[3]))
return { live and 1 or 0, now, ends and not live and 1 or 0 }
