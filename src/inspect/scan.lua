-- scan.lua - a step of a walk through all keys of a server: which objects are there, and who has them
--
-- args:     cursor text                 0 at first
--           steps digits                about so many keys are looked at
--           prefix text                 of the client's names, others are left out
--           kinds number                the sum of 2^kind
-- verdicts: DONE next_cursor text, hidden number, keys number, found text
-- resend:   harmless: reads only
--
-- An object may have several keys. The first of them that is there, in an order of its kind, stands for it; so it is
-- found once, as often as SCAN finds that key. A walk asks each node of a cluster for keys of its own, and declares none.
--
-- found    "<kind> <state> <holders> <waiters> <left ms> <held ms> <waited ms> <number> <total> <token> <bytes of the
--          holder> <bytes of the name> <holder><name>", numbers that are not known -1, and so on for the next object
local MUTEX, RWLOCK, SEM, PERMITS, LATCH, ONCE, BARRIER, COND = 1, 2, 3, 4, 5, 6, 7, 8
local FREE, EXCLUSIVE, SHARED, COUNTING, OPEN, COMPLETE, BROKEN, DIED, UNRECOVERABLE = 1, 2, 3, 4, 5, 6, 7, 8, 9
local HOLDER_MAX, KEY_MAX = 159, 1024 -- so much of a holder is told; longer keys are no object's
local now_ms, found, hidden = math.floor(now / 1000), {}, 0
local alive, live = math.floor(now / 1000) + 1, '(' .. math.floor(now / 1000)
local may = redis.acl_check_cmd

local function ours(family, name)
    if string.find(name, '{', 1, true) then
        return 'latchkey:' .. family .. '::' .. name
    end
    return 'latchkey:' .. family .. ':{' .. name .. '}'
end

local function exists(key)
    return redis.call('EXISTS', key) == 1
end

local function number_of(text)
    return text and tonumber(string.match(text, '^-?%d+'))
end

-- A moment on the server's clock in microseconds, as a time since then in milliseconds.
local function since(moment)
    return moment and moment <= now and math.floor((now - moment) / 1000) or -1
end

-- Who waits by these keys, and for how long the first of them has.
local function waiting(family, name)
    local waiters = redis.call('ZCARD', ours('queue:' .. family, name))
    local arrived = tonumber(redis.call('ZRANGE', ours('queue:' .. family, name), 0, 0, 'WITHSCORES')[2] or '')
    return waiters, waiters > 0 and since(arrived) or -1
end

local function last_token(name)
    local brace = string.find(name, '{', 1, true)
    return tonumber(redis.call('GET', 'redisson_lock_token:' .. (brace and name or '{' .. name .. '}')) or '')
end

-- What a robust lock that nobody holds says of its last holder.
local function robust(family, name)
    local mark = redis.call('GET', ours('robust:' .. family, name))
    return mark and (mark == 'unrecoverable' and UNRECOVERABLE or DIED)
end

-- Keys may have been written by anybody: a number that fits nowhere is one that is not known.
local function fitting(number)
    return number and number > -2 ^ 53 and number < 2 ^ 63 and number or -1
end

