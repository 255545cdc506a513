-- end.lua - use an anonymous semaphore no longer: with its last user it goes
--
-- uses:     users
-- keys:     name string, claims zset, queue zset, alive hash, once hash, total string, users zset      see begin.lua
-- sent:     id
-- verdicts: DONE GONE
-- resend:   harmless: who is no user ends nothing
local used = is_user(users, id, now)
if quit_users(users, id, now) and redis.call('PTTL', name) > 0 then
    redis.call('DEL', name, claims, queue, alive, once, total, users)
end
return answer(used and DONE or GONE)
