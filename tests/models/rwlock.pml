/* SPDX-License-Identifier: MIT */
/*
 * rwlock.pml - a read-write lock: many readers or one writer, each with a lease of its own
 *
 * Stands for src/rwlock/admit.lua, acquire.lua and release.lua, and queue.lua and acquire.c of src/wait.
 * Each client, reader or writer, gets it once. As in queue.pml nobody counts time: a lease ends at any
 * moment, and the validity drawn from it has ended by then. The same goes for the signs of life by which
 * a queued writer keeps readers from passing it: who is dead is silent at some time, and leaves the queue
 * at another.
 *
 * With PHASES the order is phase-fair, and where nobody dies or is cut off two more claims hold: a reader waits for
 * one writer at most, and none comes in that came while others read and a writer waited.
 *
 * Left out: re-entrance, downgrades, other preferences, the largest number of readers, robust locks, and
 * requests that come twice, which are as in queue.pml.
 *
 *   clean  a client dies                                -DCLIENTS=3 -DCUTS=0 -DLOSSES=0 -DEXPIRIES=0
 *   clean  a lease ends                                 -DCLIENTS=3 -DCUTS=0 -DLOSSES=0 -DCRASHES=0
 *   clean  all faults, two clients                      -DCLIENTS=2
 *   clean  everybody is served                          -DCLIENTS=2 -DLIVE -DSERVED
 *   clean  a dead reader is not kept alive by others     -DCLIENTS=2 -DLIVE -DSTAYS
 *   clean  a script serves one, a client dies          -DCLIENTS=3 -DCUTS=0 -DLOSSES=0 -DEXPIRIES=0 -DROUND=1
 *   clean  a script serves one, everybody is served      -DCLIENTS=3 -DCRASHES=0 -DEXPIRIES=0 -DCUTS=0 -DROUND=1 -DLIVE -DSERVED
 *   clean  phase-fair: turns, three clients              -DCLIENTS=3 -DPHASES -DCRASHES=0 -DEXPIRIES=0 -DLOSSES=0 -DCUTS=0
 *   clean  phase-fair: a client dies                     -DCLIENTS=3 -DPHASES -DCUTS=0 -DLOSSES=0 -DEXPIRIES=0
 *   clean  phase-fair: a script serves one               -DCLIENTS=3 -DPHASES -DCRASHES=0 -DEXPIRIES=0 -DLOSSES=0 -DCUTS=0 -DROUND=1
 *   clean  phase-fair: everybody is served               -DCLIENTS=2 -DPHASES -DLIVE -DSERVED
 *   found  phase-fair: readers pass the next writer      -DCLIENTS=3 -DPHASES -DCRASHES=0 -DEXPIRIES=0 -DLOSSES=0 -DCUTS=0 -DBUG_NO_TURN
 *   found  phase-fair: a writer leaves the turn as it is -DCLIENTS=4 -DPHASES -DCRASHES=0 -DEXPIRIES=0 -DLOSSES=0 -DCUTS=0 -DBUG_TURN_STAYS
 *   found  a newcomer passes those whose round is next   -DCLIENTS=3 -DCRASHES=0 -DEXPIRIES=0 -DLOSSES=0 -DCUTS=0 -DROUND=1 -DBUG_READERS_PASS
 *   found  a dead reader is kept alive by others         -DCLIENTS=2 -DLIVE -DSTAYS -DBUG_SHARED_LEASE
 *   found  a reader comes in beside a writer             -DCLIENTS=2 -DBUG_READER_BESIDE_WRITER
 *   found  a writer comes in beside the last readers     -DCLIENTS=2 -DBUG_WRITER_BESIDE_READER
 *   found  a reader passes a writer that waits           -DCLIENTS=3 -DCRASHES=0 -DEXPIRIES=0 -DLOSSES=0 -DCUTS=0 -DBUG_READERS_PASS
 *   found  one reader is let in, those behind it are not -DCLIENTS=3 -DCRASHES=0 -DEXPIRIES=0 -DLOSSES=0 -DCUTS=0 -DBUG_ONE_READER
 *   found  a hand-over tries the head alone              -DCLIENTS=3 -DCRASHES=0 -DEXPIRIES=0 -DLOSSES=0 -DBUG_HEAD_ONLY
 *   found  the last reader does not hand over            -DCLIENTS=2 -DBUG_KEEPS_QUIET
 *   found  release sent while still believing            -DCLIENTS=2 -DBUG_SENT_FIRST
 *   found  validity from the receipt of the message      -DCLIENTS=3 -DLOSSES=0 -DCRASHES=0 -DCUTS=0 -DBUG_FROM_RECEIPT
 *   found  waits for the message alone                   -DCLIENTS=2 -DLIVE -DSERVED -DBUG_NO_POLL
 *
 *   long clean  a client dies, a lease ends              -DCLIENTS=3 -DCUTS=0 -DLOSSES=0
 *   long clean  a client is cut off, a message is lost   -DCLIENTS=3 -DCRASHES=0 -DEXPIRIES=0
 *   long clean  all faults                               -DCLIENTS=3
 *   long clean  phase-fair: all faults                   -DCLIENTS=3 -DPHASES
 *   long clean  phase-fair: turns, four clients          -DCLIENTS=4 -DPHASES -DCRASHES=0 -DEXPIRIES=0 -DLOSSES=0 -DCUTS=0
 *   long clean  everybody is served, a client dies       -DCLIENTS=3 -DLOSSES=0 -DEXPIRIES=0 -DCUTS=0 -DLIVE -DSERVED
 */