local function add(kind, name, object)
    local holder = string.sub(string.match(object.holder or '', '^%Z*'), 1, HOLDER_MAX)
    table.insert(found, string.format('%d %d %d %d %.0f %.0f %.0f %.0f %.0f %.0f %d %d %s%s', kind, object.state,
        object.holders or 0, object.waiters or 0, fitting(object.left), fitting(object.held), fitting(object.waited),
        fitting(object.number), fitting(object.total), math.max(0, fitting(object.token)), #holder, #name, holder, name))
end

-- The first member of a sorted set that ends later than now, the end of the last one, and how many there are.
local function leases(key)
    local first = redis.call('ZRANGEBYSCORE', key, live, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    local last = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]
    return first[1], redis.call('ZCOUNT', key, live, '+inf'), tonumber(first[2] or ''), tonumber(last or '')
end

local function add_mutex(name, holder)
    local object = { state = robust('mutex', name) or FREE, token = last_token(name) }
    object.waiters, object.waited = waiting('mutex', name)
    if holder then
        object.state, object.holders, object.holder = EXCLUSIVE, 1, holder
        object.left, object.held = redis.call('PTTL', name), since(object.token)
    end
    add(MUTEX, name, object)
end

local function add_rwlock(name)
    local object = { state = robust('rw', name) or FREE, token = last_token(name) }
    local first, holders, _, last = leases(ours('rw', name))
    local readers, reader_waited = waiting('readers', name)
    local writers, writer_waited = waiting('writers', name)
    object.waiters, object.waited = readers + writers, math.max(reader_waited, writer_waited)
    if first then
        object.state = string.sub(first, -2) == ':w' and EXCLUSIVE or SHARED
        object.holders, object.holder, object.left = holders, first, last - now_ms
        object.held = object.state == EXCLUSIVE and since(object.token) or -1
    end
    if first or object.waiters > 0 or object.state ~= FREE then
        add(RWLOCK, name, object)
    end
end

local function add_permits(name)
    local first, held, ends = leases(ours('permits', name))
    local token = tonumber(redis.call('ZSCORE', ours('permits', name), 'token') or '')
    local object = { state = COUNTING, total = number_of(redis.call('GET', ours('total', name))) or held }
    object.waiters, object.waited = waiting('permits', name)
    object.holders, object.holder, object.number = held, first, object.total - held
    object.left, object.token = ends and ends - now_ms, token and -token
    add(PERMITS, name, object)
end

-- Who has permits of a counting semaphore is nowhere.
local function add_sem(name)
    local number = number_of(redis.call('GET', name))
    local object = { state = COUNTING, number = number, total = number_of(redis.call('GET', ours('total:sem', name))) }
    object.waiters, object.waited = waiting('sem', name)
    if number or object.waiters > 0 then
        add(SEM, name, object)
    end
end

local function add_latch(name)
    local count, mark = number_of(redis.call('GET', name)), redis.call('GET', ours('opened', name)) or ''
    if count then
        add(LATCH, name, { state = COUNTING, number = count, left = redis.call('PTTL', name) })
    elseif string.match(mark, '^opened %d+$') then
        add(LATCH, name, { state = OPEN, number = 0 })
    end
end

local function add_once(name)
    local run = redis.call('GET', ours('run', name))
    if run then
        local holder, token = string.match(run, '^(%S+) (%d+)')
        token = tonumber(token or '')
        add(ONCE, name, { state = EXCLUSIVE, holders = 1, holder = holder, token = token, held = since(token),
                          left = redis.call('PTTL', ours('run', name)) })
    elseif redis.call('HEXISTS', ours('done', name), 'result') == 1 then -- it was not reset
        add(ONCE, name, { state = COMPLETE, token = tonumber(redis.call('HGET', ours('done', name), 'token') or '') })
    end
end

local function add_barrier(name)
    local key = ours('barrier', name)
    local parties = tonumber(redis.call('HGET', key, 'parties') or '')
    local arrived = redis.call('ZCOUNT', ours('parties', name), live, '+inf')
    local broken = (redis.call('HGET', key, 'broken') or '') ~= ''
    add(BARRIER, name, { state = broken and BROKEN or COUNTING, waiters = arrived, number = arrived, total = parties })
end

local function add_cond(name)
    local object = { state = COUNTING }
    object.waiters, object.waited = waiting('cond', name)
    object.number = object.waiters
    if object.waiters > 0 then
        add(COND, name, object)
    end
end

-- Which key of a family tells of an object, unless one of those that come before it is there.
local families = {
    ['queue:mutex'] = { MUTEX, add_mutex, { '' } },
    ['robust:mutex'] = { MUTEX, add_mutex, { '', 'queue:mutex' } },
    ['rw'] = { RWLOCK, add_rwlock, {} },
    ['queue:readers'] = { RWLOCK, add_rwlock, { 'rw' } },
    ['queue:writers'] = { RWLOCK, add_rwlock, { 'rw', 'queue:readers' } },
    ['robust:rw'] = { RWLOCK, add_rwlock, { 'rw', 'queue:readers', 'queue:writers' } },
    ['total'] = { PERMITS, add_permits, {} },
    ['permits'] = { PERMITS, add_permits, { 'total' } },
    ['total:sem'] = { SEM, add_sem, {} },
    ['queue:sem'] = { SEM, add_sem, { 'total:sem' } },
    ['opened'] = { LATCH, add_latch, {} },
    ['once'] = { LATCH, add_latch, { 'opened', 'total:sem', 'claims', 'total', 'barrier' } },
    ['run'] = { ONCE, add_once, {} },
    ['done'] = { ONCE, add_once, { 'run' } },
    ['barrier'] = { BARRIER, add_barrier, {} },
    ['cond'] = { COND, add_cond, {} },
}

-- A family is in letters and single colons. A name with braces stands behind two, and may have others in it.
local function family_of(key)
    local family, name = string.match(key, '^latchkey:([%l:]-):{([^{}]+)}$')
    if not families[family or ''] then
        family, name = string.match(key, '^latchkey:([%l:]-)::(.+)$')
    end
    return families[family or ''], name
end

local function wanted(kind)
    return math.floor(kinds / 2 ^ kind) % 2 == 1
end

local function is_prefixed(name)
    return string.sub(name, 1, #prefix) == prefix
end

local function look_at_helper(key)
    local family, name = family_of(key)
    if not family or not wanted(family[1]) or not is_prefixed(name) then
        return
    end
    for _, before in ipairs(family[3]) do
        if exists(before == '' and name or ours(before, name)) then
            return
        end
    end
    family[2](name)
end

-- A mutex has one field, the id of an owner of ours or Redisson's.
local function look_at_name(key)
    if not wanted(MUTEX) or not is_prefixed(key) or redis.call('TYPE', key).ok ~= 'hash' then
        return
    end
    local fields = redis.call('HRANDFIELD', key, 2)
    local id = #fields == 1 and string.match(fields[1], '^([%x-]+):%d')
    if id and #id >= 32 then
        add_mutex(key, fields[1])
    end
end

-- A key of another type, or one that goes to another node meanwhile, is no object of ours; nor is one with a NUL, or
-- one that is longer than those of objects.
local function look(key)
    if #key > KEY_MAX or string.find(key, '%z') then
        return
    end
    if may and not may('TYPE', key) then
        hidden = hidden + 1
    elseif string.sub(key, 1, 9) == 'latchkey:' then
        pcall(look_at_helper, key)
    else
        pcall(look_at_name, key)
    end
end

if may and not may('SCAN', cursor) then
    return redis.error_reply('NOPERM to walk takes +scan, which the access rules (ACL) of this user lack')
end
local page = redis.call('SCAN', cursor, 'COUNT', steps)
for _, key in ipairs(page[2]) do
    look(key)
end
return answer(DONE, page[1], hidden, #page[2], table.concat(found))
