-- mark.lua - the mark of a robust object, settled by itself by a holder that is about to give it back
--
-- mark  string, "<owner id> <token> <...>" of the last grant, or "unrecoverable"

-- Returns whether it was the mark of `id`, which is the holder until then.
local function settle_mark(mark, id, unrepaired, untold)
    local found = redis.call('GET', mark) or ''
    if string.sub(found, 1, #id + 1) ~= id .. ' ' then
        return false
    elseif untold and string.sub(found, -2) == ' 1' then
        return true -- it stands without a holder, and so tells the next one
    elseif unrepaired then
        redis.call('PEXPIRE', mark, '1', 'XX') -- it has no end, and gets none: but a server out of memory allows the rest
        redis.call('SET', mark, 'unrecoverable')
    else
        redis.call('DEL', mark)
    end
    return true
end
