-- end.lua - use an anonymous latch no longer: with its last user it goes
--
-- uses:     users
-- keys:     count string, mark string, once hash, users zset      see begin.lua
-- sent:     id
-- verdicts: DONE GONE
-- resend:   harmless: who is no user ends nothing
local used = is_user(users, id, now)
if quit_users(users, id, now) and redis.call('PTTL', count) ~= -1 then -- a count without an end is no anonymous latch's
    redis.call('DEL', count, mark, once, users)
end
return answer(used and DONE or GONE)
