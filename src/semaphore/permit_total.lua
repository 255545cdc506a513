-- permit_total.lua - set or change how many leased permits there are
--
-- uses:     leased number idempotent rollback
-- keys:     permits zset, total string, queue zset, alive hash      see permit_take.lua
--           once hash                   the idempotency record
-- args:     n number                    negative for fewer
--           initial number              total to begin with, 0: leave that to others
--           largest number              total
--           expected number             total, if that is compared
-- flags:    set                         n is the total, if there is none
--           compare                     n is the total, if it is as expected
--           anonymous                   none is made
-- sent:     id nth deadline_us
-- verdicts: DONE OVERTAKEN LATE ABSENT
--           PRESENT total number        to be set, and there is one, or another one than expected
--           IMPOSSIBLE NEGATIVE
-- resend:   harmless: the idempotency record knows the answer
local all = number_in(total)
local done = idempotent_answer(once, id, nth)
if done == '1' then
    return answer(DONE)
elseif done == 'absent' then
    return answer(ABSENT)
elseif done and tonumber(done) <= present_result(0) then
    return answer(PRESENT, present_total(done))
elseif done then
    return answer(done == '-3' and IMPOSSIBLE or done == '-4' and NEGATIVE or OVERTAKEN)
elseif anonymous and not all then
    idempotent_record(once, id, nth, 'absent', now)
    return answer(ABSENT)
elseif set and all or compare and (all or initial) ~= expected then
    idempotent_record(once, id, nth, present_result(all or initial), now)
    return answer(PRESENT, all or initial)
end
local new = (set or compare) and n or (all or initial) + n
if new > largest or new < 0 then
    idempotent_record(once, id, nth, new < 0 and -4 or -3, now)
    return answer(new < 0 and NEGATIVE or IMPOSSIBLE)
end
redis.call('EXPIRE', once, IDEMPOTENT_LASTS) -- first: then a server out of memory allows the rest
redis.call('SET', total, string.format('%.0f', new), 'KEEPTTL')
do_or_undo(function()
    idempotent_record(once, id, nth, 1, now)
end, function()
    if all then
        redis.call('SET', total, string.format('%.0f', all), 'KEEPTTL')
    else
        redis.call('DEL', total)
    end
end)
lend_out(permits, queue, alive, nil, new, now, anonymous)
return answer(DONE)
