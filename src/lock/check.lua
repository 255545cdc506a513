-- check.lua - does a hold stand?
--
-- keys:     mutex hash
-- sent:     id
-- verdicts: TAKEN GONE
-- resend:   harmless: reads only
return answer(redis.call('HEXISTS', mutex, id) == 1 and TAKEN or GONE)
