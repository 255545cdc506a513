-- number.lua - a key that holds a whole number, or something of the application that has its name

-- The number, or nil when there is no key. Any other content is an error, as a key of another type is.
local function number_in(key)
    local text = redis.call('GET', key)
    if text and not string.match(text, '^-?%d+$') then
        error({ err = 'WRONGTYPE the key holds no whole number' })
    end
    return text and tonumber(text) or nil
end
