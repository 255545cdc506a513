-- permit_end.lua - use an anonymous leased semaphore no longer: with its last user it goes
--
-- uses:     users
-- keys:     permits zset, total string, queue zset, alive hash, once hash, users zset      see permit_begin.lua
-- sent:     id
-- verdicts: DONE GONE
-- resend:   harmless: who is no user ends nothing
local used = is_user(users, id, now)
if quit_users(users, id, now) and redis.call('PTTL', total) > 0 then
    redis.call('DEL', permits, total, queue, alive, once, users)
end
return answer(used and DONE or GONE)
