-- who.lua - what a client says of itself
--
-- keys:     who string
-- args:     most number                 so many bytes are told
-- verdicts: DONE words text
--           ABSENT
-- resend:   harmless: reads only
local words = redis.call('GET', who)
if not words then
    return answer(ABSENT)
end
return answer(DONE, string.sub(words, 1, most))
