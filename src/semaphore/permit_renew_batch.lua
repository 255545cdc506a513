-- permit_renew_batch.lua - permit_renew.lua for several keys in one run, with a verdict for each of them
--
-- uses:     leased
-- batch:    permit_renew                ARGV after the first two are id, lease_ms and parts, for each key
-- sent:     deadline_us
-- verdicts: DONE said text              a digit for each key
--           GONE LATE
-- resend:   as permit_renew.lua
local said = {}
for i, key in ipairs(KEYS) do
    said[i] = renew(key, ARGV[3 * i], ARGV[3 * i + 2], ARGV[3 * i + 1], now) and DONE or GONE
end
return answer(DONE, table.concat(said))