#ifndef LOSSES
#define LOSSES 1 /* of an answer or a message */
#endif
#ifndef EXPIRIES
#define EXPIRIES 1 /* of leases whose holder lives */
#endif
#ifndef CUTS
#define CUTS 1 /* of the connection that hears messages, of client 0 */
#endif
#ifndef CRASHES
#define CRASHES 1 /* of client 0 */
#endif

#ifndef ROUND
#define ROUND CLIENTS /* as many are let in by one script; the next one is told to ask, and goes on */
#endif

byte losses = LOSSES, expiries = EXPIRIES, cuts = CUTS, crashes = CRASHES;

/* The server. */
byte arrivals = 0;
bool writer[CLIENTS]; /* what it wants */
bool holds[CLIENTS], queued[CLIENTS], silent[CLIENTS];
byte arrival[CLIENTS];

#ifdef PHASES
/* The readers up to this arrival come in before the next writer; ALL: a writer was the last one that came in. */
#define ALL 255
#define BACK 50
#define PLACE(id) (arrival[id] + (writer[id] -> BACK : (arrival[id] <= turn -> 0 : 2 * BACK)))
byte turn = ALL;
#else
#define PLACE(id) arrival[id]
#endif

#if defined(PHASES) && CRASHES == 0 && EXPIRIES == 0 && LOSSES == 0 && CUTS == 0
#define TURNS /* what is claimed of readers that wait */
byte passed[CLIENTS]; /* by so many writers */
bool due[CLIENTS];    /* a writer had the lock, or gave up its turn, since this one came */
#endif

/* On the way. An answer or a message is FRESH until the lease it tells of ends. */
#define FRESH 1
#define STALE 2
bool asks[CLIENTS], releases[CLIENTS];
byte answer[CLIENTS], message[CLIENTS];

/* The clients. */
bool listens[CLIENTS] = true, believes[CLIENTS], dead[CLIENTS], finished[CLIENTS];
byte ended = 0;

byte i, at, next, readers, given; /* scratch, 0 between steps */
bool writing, shut, alone, rest;

/* --- the server ------------------------------------------------------------------------------------- */

inline look()
{
    readers = 0;
    writing = false;
    i = 0;
    do
    :: i < CLIENTS ->
        if
        :: holds[i] && writer[i] -> writing = true
        :: holds[i] && !writer[i] -> readers++
        :: else
        fi;
        i++
    :: else -> i = 0; break
    od
}

#define NOBODY CLIENTS
#define WAITS(id) (queued[id] && listens[id] && !silent[id] && !finished[id])

#ifdef PHASES
inline all_are_due()
{
#ifdef TURNS
    i = 0;
    do
    :: i < CLIENTS -> due[i] = due[i] || (queued[i] && !writer[i]); i++
    :: else -> i = 0; break
    od
#else
    skip
#endif
}

/* A reader waits for one writer at most; while others read, none passes a writer that can be told. */
inline in_order(id)
{
#ifdef TURNS
    if
    :: writer[id] -> all_are_due()
    :: else
    fi;
    i = 0;
    do
    :: i < CLIENTS ->
        assert(writer[id] || due[id] || !(WAITS(i) && writer[i]));
        if
        :: writer[id] && WAITS(i) && !writer[i] -> passed[i]++; assert(passed[i] <= 1)
        :: else
        fi;
        i++
    :: else -> i = 0; break
    od
#else
    skip
#endif
}
#else
/* Readers pass no writer that came before and can be told. */
inline in_order(id)
{
    i = 0;
    do
    :: i < CLIENTS ->
        assert(writer[id] || !(WAITS(i) && writer[i] && (arrival[id] == 0 || arrival[i] < arrival[id])));
        i++
    :: else -> i = 0; break
    od
}
#endif

inline reply(id)
{
    if
    :: finished[id]
    :: !finished[id] -> answer[id] = FRESH
    :: !finished[id] && losses > 0 -> losses--
    fi
}

