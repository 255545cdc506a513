-- permit_renew.lua - set the lease of permits again; the first renewal of a claim confirms it
-- uses: whole leased
--
-- KEYS[1]  sorted set, permits and when they end: this key alone, so that it works while a cluster moves it
-- ARGV[1]  owner id, or the permit's own  ARGV[2] lease, ms  ARGV[3] deadline of this request, server us
-- ARGV[4]  parts that it has
-- returns  { 1 renewed | 0 no such permit | -1 past the deadline, server us }
-- resend   harmless; never creates, never revives
local permits, permit, lease_ms = KEYS[1], permit_of(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if now > tonumber(ARGV[3]) then
    return { -1, now }
end
if not is_live(permits, permit, now) then
    return { 0, now }
end
renew_parts(permits, permit, tonumber(ARGV[4]), lease_ms, now)
return { 1, now }
