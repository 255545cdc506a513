-- arrive.lua - a party comes to the present round; with the last one all pass, and the next round begins
--
-- uses:     idempotent rollback round
-- keys:     state hash                  the round, see round.lua
--           parties zset                who waits
--           past zset                   who took part in the last round
--           once hash                   the idempotency record
-- args:     wanted number               how many parties there are to be
--           lease_ms number
--           party text                  id of the lease
--           channel text                messages for all who wait
-- flags:    try                         it comes only as the last one
-- sent:     id nth deadline_us
-- verdicts: DONE generation number      the round that it waits for; negative: it was the last one to come to it
--           BUSY GONE                   GONE: the round is broken
--           PRESENT found number        another number of parties waits
--           OVERTAKEN LATE
-- resend:   harmless: the idempotency record answers
local done = idempotent_answer(once, id, nth)
if done == IDEMPOTENT_OVERTAKEN then
    return answer(OVERTAKEN)
elseif done == 'gone' then
    return answer(GONE)
elseif done == 'busy' then
    return answer(BUSY)
elseif done and string.match(done, '^present') then
    return answer(PRESENT, tonumber(string.match(done, '%d+')))
elseif done then
    return answer(DONE, tonumber(done))
end
local known = redis.call('HMGET', state, 'parties', 'generation', 'broken')
local generation = tonumber(known[2] or '')
if not generation then
    generation = now
    redis.call('DEL', parties)
    redis.call('HSET', state, 'parties', wanted, 'generation', now_text, 'first', now_text, 'ended', 0, 'before', 0,
        'broken', '')
    lengthen_or_drop(state, ROUND_LASTS_MS, true)
elseif known[3] ~= '' or bury(state, parties, channel, now) then
    idempotent_record(once, id, nth, 'gone', now)
    return answer(GONE)
end
redis.call('PEXPIRE', state, ROUND_LASTS_MS)
local waiting = redis.call('ZCARD', parties)
if known[1] and tonumber(known[1]) ~= wanted then
    if waiting > 0 then
        idempotent_record(once, id, nth, 'present' .. known[1], now)
        return answer(PRESENT, tonumber(known[1]))
    end
    redis.call('HSET', state, 'parties', wanted)
end
if waiting + 1 < wanted and try then
    idempotent_record(once, id, nth, 'busy', now)
    return answer(BUSY)
end

redis.call('ZADD', parties, math.floor(now / 1000) + lease_ms, party)
local function take_back()
    redis.call('ZREM', parties, party)
end
do_or_undo(function()
    redis.call('PEXPIRE', parties, ROUND_LASTS_MS)
end, take_back)
if waiting + 1 < wanted then
    do_or_undo(function()
        idempotent_record(once, id, nth, string.format('%.0f', generation), now)
    end, take_back)
    return answer(DONE, generation)
end
do_or_undo(function()
    idempotent_record(once, id, nth, string.format('-%.0f', generation), now)
end, take_back)
do_or_undo(function()
    redis.call('HSET', state, 'generation', string.format('%.0f', generation + 1))
    do_or_undo(function()
        redis.call('RENAME', parties, past)
    end, function()
        redis.call('HSET', state, 'generation', string.format('%.0f', generation))
    end)
end, function()
    redis.call('HDEL', once, id)
    take_back()
end)
publish(channel, '0')
return answer(DONE, -generation)
