-- begin.lua - begin to use an anonymous semaphore: it is made if there is none
--
-- uses:     number rollback users
-- keys:     name string, claims zset, total string      see take.lua
--           users zset                  see users.lua
-- args:     initial number              permits to begin with
-- sent:     id deadline_us lease_ms
-- verdicts: DONE LATE
-- resend:   harmless: the same user; one that comes late ends by itself
if number_in(name) then
    lengthen(name, lease_ms)
    lengthen(claims, lease_ms)
    lengthen(total, lease_ms)
else
    redis.call('SET', name, string.format('%.0f', initial), 'PX', lease_ms)
    do_or_undo(function()
        redis.call('DEL', claims)
        redis.call('SET', total, string.format('%.0f', initial), 'PX', lease_ms)
    end, function()
        redis.call('DEL', name)
    end)
end
join_users(users, id, lease_ms, now)
return answer(DONE)
