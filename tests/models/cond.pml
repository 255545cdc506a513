/* SPDX-License-Identifier: MIT */
/*
 * cond.pml - waiters of a condition move to the queue of their mutex, and no signal is lost on the way
 *
 * Stands for the scripts of src/cond: wait.lua, signal.lua, leave.lua, and condition.lua, which moves. Each waiter waits
 * once. A user of the mutex takes it and gives it back, so a waiter that was moved finds it free or not. Waiter 1 may die
 * anywhere; another one may be silent for too long, or time out at any moment. No message is modelled: a waiter that asks
 * finds what a message would tell.
 *
 * A signal owes a wake-up to those who wait at that time: owed[id] counts the signals since `id` began to wait, less the
 * wake-ups since. When all is still, nobody who lives and waits is owed one. Wake-ups without a signal are legal.
 *
 *   clean  one dies, one times out, one is slow           -DSIGNALS=2
 *   clean  nobody dies, two time out                      -DSIGNALS=2 -DCRASHES=0 -DTIMEOUTS=2
 *   clean  a broadcast wakes all                        -DSIGNALS=1 -DBROADCAST
 *   found  gives the mutex back before it queues          -DSIGNALS=1 -DCRASHES=0 -DBUG_RELEASED_FIRST
 *   found  a signal to a dead waiter is over              -DSIGNALS=1 -DTIMEOUTS=0 -DBUG_DEAD_KEEPS
 *   found  to ask in the queue is to have woken           -DSIGNALS=1 -DTIMEOUTS=0 -DBUG_ASK_CONFIRMS
 *   found  a waiter that times out takes the signal along -DSIGNALS=1 -DCRASHES=0 -DBUG_TIMEOUT_KEEPS
 *   found  who was moved is picked once more              -DSIGNALS=2 -DCRASHES=0 -DBUG_PICKED_TWICE
 *   found  a broadcast moves the first                  -DSIGNALS=1 -DBROADCAST -DCRASHES=0 -DBUG_ONE_OF_ALL
 *
 *   long clean  four waiters, three signals               -DSIGNALS=3 -DWAITERS=4
 */
#ifndef WAITERS
#define WAITERS 3 /* from 1 on */
#endif
#ifndef CRASHES
#define CRASHES 1 /* of waiter 1 */
#endif
#ifndef TIMEOUTS
#define TIMEOUTS 1
#endif
#ifndef SLOW
#define SLOW 1 /* of those who live: times that a moved waiter is not heard of for Lw */
#endif
#define USER (WAITERS + 1)

byte crashes = CRASHES, timeouts = TIMEOUTS, slow = SLOW;

/* The server: who waits, in order; the mutex and its queue; who was moved and did not confirm. */
byte owner = 0, arrivals = 0;
bool waiting[WAITERS + 1], queued[WAITERS + 1], moved[WAITERS + 1], overdue[WAITERS + 1];
byte at[WAITERS + 1], place[WAITERS + 1], places = 0;

/* The waiters. */
bool blocked[WAITERS + 1], all[WAITERS + 1], dead[WAITERS + 1], woke[WAITERS + 1];
byte owed[WAITERS + 1], ended = 0, sent = 0;

byte i, best; /* scratch, 0 between steps */

/* The first of the mutex's queue is its owner. One that is dead has it until its claim ends. */
inline serve()
{
    best = 0;
    i = 1;
    do
    :: i <= WAITERS ->
        if
        :: owner == 0 && queued[i] && (best == 0 || place[i] < place[best]) -> best = i
        :: else
        fi;
        i++
    :: else -> i = 0; break
    od;
    if
    :: best != 0 -> owner = best; queued[best] = false; best = 0
    :: else
    fi
}

inline move(id)
{
    assert(!queued[id] && owner != id); /* nobody is picked twice */
#ifndef BUG_PICKED_TWICE
    waiting[id] = false;
#endif
    queued[id] = true;
    places++;
    place[id] = places;
    moved[id] = true
}

/* The first who waits goes to the mutex's queue; with BROADCAST all. */
inline wake()
{
    do
    :: best = 0;
        i = 1;
        do
        :: i <= WAITERS ->
            if
            :: waiting[i] && (best == 0 || at[i] < at[best]) -> best = i
            :: else
            fi;
            i++
        :: else -> i = 0; break
        od;
        if
#ifdef BUG_PICKED_TWICE
        :: best != 0 && (queued[best] || owner == best) -> best = 0; break /* the signal is spent on it */
        :: best != 0 && !queued[best] && owner != best -> move(best)
#else
        :: best != 0 -> move(best)
#endif
        :: best == 0 -> break
        fi;
#if !defined(BROADCAST) || defined(BUG_ONE_OF_ALL)
        best = 0;
        break
#endif
    od;
    serve()
}

