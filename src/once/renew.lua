-- renew.lua - set the lease of a run again
--
-- uses:     runner
-- keys:     run string                  this key alone, so that it works while a cluster moves it
-- sent:     id deadline_us lease_ms
-- verdicts: DONE GONE LATE
-- resend:   harmless: never creates, never revives
-- batch:    many runs are renewed at one time
if not is_runner(run, id) then
    return answer(GONE)
end
redis.call('PEXPIRE', run, lease_ms)
return answer(DONE)
