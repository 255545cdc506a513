-- drain.lua - take all permits that are free
-- uses: whole once queue number order java counted
--
-- KEYS[1]  string, free permits
-- KEYS[2]  sorted set, grants that are not confirmed
-- KEYS[3]  hash, last request of each owner (once-record)
-- ARGV[1]  owner and ARGV[2] number of this request, for the once-record
-- ARGV[3]  permits to begin with, 0: leave that to others  ARGV[4] deadline of this request, server us
-- returns  { permits taken | -1 past the deadline | -5 overtaken, server us }
-- resend   harmless: the once-record knows how many they were
local name, claims, once = KEYS[1], KEYS[2], KEYS[3]
local owner, number, initial = ARGV[1], ARGV[2], tonumber(ARGV[3])
local now = server_time()
if now > tonumber(ARGV[4]) then
    return { -1, now }
end
local done = once_answer(once, owner, number)
if done then
    return { tonumber(done), now }
end
local value = number_in(name)
if value then
    value = value + reclaim(name, claims, now)
elseif initial > 0 then
    set_number(name, claims, initial)
end
local taken = math.max(value or initial, 0)
local function record()
    once_keep(once, owner, number, taken)
end
if taken > 0 then
    take_and(name, string.format('%.0f', taken), record)
else
    record()
end
return { taken, now }
