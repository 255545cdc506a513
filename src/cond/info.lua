-- info.lua - how many wait for a condition, and with which mutex
--
-- keys:     record string, waiting zset, moved zset      see wait.lua
-- verdicts: DONE waiters number, woken number, found text
-- resend:   harmless: reads only
local now_ms = math.floor(now / 1000)
return answer(DONE, redis.call('ZCARD', waiting), redis.call('ZCOUNT', moved, now_ms + 1, '+inf'),
              redis.call('GET', record) or '')
