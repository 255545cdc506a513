-- since.lua - tell when a client first met this run of the server
--
-- raw:      it is asked for in the handshake
-- resend:   harmless: the date stays
--
-- ARGV[1]  now, in milliseconds, by the client's clock
-- returns  that date, by the clock of that client
--
-- What the server forgets, it forgets with this date. A persistent one may have that of an earlier run.
local key = 'latchkey:since'
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local met = string.match(redis.call('GET', key) or '', '^' .. run .. ' (%d+)$')
if not met or tonumber(met) > tonumber(ARGV[1]) then
    met = ARGV[1]
    redis.call('SET', key, run .. ' ' .. met)
end
return met
