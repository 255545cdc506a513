-- keep.lua - go on using an anonymous latch
--
-- uses:     users
-- keys:     count string, mark string, users zset      see begin.lua
-- sent:     id deadline_us lease_ms
-- verdicts: DONE GONE LATE
-- resend:   harmless: never creates, never revives
if not is_user(users, id, now) or redis.call('EXISTS', mark) == 0 then
    return answer(GONE)
end
lengthen(mark, lease_ms)
lengthen(count, lease_ms)
join_users(users, id, lease_ms, now)
return answer(DONE)
