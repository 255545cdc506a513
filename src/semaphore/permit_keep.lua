-- permit_keep.lua - go on using an anonymous leased semaphore
--
-- uses:     users
-- keys:     total string, users zset      see permit_begin.lua
-- sent:     id deadline_us lease_ms
-- verdicts: DONE GONE LATE
-- resend:   harmless: never creates, never revives
if not is_user(users, id, now) or redis.call('EXISTS', total) == 0 then
    return answer(GONE)
end
lengthen(total, lease_ms)
join_users(users, id, lease_ms, now)
return answer(DONE)
