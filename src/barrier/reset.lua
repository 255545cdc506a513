-- reset.lua - a new round begins; who waits in the present one is told that it is broken
--
-- uses:     idempotent round
-- keys:     state hash, parties zset, past zset, once hash      see arrive.lua
-- args:     channel text                see arrive.lua
-- sent:     id nth deadline_us
-- verdicts: DONE OVERTAKEN LATE
-- resend:   harmless: the idempotency record answers
local done = idempotent_answer(once, id, nth)
if done then
    return answer(done == IDEMPOTENT_OVERTAKEN and OVERTAKEN or DONE)
end
local known = redis.call('HMGET', state, 'generation', 'first')
local generation = tonumber(known[1] or '')
if generation then
    local following = string.format('%.0f', generation + 1)
    break_round(state, parties, channel, 'reset ')
    redis.call('HSET', state, 'generation', following, 'first', following, 'ended', known[1], 'before',
        known[2] or '0', 'broken', '')
    redis.call('DEL', past)
end
idempotent_record(once, id, nth, 1, now)
return answer(DONE)
