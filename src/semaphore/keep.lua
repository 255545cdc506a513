-- keep.lua - go on using an anonymous semaphore
--
-- uses:     users
-- keys:     name string, claims zset, total string, users zset      see begin.lua
-- sent:     id deadline_us lease_ms
-- verdicts: DONE GONE LATE
-- resend:   harmless: never creates, never revives
if not is_user(users, id, now) or redis.call('EXISTS', name) == 0 then
    return answer(GONE)
end
lengthen(name, lease_ms)
lengthen(claims, lease_ms)
lengthen(total, lease_ms)
join_users(users, id, lease_ms, now)
return answer(DONE)
