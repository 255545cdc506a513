-- release.lua - give a mutex back, give up waiting for it, or give back what was granted meanwhile
--
-- uses:     serve redisson
-- keys:     mutex hash, token string, queue zset, alive hash, mark string      see acquire.lua
-- args:     channel text                Redisson's
-- flags:    robust shared
-- sent:     id keep_until_us unrepaired untold again      the id is finished from now on; of an id that was asked for again the answer is dated
-- verdicts: DONE GONE                   GONE: it was not the holder
-- resend:   harmless: a finished id is nowhere

-- Each way begins with a command that a server out of memory allows; then it allows the rest.
local mine, first
if flags == '0' and keep_until_us == '0' then -- most of all releases, if nobody waits: they need not even the time
    mine, first = redis.call('HDEL', mutex, id), redis.call('ZRANGE', queue, '0', '0')[1]
    if not first and mine == 1 then
        publish(channel, '0')
        return undated(DONE)
    elseif not first then
        return undated(GONE)
    end
end

local kept = keep_until_us + 0 > now and redis.call('HEXISTS', mutex, id) == 1
if kept then
    mine = 1
    -- Held by no owner, and not free before then. The server counts from the beginning of its millisecond.
    redis.call('PEXPIRE', mutex, math.ceil(keep_until_us / 1000) - math.floor(now / 1000))
    if redis.call('HEXISTS', mutex, id) == 1 then -- else its end came meanwhile, and HSET would make it anew, without one
        redis.call('HSET', mutex, id, '0') -- so a late renewal or ask leaves it alone
    end
elseif not mine then
    mine = redis.call('HDEL', mutex, id)
end
if mine == 1 and robust then
    if unrepaired then
        redis.call('SET', mark, 'unrecoverable')
    elseif not (untold and string.sub(redis.call('GET', mark) or '', -2) == ' 1') then
        redis.call('DEL', mark)
    end
end
first = first or redis.call('ZRANGE', queue, '0', '0')[1]
local unwanted = not kept and not first
if unwanted and not (shared and mine == 1 and now % 16 == 0) then
    if mine == 1 then
        publish(channel, '0')
        return brief(DONE)
    end
    return brief(GONE)
end
if unwanted then
    leave_to_redisson(alive, channel, '0', now)
    return brief(DONE)
end

local served
if mine == 1 and not (kept or robust or shared and now % 16 == 0) and first ~= id then
    served = serve_first(mutex, token, queue, alive, first, id, now, now_text, shared)
end
if served then
    return brief(DONE)
end

leave(queue, alive, id, now)
if kept then
    first = redis.call('ZRANGE', queue, '0', '0')[1]
    if first then
        tell(first, 'F ' .. first) -- waiters sleep by the lease that they knew, which was longer
    end
    publish(channel, '0')
    return answer(DONE)
end

-- One release in sixteen leaves it to Java, if Java listens: a hand-over never frees the key.
local function is_javas_turn()
    local sixteenth = now % 16 == 0 or math.max(last_token(token) + 1, now) % 16 == 0
    return mine == 1 and shared and sixteenth and tell_redisson(channel, '0')
end

-- Leave the mutex to Java or hand it to the first waiter; false: there is neither.
local function hand_on()
    if is_javas_turn() then
        first = redis.call('ZRANGE', queue, 0, 0)[1]
        if not first then
            return true
        end
        begin_javas_turn(alive, now, KEEP_MS)
        if tell(first, 'F ' .. first) then -- it asks when that is over; else nobody would
            return true
        end
    elseif shared and javas_turn_left(alive, now) > 0 then
        return true -- somebody else's release left it to Java a moment ago
    end
    return serve(mutex, token, queue, alive, mark, nil, now, now_text, robust, shared)
end

local handed = redis.call('EXISTS', mutex) == 1
if not handed and mine == 1 and robust and unrepaired then
    call_off(queue, 0)
elseif not handed and not (robust and redis.call('GET', mark) == 'unrecoverable') then
    handed = hand_on()
end
if mine == 1 and not handed then
    publish(channel, '0')
end
return answer(mine == 1 and DONE or GONE)
