-- leave.lua - a party does not wait any longer: its round is broken, if that is the present one
--
-- uses:     round
-- keys:     state hash, parties zset    see arrive.lua
-- args:     channel text                see arrive.lua
-- sent:     id nth                      the party, which is finished from now on; the round that it came to, 0: not known
-- verdicts: DONE GONE                   GONE: it does not wait, and its round is over or broken
-- resend:   harmless: what is broken stays so
local known = redis.call('HMGET', state, 'generation', 'broken')
local is_present = known[2] == '' and tonumber(known[1]) == nth -- though the server may have lost that it came
if not is_present and not redis.call('ZSCORE', parties, id) then
    return answer(GONE)
end
break_round(state, parties, channel, 'left ' .. client_in(id))
return answer(DONE)