inline tell(id)
{
    if
    :: finished[id]
    :: !finished[id] -> message[id] = FRESH
    :: !finished[id] && losses > 0 -> losses--
    fi
}

/* The waiter is to ask. */
inline tell_to_ask(id)
{
    if
    :: finished[id]
    :: !finished[id] -> asks[id] = true
    :: !finished[id] && losses > 0 -> losses--
    fi
}

#ifdef PHASES
/* end_turn_of_readers() of admit.lua, while readers hold; a writer that holds begins the next turn. */
inline keep_turn()
{
    shut = false;
    next = 0;
    i = 0;
    do
    :: i < CLIENTS ->
        shut = shut || (queued[i] && writer[i]);
        if
        :: queued[i] && !writer[i] && arrival[i] > next -> next = arrival[i]
        :: else
        fi;
        i++
    :: else -> i = 0; break
    od;
    if
#ifndef BUG_TURN_STAYS
    :: writing -> turn = ALL
#endif
#ifndef BUG_NO_TURN
    :: !writing && readers > 0 && shut && turn == ALL -> turn = next
#endif
    :: else
    fi;
    shut = false;
    next = 0
}
#endif

/* After look(). */
inline enqueue(id)
{
#ifdef TURNS
    due[id] = due[id] || writing;
#endif
    if
    :: arrival[id] == 0 -> arrivals++; arrival[id] = arrivals
    :: else
    fi;
    queued[id] = true;
    silent[id] = false
}

/* The first one in the queue behind `at`. */
inline look_behind()
{
    next = NOBODY;
    i = 0;
    do
    :: i < CLIENTS ->
        if
        :: queued[i] && PLACE(i) > at && (next == NOBODY || PLACE(i) < PLACE(next)) -> next = i
        :: else
        fi;
        i++
    :: else -> i = 0; break
    od
}

/* No room is left that somebody who can be told waits for. */
inline no_idle_room()
{
    look();
    at = 0;
    shut = writing;
    do
    :: look_behind();
        if
        :: next == NOBODY -> break
        :: else ->
            assert(shut || !WAITS(next) || (writer[next] && readers > 0));
            shut = shut || (writer[next] && !silent[next]);
            at = PLACE(next)
        fi
    od
}

#ifdef BUG_WRITER_BESIDE_READER
#define ROOM(id) true
#else
#define ROOM(id) (!writer[id] || readers == 0)
#endif

/* let_in() of admit.lua: one writer, or all readers up to a writer that waits, if they are not more than a script may
   serve; the asker needs no message. */
inline serve(asker)
{
    look();
    shut = writing;
    given = 0;
    rest = false;
    at = 0;
    do
    :: shut -> break
    :: else ->
        look_behind();
        if
        :: next == NOBODY -> break
#ifndef BUG_WRITER_BESIDE_READER
        :: next != NOBODY && writer[next] && readers > 0 ->
            shut = next == asker || !silent[next]; /* others pass it when it is dead */
            at = PLACE(next)
#endif
        :: next != NOBODY && ROOM(next) && next != asker && listens[next] && given >= ROUND ->
            tell_to_ask(next);
            rest = true;
            shut = true
        :: next != NOBODY && ROOM(next) && (next == asker || (listens[next] && given < ROUND)) ->
            at = PLACE(next);
            given++;
            in_order(next);
            holds[next] = true;
            queued[next] = false;
            if
            :: next == asker -> reply(next)
            :: else -> tell(next)
            fi;
            readers = readers + !writer[next];
#ifdef BUG_ONE_READER
            shut = true
#else
            shut = writer[next]
#endif
        :: next != NOBODY && ROOM(next) && next != asker && !listens[next] ->
#ifdef BUG_HEAD_ONLY
            shut = true;
#endif
            at = PLACE(next)
        fi
    od;
#ifdef PHASES
    look();
    keep_turn();
#endif
    if
    :: rest
    :: !rest -> no_idle_room()
    fi;
    at = 0;
    next = 0;
    readers = 0;
    given = 0;
    writing = false;
    shut = false;
    rest = false
}

inline is_alone()
{
    alone = true;
    i = 0;
    do
    :: i < CLIENTS -> alone = alone && !queued[i]; i++
    :: else -> i = 0; break
    od;
#ifdef BUG_READERS_PASS
    alone = alone || readers > 0
#endif
}

#ifdef BUG_READER_BESIDE_WRITER
#define BUSY(id) (writer[id] && (writing || readers > 0))
#else
#define BUSY(id) (writing || (writer[id] && readers > 0))
#endif

inline carry_out_ask(id)
{
    look();
    is_alone();
    if
    :: holds[id] -> reply(id)
    :: !holds[id] && alone && !BUSY(id) -> in_order(id); holds[id] = true; reply(id)
    :: !holds[id] && alone && BUSY(id) ->
        enqueue(id);
#ifdef PHASES
        turn = ALL; /* it went with the last waiter */
        keep_turn()
#endif
    :: !holds[id] && !alone -> enqueue(id); serve(id)
    fi;
    readers = 0;
    writing = false;
    alone = false
}

