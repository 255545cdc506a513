-- look.lua - which round is it, and is it broken? A dead party breaks it now
--
-- uses:     round
-- keys:     state hash, parties zset    see arrive.lua
-- args:     channel text                see arrive.lua
-- verdicts: DONE generation number, first number, ended number, before number, broken number
--           ABSENT                      the server knows nothing of it
-- resend:   harmless: what is broken stays so
local known = redis.call('HMGET', state, 'generation', 'first', 'ended', 'before', 'broken')
if not known[1] then
    return answer(ABSENT)
end
redis.call('PEXPIRE', state, ROUND_LASTS_MS)
local broken = known[5] ~= '' or bury(state, parties, channel, now)
return answer(DONE, tonumber(known[1]), tonumber(known[2] or '') or 0, tonumber(known[3] or '') or 0,
    tonumber(known[4] or '') or 0, broken and 1 or 0)
