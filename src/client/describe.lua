-- describe.lua - say who a client is, or at its end that it is gone
--
-- keys:     who string
-- args:     words text                  JSON
--           lasts_ms digits             what is said is forgotten after so long
-- flags:    closed                      forget it now
-- verdicts: DONE
-- resend:   harmless: the same words; those that come after the client's end end with their time
if closed then
    redis.call('DEL', who)
else
    redis.call('SET', who, words, 'PX', lasts_ms)
end
return undated(DONE)
