-- fence.lua - let a server of a quorum know the token of a grant, the largest that the servers gave for it
--
-- keys:     mutex hash                  owner id -> holds, in the layout of Redisson's RLock
--           token string                the last fencing token
-- args:     largest number              of the tokens that servers of the quorum gave for this grant
-- sent:     id deadline_us
-- verdicts: DONE GONE LATE
-- resend:   harmless: tokens never fall, and a finished id is nowhere
local last = tonumber(redis.call('GET', token) or '')
if not last or redis.call('HEXISTS', mutex, id) == 0 then
    return answer(GONE)
end
if last < largest then
    redis.call('SET', token, string.format('%.0f', largest), 'KEEPTTL')
end
return answer(DONE)
