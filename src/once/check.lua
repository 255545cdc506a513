-- check.lua - does a run stand?
--
-- uses:     runner
-- keys:     run string
-- sent:     id
-- verdicts: TAKEN GONE
-- resend:   harmless: reads only
return answer(is_runner(run, id) and TAKEN or GONE)
