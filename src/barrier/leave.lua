-- leave.lua - a party does not wait any longer: the round is broken, if it waits in it
--
-- uses:     round
-- keys:     state hash, parties zset    see arrive.lua
-- args:     channel text                see arrive.lua
-- sent:     id                          the party, which is finished from now on
-- verdicts: DONE GONE                   GONE: it does not wait
-- resend:   harmless: who does not wait breaks nothing
if not redis.call('ZSCORE', parties, id) then
    return answer(GONE)
end
break_round(state, parties, channel, 'left ' .. client_in(id))
return answer(DONE)
