-- look.lua - is a latch open?
-- uses: gate
--
-- KEYS[1]  string, the count
-- KEYS[2]  string, the mark: how the last count ended
-- returns  { count | -1 no latch | -3 the key is no count, how the last count ended: 0 not known | 1 opened |
--            2 deleted, serial of that end, 1 there was a new count since, server us }
-- resend   harmless: reads only
local count = count_of(KEYS[1])
local how, serial, since = last_end(KEYS[2])
local told = count and math.max(count, 0)
if not count then
    told = count == nil and -1 or -3
end
return { told, how == 'opened' and 1 or how == 'deleted' and 2 or 0, serial, since and 1 or 0, server_time() }
