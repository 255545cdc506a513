-- permit_begin.lua - begin to use an anonymous leased semaphore: it is made if there is none
--
-- uses:     number users
-- keys:     total string                see permit_take.lua
--           users zset                  see users.lua
-- args:     initial number              total to begin with
-- sent:     id deadline_us lease_ms
-- verdicts: DONE LATE
-- resend:   harmless: the same user; one that comes late ends by itself
if number_in(total) then
    lengthen(total, lease_ms)
else
    redis.call('SET', total, string.format('%.0f', initial), 'PX', lease_ms)
end
join_users(users, id, lease_ms, now)
return answer(DONE)