/* A signal that nobody confirmed in time goes to the next; whoever asks does it. */
inline pass_on()
{
    i = 1;
    do
    :: i <= WAITERS && overdue[i] -> overdue[i] = false; moved[i] = false; i = 0; wake(); break
    :: i <= WAITERS && !overdue[i] -> i++
    :: else -> i = 0; break
    od
}

inline ask(id)
{
    if
    :: waiting[id] -> pass_on()
    :: !waiting[id] -> /* moved, or evicted: woken either way */
#ifdef BUG_ASK_CONFIRMS
        moved[id] = false;
#endif
        overdue[id] = false;
        if
        :: !queued[id] && owner != id -> queued[id] = true; places++; place[id] = places
        :: else
        fi;
        serve()
    fi
}

inline confirm(id)
{
    moved[id] = false;
    overdue[id] = false;
    blocked[id] = false;
    woke[id] = true;
    owed[id] = 0;
    i = 1;
    do
    :: i <= WAITERS ->
        if
        :: owed[i] > 0 -> owed[i]--
        :: else
        fi;
        i++
    :: else -> i = 0; break
    od
}

inline leave(id)
{
    blocked[id] = false;
    owed[id] = 0;
    queued[id] = false;
    moved[id] = false;
    overdue[id] = false;
    if
    :: owner == id -> owner = 0
    :: else
    fi;
    if
    :: waiting[id] -> waiting[id] = false
    :: else ->
#ifndef BUG_TIMEOUT_KEEPS
        wake()
#else
        skip
#endif
    fi;
    serve()
}

proctype waiter(byte id)
{
    atomic { owner == 0 -> owner = id }
#ifdef BUG_RELEASED_FIRST
    atomic { owner = 0; blocked[id] = true; serve() }
    atomic { waiting[id] = true; arrivals++; at[id] = arrivals }
#else
    atomic { waiting[id] = true; arrivals++; at[id] = arrivals; owner = 0; blocked[id] = true; serve() }
#endif
end:
    do
    :: atomic { owner == id -> confirm(id); break }
    /* of the polls, those that change something */
    :: atomic { !waiting[id] && owner != id && (!queued[id] || owner == 0 || overdue[id] || moved[id]) -> ask(id) }
#ifndef BUG_DEAD_KEEPS
    :: atomic { waiting[id] && (overdue[1] || overdue[2] || overdue[WAITERS]) -> ask(id) }
#endif
    :: atomic { timeouts > 0 -> timeouts--; leave(id); goto over }
    :: atomic { id == 1 && crashes > 0 -> crashes--; dead[id] = true; blocked[id] = false; goto over }
    od;
    atomic { owner = 0; waiting[id] = false; serve() }
over:
    ended++
}

/* What happens by itself. */
active proctype fate()
{
    byte id;
end:
    do
    :: atomic { owner != 0 && owner <= WAITERS && dead[owner] -> owner = 0; serve() } /* its claim ends */
    :: atomic { dead[1] && (waiting[1] || queued[1]) -> waiting[1] = false; queued[1] = false } /* silent for too long */
    :: atomic { dead[1] && moved[1] && !overdue[1] -> overdue[1] = true }
    :: atomic { slow > 0 && moved[2] && !overdue[2] && !dead[2] -> slow--; overdue[2] = true }
    od
}

/* Which faults do not come. */
active proctype luck()
{
    atomic { timeouts = 0 }
    atomic { crashes = 0 }
}

active proctype user()
{
    atomic { owner == 0 -> owner = USER }
    atomic { owner = 0; serve() }
}

active proctype signaller()
{
    do
    :: atomic { sent < SIGNALS &&
            (blocked[1] || blocked[2] || blocked[WAITERS]) && (owner == 0 || owner == USER) ->
            sent++;
            i = 1;
            do
            :: i <= WAITERS ->
                if
                :: blocked[i] && !queued[i] && owner != i && !woke[i] -> owed[i]++; all[i] = true
                :: else
                fi;
                i++
            :: else -> i = 0; break
            od;
            wake() }
    :: sent == SIGNALS -> break
    :: atomic { ended == WAITERS -> break }
    od
}

/* All is still. */
active proctype auditor()
{
end:
    atomic {
        timeout;
        i = 1;
        do
        :: i <= WAITERS ->
            assert(dead[i] || !blocked[i] || owed[i] == 0);
#ifdef BROADCAST
            assert(dead[i] || !blocked[i] || !all[i]);
#endif
            assert(dead[i] || owner != 0 || !queued[i]);
            i++
        :: else -> break
        od;
        i = 0
    }
}

init
{
    atomic {
        i = 1;
        do
        :: i <= WAITERS -> run waiter(i); i++
        :: else -> i = 0; break
        od
    }
}