inline carry_out_release(id)
{
#ifdef TURNS
    if
    :: queued[id] && writer[id] -> all_are_due()
    :: else
    fi;
#endif
    queued[id] = false;
    holds[id] = false;
#ifdef BUG_KEEPS_QUIET
    no_idle_room();
    at = 0;
    next = 0;
    readers = 0;
    writing = false;
    shut = false
#else
    serve(NOBODY)
#endif
}

/* The validities that were drawn from this lease have ended with it, wherever they are. */
inline end_lease(id)
{
    holds[id] = false;
    believes[id] = false;
    if
    :: answer[id] == FRESH -> answer[id] = STALE
    :: else
    fi;
    if
    :: message[id] == FRESH -> message[id] = STALE
    :: else
    fi
}

#ifdef BUG_SHARED_LEASE
#define ENDS(id) (!holds[CLIENTS - 1] || dead[CLIENTS - 1])
#else
#define ENDS(id) true
#endif

/* What may happen to client `id` next, away from itself. */
active [CLIENTS] proctype fate()
{
    byte id = _pid;
end:
    do
    :: atomic { asks[id] -> asks[id] = false; carry_out_ask(id) }
    :: atomic { asks[id] && dead[id] -> asks[id] = false }
    :: atomic { releases[id] -> releases[id] = false; carry_out_release(id) }
    :: atomic { queued[id] && dead[id] && !silent[id] -> silent[id] = true }
    :: atomic { queued[id] && dead[id] -> queued[id] = false; silent[id] = true }
    :: atomic { holds[id] && dead[id] && ENDS(id) -> end_lease(id) }
    :: atomic { holds[id] && !dead[id] && expiries > 0 -> expiries--; end_lease(id) }
    od
}

/* --- the clients -------------------------------------------------------------------------------------- */

inline hold(me)
{
    i = 0;
    do
    :: i < CLIENTS -> assert(i == me || !believes[i] || (!writer[me] && !writer[i])); i++
    :: else -> i = 0; break
    od;
    believes[me] = true
}

/* What becomes of an ask that is still under way is in queue.pml. */
inline finish(me)
{
    believes[me] = false;
    finished[me] = true;
    asks[me] = false;
    answer[me] = 0;
    message[me] = 0
}

proctype client(byte me)
{
#ifndef STAYS
    if
    :: writer[me] = true
    :: true
    fi;
#endif
    asks[me] = true;
    do
    :: atomic { answer[me] == FRESH -> answer[me] = 0; hold(me); break }
    :: atomic { answer[me] == STALE -> answer[me] = 0; asks[me] = true }
#ifdef BUG_FROM_RECEIPT
    :: atomic { message[me] != 0 -> message[me] = 0; hold(me); break }
#else
    :: atomic { message[me] == FRESH -> message[me] = 0; hold(me); break }
    :: atomic { message[me] == STALE -> message[me] = 0; asks[me] = true }
#endif
#ifndef BUG_NO_POLL /* an ask of who is queued may find room, so they ask again and again */
    :: atomic { !asks[me] && answer[me] == 0 -> asks[me] = true }
#endif
    :: atomic { !listens[me] -> listens[me] = true; asks[me] = true } /* the hub is back, and everybody asks */
    :: atomic { me == 0 && crashes > 0 -> crashes--; dead[me] = true; goto gone }
#ifndef LIVE
    :: break /* at its limit, or cancelled */
#endif
    od;
    do
    :: true -> break
    :: atomic { me == 0 && crashes > 0 -> crashes--; dead[me] = true; goto gone }
#ifdef STAYS
    :: believes[me] -> skip /* renewed, on and on */
#endif
    od;
#ifdef BUG_SENT_FIRST
    releases[me] = true;
    atomic { finish(me) }
#else
    atomic { finish(me); releases[me] = true }
#endif
gone:
    atomic { believes[me] = false; ended++ }
}

/* Client 0 may go deaf; if it died it is deaf when its socket closes. */
active proctype hub()
{
end:
    do
    :: atomic { cuts > 0 -> cuts--; listens[0] = false }
    :: atomic { dead[0] && listens[0] -> listens[0] = false }
    od
}

init
{
    atomic {
        i = 0;
        do
        :: i < CLIENTS -> run client(i); i++
        :: else -> i = 0; break
        od
    }
}

#ifdef SERVED
ltl served { <> (ended == CLIENTS) }
#endif
#ifdef STAYS
ltl ends { [] ((dead[0] && holds[0]) -> <> !holds[0]) }
#endif
