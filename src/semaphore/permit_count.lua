-- permit_count.lua - how many leased permits are free, held, waited for
--
-- uses:     leased number
-- keys:     permits zset, total string, queue zset      see permit_take.lua
-- args:     initial number              total that the first request would set, 0: none
-- verdicts: DONE free number, held number, waiters number, total number, exists number
-- reply:    lk__semcount semaphore/semaphore.h
-- resend:   harmless: reads only
local all = number_in(total)
local exists = all and 1 or 0
all = all or initial
local free = free_permits(permits, all, now)
local waiters = redis.call('ZCARD', queue)
return answer(DONE, free, all - free, waiters, all, exists)
