/* SPDX-License-Identifier: MIT */
/*
 * rest.pml - waiters that rest are told of each claim: so one that nobody takes is found when it ends
 *
 * Stands for call_resting(), give_sign() of src/acquire/queue.lua, the looks at `resting` of first.lua and serve.lua, and
 * lk__fsm_mayrest(), lk__acquirefsm_hinted() of src/acquire/fsm.c. WAITERS wait for what a holder has for long. Each may go to
 * rest: it says so with an ask, and sleeps if the answer tells of a long hold. Whoever gives back grants a claim to the first
 * of them, which may stand still. Answers and messages come late, and in any order. Time is not counted: who does not rest
 * asks before a claim ends, and who rests does not.
 *
 *   clean  a claim of somebody who stands still is known to others      -DSTILL=2
 *   found  a hand-over does not look whether somebody rests             -DSTILL=1 -DBUG_STRAIGHT
 *   found  only the next one is told                                    -DSTILL=2 -DBUG_NEXT_ALONE
 *   found  a message beside an ask is forgotten with its answer         -DSTILL=1 -DBUG_FORGETS
 *   found  the note goes with any waiter that leaves                    -DSTILL=1 -DBUG_NOTE_GOES
 *
 *   long clean  four waiters                                            -DSTILL=3 -DWAITERS=4
 */
#ifndef WAITERS
#define WAITERS 3 /* from 1 on, in order of arrival */
#endif
#define HOLDER (WAITERS + 1)

/* The server. */
byte owner = HOLDER;
bool claim = false;        /* what the owner has is a claim */
bool queued[WAITERS + 1];
bool rests[WAITERS + 1];   /* its sign of life says so */
bool resting = false;      /* the note that somebody may rest */

/* The way to the clients. */
bool told[WAITERS + 1];    /* a message is on its way */
byte answer[WAITERS + 1];  /* and an answer: 1 it rests, and the hold is a long one; 2 all others */

/* The clients. */
bool still[HOLDER + 1], asleep[WAITERS + 1], again[WAITERS + 1], done[WAITERS + 1];
byte stills = STILL;

byte i, waiting, knowing; /* scratch, 0 between steps */

#define WAITS(id) (queued[id] && !still[id])
#define KNOWS(id) (WAITS(id) && (told[id] || again[id] || (!asleep[id] && answer[id] != 1)))

/* Those who rest are told, and count as the others do. */
inline call_resting()
{
    if
    :: resting ->
        i = 1;
        do
        :: i <= WAITERS && queued[i] && rests[i] ->
            rests[i] = false;
            told[i] = true;
#ifdef BUG_NEXT_ALONE
            break
#else
            i++
#endif
        :: i <= WAITERS && !(queued[i] && rests[i]) -> i++
        :: i > WAITERS -> break
        od;
        i = 0;
        resting = false
    :: else
    fi
}

/* To the first of them, which is granted a claim. */
inline hand_over()
{
    owner = 0;
    claim = false;
    i = 1;
    do
    :: i <= WAITERS && queued[i] -> owner = i; claim = true; queued[i] = false; rests[i] = false; break
    :: i <= WAITERS && !queued[i] -> i++
    :: i > WAITERS -> break
    od;
    i = 0;
#ifdef BUG_STRAIGHT
    if
    :: owner != 0 && rests[owner] -> call_resting()
    :: else
    fi
#else
    call_resting()
#endif
}

inline ask(id, says)
{
    if
    :: owner == id -> claim = false
    :: owner == 0 -> owner = id; claim = false; queued[id] = false; rests[id] = false
    :: else ->
        queued[id] = true;
        rests[id] = says;
        resting = resting || says;
        answer[id] = (says && !claim -> 1 : 2)
    fi
}

inline leave(id)
{
    queued[id] = false;
    rests[id] = false;
#ifdef BUG_NOTE_GOES
    resting = false;
#endif
    asleep[id] = false;
    done[id] = true
}

proctype waiter(byte id)
{
    atomic { ask(id, false) }
end:
    do
    :: atomic { !still[id] && answer[id] != 0 ->
#ifndef BUG_FORGETS
            asleep[id] = answer[id] == 1 && !again[id];
#else
            again[id] = false;
            asleep[id] = answer[id] == 1;
#endif
            answer[id] = 0 }
    :: atomic { !still[id] && told[id] -> told[id] = false;
            if
            :: answer[id] != 0 -> again[id] = true
            :: else -> asleep[id] = false
            fi }
    :: atomic { !still[id] && queued[id] && answer[id] == 0 && !asleep[id] ->
            if
            :: again[id] -> again[id] = false; ask(id, false)
            :: !again[id] -> ask(id, false)
            :: !again[id] && !claim -> ask(id, true)
            fi }
    :: atomic { !still[id] && queued[id] && answer[id] == 0 && id == 1 -> leave(id); break } /* its limit */
    :: atomic { !still[id] && owner == id -> claim = false; asleep[id] = false; break }
    od;
end_held:
    if
    :: done[id]
    :: atomic { !done[id] && !still[id] && owner == id -> hand_over(); done[id] = true }
    fi
}

active proctype holder()
{
end:
    atomic { owner == HOLDER -> hand_over() }
}

/* Some stand still, and let their claims end. */
active proctype fate()
{
end:
    do
    :: atomic { stills > 0 && !still[1] -> still[1] = true; stills-- }
    :: atomic { stills > 0 && !still[2] -> still[2] = true; stills-- }
    :: atomic { stills > 0 && !still[3] -> still[3] = true; stills-- }
    :: atomic { owner != 0 && claim && still[owner] ->
            i = 1;
            do
            :: i <= WAITERS ->
                waiting = waiting + (WAITS(i) -> 1 : 0);
                knowing = knowing + (KNOWS(i) -> 1 : 0);
                i++
            :: else -> break
            od;
            assert(waiting == 0 || knowing > 0);
            i = 0; waiting = 0; knowing = 0;
            owner = 0;
            claim = false }
    od
}

init
{
    atomic {
        byte id = 1;
        do
        :: id <= WAITERS -> run waiter(id); id++
        :: else -> break
        od
    }
}
