-- renew_batch.lua - renew.lua for several keys in one run, with a verdict for each of them
--
-- uses:     round
-- batch:    renew                       ARGV after the first two are id and lease_ms, for each key
-- sent:     deadline_us
-- verdicts: DONE said text              a digit for each key
--           GONE LATE
-- resend:   as renew.lua
local said = {}
for i, key in ipairs(KEYS) do
    said[i] = renew(key, ARGV[2 * i + 1], ARGV[2 * i + 2], now) and DONE or GONE
end
return answer(DONE, table.concat(said))
