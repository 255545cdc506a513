/* SPDX-License-Identifier: MIT */
/*
 * resend.pml - a request that is sent twice counts once
 *
 * Stands for once.lua of src/wait and its users: take.lua, give.lua and leave.lua of src/semaphore with the
 * slots of once.c, and countdown.lua of src/latch. What they change is a bare number without owners; here
 * it is the permits of a semaphore, and a countdown of a latch is a give with another sign. A client sends
 * one request after the other under rising numbers; each may be sent again while copies of it are still
 * on their way, and these come at any time until their deadline, which is shorter than the record lasts.
 * A take that got no answer is given up by a leave with its number, which is then sent until it is answered.
 * A slot whose last request got no answer is not used again: its record must not be overwritten.
 *
 * Left out: waiting, claims, and what belongs to somebody (queue.pml, lease.pml).
 *
 *   clean  as it is                                      -DREQUESTS=3
 *   clean  more copies                                   -DREQUESTS=2 -DCOPIES=3
 *   found  no record                                     -DREQUESTS=1 -DBUG_NO_RECORD
 *   found  a record without the request's number         -DREQUESTS=2 -DBUG_NO_NUMBER
 *   found  an older copy is taken for a new request      -DREQUESTS=2 -DBUG_OLDER_IS_NEW
 *   found  the record ends before the deadline           -DREQUESTS=1 -DBUG_SHORT_RECORD
 *   found  a leave does not stop copies of its take      -DREQUESTS=1 -DBUG_LEAVE_UNRECORDED
 *   found  a leave counts as often as it comes           -DREQUESTS=1 -DBUG_LEAVE_TWICE
 *   found  an open slot is used again                    -DREQUESTS=2 -DBUG_SLOT_REUSED
 *   found  given up without a leave                      -DREQUESTS=1 -DBUG_NO_LEAVE
 *
 *   long clean  more requests, more copies               -DREQUESTS=4 -DCOPIES=3
 */
#ifndef COPIES
#define COPIES 2 /* of a request on their way at once */
#endif
#define N REQUESTS /* numbers, from 1 on; what a request wants is chosen when it is made */
#define START N    /* permits to begin with: enough for all */

/* The server: permits, and of each slot the number and the result of its last request. */
byte permits = START;
byte last[N + 1]; /* by slot */
bool took[N + 1];

/* The requests, by number. */
mtype = { take, give };
mtype what[N + 1];
byte slot[N + 1], copies[N + 1], leaves[N + 1];
bool answered[N + 1], settled[N + 1], over[N + 1];

/* What is true for the client in the end. */
byte gone = 0, come = 0;
bool done = false;

/* --- the server ------------------------------------------------------------------------------------- */

#ifdef BUG_NO_RECORD
#define IS_OLD(id) false
#else
#ifdef BUG_OLDER_IS_NEW
#define IS_OLD(id) (last[slot[id]] == id)
#else
#ifdef BUG_NO_NUMBER
#define IS_OLD(id) (last[slot[id]] != 0)
#else
#define IS_OLD(id) (last[slot[id]] >= id)
#endif
#endif
#endif

inline record(id, result)
{
    last[slot[id]] = id;
    took[slot[id]] = result
}

inline change(id)
{
    if
    :: what[id] == take -> permits--
    :: what[id] == give -> permits++
    fi;
    record(id, true)
}

/* Who hears the answer to a copy is whoever waits for it still. */
inline carry_out(id)
{
    if
    :: IS_OLD(id)
    :: !IS_OLD(id) -> change(id)
    fi;
    if
    :: !over[id] -> answered[id] = true
    :: true /* lost */
    fi
}

#ifdef BUG_LEAVE_TWICE
#define WAS_LEFT(id) false
#else
#define WAS_LEFT(id) (last[slot[id]] == id && !took[slot[id]])
#endif

inline carry_out_leave(id)
{
    if
    :: last[slot[id]] > id || WAS_LEFT(id)
    :: last[slot[id]] == id && !WAS_LEFT(id) -> permits++; record(id, false)
    :: last[slot[id]] < id ->
#ifndef BUG_LEAVE_UNRECORDED
        record(id, false)
#else
        skip
#endif
    fi;
    if
    :: settled[id] = true
    :: true /* lost */
    fi
}

/* Copies of request `id` on their way. */
active [N] proctype network()
{
    byte id = _pid + 1;
end:
    do
    :: atomic { copies[id] > 0 -> copies[id]--; carry_out(id) }
    :: atomic { copies[id] > 0 -> copies[id]-- } /* past its deadline, or never arrives */
    :: atomic { leaves[id] > 0 -> leaves[id]--; carry_out_leave(id) }
    :: atomic { leaves[id] > 0 -> leaves[id]-- }
#ifdef BUG_SHORT_RECORD
    :: atomic { last[slot[id]] == id && copies[id] > 0 -> last[slot[id]] = 0; took[slot[id]] = false }
#endif
    od
}

/* --- the client ---------------------------------------------------------------------------------------- */

active proctype client()
{
    byte id = 0, open = 1; /* the slot that comes next */
    do
    :: id == N -> break
    :: id < N ->
        atomic {
            id++;
            slot[id] = open;
            if
            :: what[id] = take
            :: what[id] = give
            fi;
            copies[id] = 1
        }
        do
        :: atomic { copies[id] < COPIES -> copies[id]++ } /* no answer yet: sent again */
        :: atomic { answered[id] -> over[id] = true; gone = gone + (what[id] == take); come = come + (what[id] == give);
                break }
        :: atomic { what[id] == take && !answered[id] -> over[id] = true; goto giving_up }
        od;
        goto next;
giving_up:
#ifndef BUG_NO_LEAVE
        do
        :: atomic { leaves[id] < COPIES -> leaves[id]++ }
        :: settled[id] -> break
        :: goto unanswered /* left to the watchdog, which goes on */
        od;
#endif
        goto next;
unanswered:
#ifndef BUG_SLOT_REUSED
        open++;
#endif
next:
        skip
    od;
    done = true
}

#ifdef BUG_NO_LEAVE
#define IS_SETTLED(id) (copies[id] == 0)
#else
#define IS_SETTLED(id) (copies[id] == 0 && leaves[id] == 0 && (answered[id] || settled[id]))

/* The watchdog sends a leave until it is answered. */
active [N] proctype watchdog()
{
    byte id = _pid - N; /* behind the networks and the client */
end:
    do
    :: atomic { over[id] && !answered[id] && !settled[id] && leaves[id] == 0 -> leaves[id] = 1 }
    od
}
#endif

/* When all is settled the number is what the client knows it to be. */
active proctype auditor()
{
    byte id = 1;
end:
    atomic {
        done;
        do
        :: id <= N && IS_SETTLED(id) -> id++
        :: id <= N && !IS_SETTLED(id) -> goto unsettled
        :: else -> break
        od;
        assert(permits == START - gone + come)
    }
unsettled:
    skip
}
