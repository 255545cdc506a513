-- holder.lua - is a hash a mutex, or something of the application that has its name?
--
-- A mutex has one field: an owner id of ours or Redisson's, "<32 hex digits or more>:<number>...", or what a person
-- wrote who took it by hand, with a lease or with a colon in it. Of many fields only a few are looked at.

local function is_mutex(name)
    local fields = redis.call('HRANDFIELD', name, 3)
    for _, field in ipairs(fields) do
        local id = string.match(field, '^([%x-]+):%d')
        if id and #id >= 32 then
            return true
        end
    end
    if #fields > 1 then
        return false
    end
    return #fields == 0 or redis.call('PTTL', name) ~= -1 or string.find(fields[1], ':', 1, true) ~= nil
end

-- Fail as for a key of another type.
local function no_mutex()
    return redis.error_reply('WRONGTYPE the key holds a hash that is no lock')
end
