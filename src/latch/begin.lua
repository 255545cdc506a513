-- begin.lua - begin to use an anonymous latch: its mark is made if there is none
--
-- uses:     users
-- keys:     count string, mark string   see countdown.lua
--           users zset                  see users.lua
-- sent:     id deadline_us lease_ms
-- verdicts: DONE LATE
-- resend:   harmless: the same user; one that comes late ends by itself
if redis.call('EXISTS', mark) == 1 then
    lengthen(mark, lease_ms)
    lengthen(count, lease_ms)
else
    redis.call('SET', mark, '', 'PX', lease_ms)
end
join_users(users, id, lease_ms, now)
return answer(DONE)
