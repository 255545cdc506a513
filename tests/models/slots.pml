/* SPDX-License-Identifier: MIT */
/*
 * slots.pml - numbers of requests are drawn with their slots, and no result is taken for another's
 *
 * Stands for lk__slot_take() and lk__idempotent() of src/object/idempotent.c, lk__counted_take() of src/semaphore, and
 * once_answer() of src/acquire/idempotent.lua. Threads of one client give permits, each request under the number of
 * a slot; the server remembers of each slot the last number. Answers get lost, then the request is sent
 * again. FORGED: once, a slot has the record of a later request than this client ever made there.
 * Whoever is told that its request was overtaken knows that it did nothing, unless an answer to it got
 * lost before, and asks anew under another slot and number.
 *
 * Left out: late copies and given up requests, which are those of resend.pml.
 *
 *   clean  as it is                                      -DTHREADS=3 -DREQUESTS=1
 *   clean  two requests each                             -DTHREADS=2 -DREQUESTS=2
 *   clean  a record of a later request                   -DTHREADS=2 -DREQUESTS=2 -DFORGED
 *   found  a number is drawn before its slot is taken    -DTHREADS=2 -DREQUESTS=1 -DBUG_EARLY
 *   found  and the other's result is believed            -DTHREADS=2 -DREQUESTS=1 -DBUG_EARLY -DBUG_BELIEVED
 *   found  a later request's result is believed          -DTHREADS=1 -DREQUESTS=1 -DFORGED -DBUG_BELIEVED
 *   found  asked again under the same number             -DTHREADS=1 -DREQUESTS=1 -DFORGED -DBUG_SAME_NUMBER
 *   found  overtaken, so nothing was done before either  -DTHREADS=1 -DREQUESTS=1 -DFORGED -DBUG_SURE
 *
 *   long clean  three threads, two requests each         -DTHREADS=3 -DREQUESTS=2 -DFORGED
 */
#define SLOTS (THREADS + 2) /* one for each, and those that are given up */
#define FAR 200
#define TRIES 3 /* of a call, under as many numbers */

/* The server. */
byte permits = 0;
byte last[SLOTS]; /* number of the last request of a slot */

/* The client. */
bool used[SLOTS]; /* under the object's mutex */
byte numbers = 0;
byte given = 0, unknown = 0, ended = 0;
bool forged = false;

mtype = { fresh, done, overtaken };

inline take_slot(number, slot)
{
#ifdef BUG_EARLY
    atomic { numbers++; number = numbers }
#endif
    atomic {
        slot = 0;
        do
        :: used[slot] -> slot++
        :: else -> break
        od;
        used[slot] = true
#ifndef BUG_EARLY
        ;
        numbers++;
        number = numbers
#endif
    }
}

#ifdef BUG_BELIEVED
#define VERDICT_ON_OLDER done
#else
#define VERDICT_ON_OLDER overtaken
#endif

inline carry_out(number, slot, verdict)
{
    if
    :: last[slot] < number -> permits++; last[slot] = number; verdict = done
    :: last[slot] == number -> verdict = done
    :: last[slot] > number -> verdict = VERDICT_ON_OLDER
    fi
}

active [THREADS] proctype thread()
{
    byte requests = 0, number, slot, tries;
    bool lost;
    mtype verdict;
    do
    :: requests == REQUESTS -> break
    :: requests < REQUESTS ->
        requests++;
        tries = 0;
again:
        assert(tries < TRIES);
        tries++;
        lost = false;
#ifdef BUG_SAME_NUMBER
        if
        :: tries == 1 -> take_slot(number, slot)
        :: else
        fi;
#else
        take_slot(number, slot);
#endif
        do
        :: atomic { carry_out(number, slot, verdict); break }
        :: atomic { !lost -> carry_out(number, slot, verdict); lost = true } /* and is sent again */
        :: atomic { !lost -> lost = true } /* never arrived */
        od;
        if
        :: atomic { verdict == done -> used[slot] = false; given++ }
        :: verdict == overtaken ->
            assert(forged); /* who keeps the order is never overtaken */
            if
#ifndef BUG_SURE
            :: lost -> unknown++
#endif
            :: else -> goto again
            fi
        fi
    od;
    atomic { slot = 0; number = 0; ended++ }
}

#ifdef FORGED
active proctype forger()
{
    byte slot;
    select (slot : 0 .. THREADS - 1);
    atomic { last[slot] = FAR; forged = true }
}
#endif

/* What was answered was done once; what is unknown was done once or not at all. */
active proctype auditor()
{
    atomic {
        ended == THREADS -> assert(permits >= given && permits <= given + unknown)
    }
}
