-- fail.lua - give a run up: the next one begins
--
-- uses:     runner
-- keys:     run string                  see begin.lua
-- args:     channel text                see end.lua
-- sent:     id                          the id is finished from now on
-- verdicts: DONE GONE                   GONE: it was not the runner
-- resend:   harmless: a finished id is nowhere
if not is_runner(run, id) then
    return answer(GONE)
end
redis.call('DEL', run)
publish(channel, '0')
return answer(DONE)
