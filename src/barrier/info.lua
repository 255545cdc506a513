-- info.lua - who waits at a barrier, and who is missing
--
-- uses:     round
-- keys:     state hash, parties zset, past zset      see arrive.lua
-- verdicts: DONE generation number, parties_wanted number, arrived number, broken number, missing text
--           ABSENT
-- resend:   harmless: reads only

-- Whose parties of the last round have not come: each client as often as it has fewer than then, four at most.
local function absent_clients()
    local here, absent = {}, {}
    for _, party in ipairs(redis.call('ZRANGE', parties, 0, 999)) do
        here[client_in(party)] = (here[client_in(party)] or 0) + 1
    end
    for _, party in ipairs(redis.call('ZRANGE', past, 0, 999)) do
        local client = client_in(party)
        here[client] = (here[client] or 0) - 1
        if here[client] < 0 and #absent < 4 then
            absent[#absent + 1] = client
        end
    end
    return table.concat(absent, ' ')
end

local known = redis.call('HMGET', state, 'generation', 'parties', 'broken')
if not known[1] then
    return answer(ABSENT)
end
local broken, missing = known[3] ~= '', nil
if broken then
    missing = string.match(known[3] or '', ' (%S*)$') or ''
end
return answer(DONE, tonumber(known[1]), tonumber(known[2] or '') or 0, redis.call('ZCARD', parties), broken and 1 or 0,
    missing or absent_clients())
