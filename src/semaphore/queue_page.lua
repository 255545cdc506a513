-- queue_page.lua - a page of the wait queue, the next one first
--
-- uses:     page
-- keys:     queue zset
-- args:     first number, last number   places wanted, from 0
-- verdicts: DONE waiters number, ids text...
-- reply:    lk__queuepage object/queue.h
-- resend:   harmless: reads only
local waiters, ids = page_of(queue, first, last)
return answer(DONE, waiters, unpack(ids))
