-- probe.lua - which rights of the library this user lacks
--
-- raw:      it is asked for in the handshake, by a user who may lack even the right to ask for the time
-- resend:   harmless: changes nothing
--
-- Everything is only asked after, on keys and channels that nobody has: nothing is executed, unless it is
-- denied. A denied call then says what was denied, the command or its key or channel.
--
-- ARGV[1]  an id that nobody else has  ARGV[2] prefix of all names, or nothing
-- ARGV[3]  1: waiters listen            ARGV[4] ARGV[5] ARGV[6] to publish, to subscribe and to unsubscribe
-- returns  { rights that all need, rights that only some objects need or that can be done without }, each as
--          the words of an access rule: "+zadd ~latchkey:*"
local id, prefix, listens = ARGV[1], ARGV[2], ARGV[3] == '1'
local publishing, subscribing, unsubscribing = ARGV[4], ARGV[5], ARGV[6]
local try, may = redis.pcall, redis.acl_check_cmd
local NEEDED, OTHER = 1, 2
local lacking, known = { {}, {} }, {}
if not may then
    return { '', '' }
end

local function lack(group, right)
    if not known[right] then
        known[right] = true
        table.insert(lacking[group], right)
    end
end

-- May the user call that? `what` is the pattern of the key or channel in it, or nil. Without a channel
-- nobody is woken, but waiters poll: that is never a right that all need.
local function need(group, what, ...)
    if may(...) then
        return
    end
    local denied = what and try(...)
    if not what or string.find(denied.err or '', ' run th', 1, true) then
        lack(group, '+' .. string.lower((...)))
    else
        lack(string.sub(what, 1, 1) == '&' and OTHER or group, what)
    end
end

local function need_key(group, pattern, key)
    need(group, pattern, 'GET', key) -- to read it
    need(group, pattern, 'DEL', key) -- to write it
end

local function tagged(family)
    return family .. ':{' .. id .. '}'
end

-- What a mutex needs, everybody has to have.
local ours, client = tagged('latchkey:queue:mutex'), 'latchkey:client:' .. id
local calls = {
    [NEEDED] = {
        { 'DEL' }, { 'EXISTS' }, { 'EXPIRE', '1' }, { 'GET' }, { 'HDEL', 'f' }, { 'HEXISTS', 'f' }, { 'HGET', 'f' },
        { 'HMGET', 'f' }, { 'HRANDFIELD' }, { 'HSET', 'f', '1' }, { 'PEXPIRE', '1' }, { 'PTTL' }, { 'SET', '1' }, { 'TYPE' },
        { 'ZADD', '1', 'm' }, { 'ZCARD' }, { 'ZRANGE', '0', '0' }, { 'ZRANK', 'm' }, { 'ZREM', 'm' }, { 'ZSCORE', 'm' },
    },
    [OTHER] = {
        { 'DECRBY', '1' }, { 'INCRBY', '1' }, { 'RENAME', ours }, { 'ZCOUNT', '0', '0' }, { 'ZMSCORE', 'm' },
        { 'ZRANGEBYSCORE', '0', '0' }, { 'ZREMRANGEBYSCORE', '0', '0' },
    },
}
local families = {
    [NEEDED] = { 'queue:mutex', 'alive:mutex', 'robust:mutex', 'settings:mutex' },
    [OTHER] = {
        'rw', 'queue:readers', 'queue:writers', 'alive:rw', 'robust:rw', 'claims', 'queue:sem', 'alive:sem', 'total:sem',
        'users:sem', 'permits', 'total', 'queue:permits', 'alive:permits', 'users:permits', 'settings:rw', 'settings:sem',
        'opened', 'users:latch', 'once', 'run', 'done', 'barrier', 'parties', 'past', 'who',
        'cond', 'queue:cond', 'alive:cond', 'moved:cond',
    },
}
for group = NEEDED, OTHER do
    for _, call in ipairs(calls[group]) do
        need(group, '~latchkey:*', call[1], ours, unpack(call, 2))
    end
    for _, family in ipairs(families[group]) do
        need_key(group, '~latchkey:*', tagged('latchkey:' .. family))
    end
end
need_key(NEEDED, '~redisson_lock_token:*', tagged('redisson_lock_token'))
if prefix ~= '' then
    need_key(NEEDED, '~' .. prefix .. '*', prefix .. id)
end

need(NEEDED, nil, 'TIME')
need(NEEDED, nil, 'PING')
need(NEEDED, nil, 'EVALSHA', id, '0')
need(OTHER, nil, 'ECHO', id)
need(NEEDED, '&latchkey:client:*', publishing, client, '')
need(NEEDED, '&redisson_lock__channel:*', publishing, tagged('redisson_lock__channel'), '')
need(OTHER, '&latchkey:ran:*', publishing, tagged('latchkey:ran'), '')
need(OTHER, '&latchkey:met:*', publishing, tagged('latchkey:met'), '')
need(OTHER, '&redisson_sc:*', publishing, tagged('redisson_sc'), '')
need(OTHER, '&redisson_countdownlatch__channel__*', publishing, 'redisson_countdownlatch__channel__{' .. id .. '}', '')
if listens then
    if not known['&latchkey:client:*'] then
        need(NEEDED, nil, subscribing, client)
    end
    need(NEEDED, nil, unsubscribing, client)
end
return { table.concat(lacking[NEEDED], ' '), table.concat(lacking[OTHER], ' ') }
