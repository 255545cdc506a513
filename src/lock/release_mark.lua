-- release_mark.lua - what a holder leaves of the mark of a robust mutex, before release_hold.lua gives that back
--
-- uses:     mark
-- keys:     mark string                 this key alone, so that it works while a cluster moves it
-- sent:     id
--           deadline_us                 before that nobody else holds it: the lease lasts longer
--           unrepaired untold
-- instead:  release 1
-- verdicts: DONE GONE LATE              GONE: the mark is none of this holder's
-- resend:   harmless: a mark that is settled is nobody's
if settle_mark(mark, id, unrepaired, untold) then
    return answer(DONE)
end
return answer(GONE)
