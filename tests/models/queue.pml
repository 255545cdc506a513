/* SPDX-License-Identifier: MIT */
/*
 * queue.pml - a mutex with its wait queue: ownership moves to the first waiter that listens
 *
 * Stands for src/lock/acquire.lua and release.lua, queue.lua and fsm.c of src/acquire, and the outbox of src/watchdog;
 * what a client puts into that is sent in the background. Clients try one acquisition after the other, each under
 * an id of its own. Requests are carried out late, twice or never; answers and messages get lost; leases end; a
 * client goes deaf, is stopped for too long, or dies with its socket open.
 *
 * Nobody counts time: a lease ends at any moment, and whatever validity was drawn from it has ended by
 * then, in the client or on the way to it. lease.pml is about that rule itself. What ends a hold
 * otherwise leaves its client believing, and then the assertion in hold() fails.
 *
 *   clean  plain, all faults                            -DTRIES=1
 *   clean  fair, all faults                             -DTRIES=1 -DFAIR
 *   clean  plain, two tries each, requests come late    -DTRIES=2 -DCRASHES=0 -DCUTS=0 -DEXPIRIES=0 -DLOSSES=0
 *   clean  plain, everybody is served                   -DTRIES=1 -DLIVE
 *   clean  fair, everybody is served                    -DTRIES=1 -DLIVE -DFAIR
 *   found  owner id without acquisition number          -DTRIES=2 -DCRASHES=0 -DCUTS=0 -DEXPIRIES=0 -DLOSSES=0 -DBUG_NO_NUMBER
 *   found  validity from the receipt of the message     -DTRIES=1 -DCLIENTS=3 -DCRASHES=0 -DCUTS=0 -DLOSSES=0 -DBUG_FROM_RECEIPT
 *   found  release sent while still believing           -DTRIES=1 -DLOSSES=0 -DBUG_SENT_FIRST
 *   found  no release after the last copy of an ask     -DTRIES=1 -DBUG_NO_OUTBOX
 *   found  no release after a hold that was lost        -DTRIES=1 -DBUG_LOST_NO_OUTBOX
 *   found  asks have no deadline                        -DTRIES=1 -DBUG_NO_DEADLINE
 *   found  a release leaves its entry in the queue      -DTRIES=1 -DBUG_KEEPS_ENTRY
 *   found  giving up keeps what was granted meanwhile   -DTRIES=1 -DBUG_KEEPS_GRANT
 *   found  a hold leaves the place that a late ask took -DTRIES=1 -DBUG_KEEPS_LATE
 *   found  only the head of the queue may be granted    -DTRIES=1 -DCLIENTS=3 -DCRASHES=0 -DEXPIRIES=0 -DBUG_HEAD_ONLY
 *   found  fair, but whoever asks first takes it        -DTRIES=1 -DCLIENTS=3 -DCRASHES=0 -DFAIR -DBUG_BARGE
 *   found  waits for the message alone                  -DTRIES=1 -DLIVE -DBUG_NO_POLL
 *
 *   long clean  plain, two tries each, one is lost      -DTRIES=2 -DCRASHES=0 -DCUTS=0 -DEXPIRIES=0
 *   long clean  plain, two tries each, leases end       -DTRIES=2 -DCRASHES=0 -DCUTS=0
 *   long clean  fair, two tries each, leases end        -DTRIES=2 -DCRASHES=0 -DCUTS=0 -DFAIR
 *   long clean  fair, three clients, one goes deaf      -DTRIES=1 -DCLIENTS=3 -DLOSSES=0 -DEXPIRIES=0 -DCRASHES=0 -DFAIR
 */
#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef LOSSES
#define LOSSES 1 /* of a request, an answer or a message, and copies of requests that were not lost */
#endif
#ifndef EXPIRIES
#define EXPIRIES 1 /* of leases whose holder lives */
#endif
#ifndef CUTS
#define CUTS 1 /* of the connection that hears messages */
#endif
#ifndef CRASHES
#define CRASHES 1 /* of client 0 */
#endif
#define IDS (CLIENTS * TRIES) /* acquisitions, from 1 on */
#define CLIENT(id) ((id - 1) / TRIES)

#ifdef BUG_NO_NUMBER
#define IS(id, other) (other != 0 && CLIENT(id) == CLIENT(other))
#else
#define IS(id, other) (id == other)
#endif

byte losses = LOSSES, expiries = EXPIRIES, cuts = CUTS, crashes = CRASHES;

/* The server. */
byte owner = 0, arrivals = 0;
bool queued[IDS + 1];
byte arrival[IDS + 1]; /* kept by the waiter, who brings it along */

/* On the way. An answer or a message is FRESH until the lease it tells of ends. */
#define FRESH 1
#define STALE 2
byte asks[IDS + 1], releases[IDS + 1], answer[IDS + 1], message[IDS + 1];

/* The clients. */
bool listens[CLIENTS] = true, believes[CLIENTS], dead[CLIENTS];
bool finished[IDS + 1], unsure[IDS + 1], outbox[IDS + 1];
bool first[IDS + 1]; /* the first ask is on its way: it looks for no hold of its own, as there was none when it was sent */
bool twice[IDS + 1]; /* another was sent meanwhile */
byte ended = 0;

#ifdef BUG_KEEPS_GRANT
bool was_held[IDS + 1];
#endif

/* Who was cut off or silent for too long may lose its turn. */
bool disturbed[CLIENTS];

byte i, at, next; /* scratch, 0 between steps */

/* --- the server ------------------------------------------------------------------------------------- */

inline in_order(id)
{
#ifdef FAIR
    i = 1;
    do
    :: i <= IDS ->
        assert(!(queued[i] && arrival[i] < arrival[id] && listens[CLIENT(i)] && !disturbed[CLIENT(i)] && !finished[i]));
        i++
    :: else -> i = 0; break
    od
#else
    skip
#endif
}

inline grant(id)
{
    in_order(id);
    owner = id;
    queued[id] = false
}

inline reply(id)
{
    if
    :: finished[id]
    :: !finished[id] -> answer[id] = FRESH
    :: !finished[id] && losses > 0 -> losses--
    fi
}

inline enqueue(id)
{
    if
    :: arrival[id] == 0 -> arrivals++; arrival[id] = arrivals
    :: else
    fi;
    queued[id] = true
}

/* The first one in the queue behind `at`. */
inline look_behind()
{
    next = 0;
    i = 1;
    do
    :: i <= IDS ->
        if
        :: queued[i] && arrival[i] > at && (next == 0 || arrival[i] < arrival[next]) -> next = i
        :: else
        fi;
        i++
    :: else -> i = 0; break
    od
}

/* hand_over() of queue.lua: to the first that listens; the asker needs no message. */
inline hand_over(asker)
{
    do
    :: look_behind();
        if
        :: next == 0 -> break
        :: next != 0 && next == asker -> grant(next); reply(next); break
        :: next != 0 && next != asker && listens[CLIENT(next)] ->
            grant(next);
            if
            :: finished[next]
            :: !finished[next] -> message[next] = FRESH
            :: !finished[next] && losses > 0 -> losses--
            fi;
            break
        :: else ->
#ifdef BUG_HEAD_ONLY
            break
#else
            at = arrival[next]
#endif
        fi
    od;
    at = 0;
    /* Free is left only what nobody could be told of. */
    i = 1;
    do
    :: i <= IDS -> assert(owner != 0 || !queued[i] || !listens[CLIENT(i)]); i++
    :: else -> i = 0; break
    od;
    next = 0
}

inline carry_out_ask(id, is_first)
{
    if
    :: IS(id, owner) && !is_first -> reply(id)
    :: owner == 0 ->
#if defined(FAIR) && !defined(BUG_BARGE)
        enqueue(id);
        hand_over(id)
#else
        grant(id);
        reply(id)
#endif
    :: owner != 0 && (!IS(id, owner) || is_first) -> enqueue(id)
    fi
}

inline carry_out_release(id)
{
#if defined(BUG_KEEPS_LATE)
    if
    :: IS(id, owner)
    :: else -> queued[id] = false
    fi;
#elif !defined(BUG_KEEPS_ENTRY)
    queued[id] = false;
#endif
    if
#ifdef BUG_KEEPS_GRANT
    :: IS(id, owner) && was_held[id] -> owner = 0
#else
    :: IS(id, owner) -> owner = 0
#endif
    :: else
    fi;
    if
    :: owner == 0 -> hand_over(0)
    :: else
    fi
}

/* The validities that were drawn from this lease have ended with it, wherever they are. */
inline end_lease(id)
{
    owner = 0;
    believes[CLIENT(id)] = false;
    if
    :: answer[id] == FRESH -> answer[id] = STALE
    :: else
    fi;
    if
    :: message[id] == FRESH -> message[id] = STALE
    :: else
    fi
}

/* What may happen to acquisition `id` next, away from its client. */
active [IDS] proctype fate()
{
    byte id = _pid + 1;
end:
    do
    :: atomic { first[id] -> first[id] = false; asks[id]--; carry_out_ask(id, true) }
    :: atomic { asks[id] > first[id] -> asks[id]--; carry_out_ask(id, false) }
    :: atomic { first[id] && losses > 0 -> losses--; first[id] = false; asks[id]-- }
    :: atomic { asks[id] > first[id] && losses > 0 -> losses--; asks[id]-- }
    :: atomic { first[id] && (finished[id] || dead[CLIENT(id)]) -> first[id] = false; asks[id]-- } /* past its deadline */
    :: atomic { asks[id] > first[id] && (finished[id] || dead[CLIENT(id)]) -> asks[id]-- }
    :: atomic { releases[id] > 0 -> releases[id]--; carry_out_release(id) }
    :: atomic { releases[id] > 0 && losses > 0 -> losses--; carry_out_release(id) } /* a copy stays on its way */
    :: atomic { releases[id] > 0 && dead[CLIENT(id)] -> releases[id]-- }
#ifdef BUG_NO_DEADLINE
    :: atomic { outbox[id] -> outbox[id] = false; carry_out_release(id) }
#else
    :: atomic { outbox[id] && asks[id] == 0 -> outbox[id] = false; carry_out_release(id) }
#endif
    :: atomic { queued[id] && dead[CLIENT(id)] -> queued[id] = false } /* silent for too long */
    :: atomic { queued[id] && !dead[CLIENT(id)] && losses > 0 ->
            losses--; queued[id] = false; disturbed[CLIENT(id)] = true }
    :: atomic { owner == id && dead[CLIENT(id)] -> end_lease(id) }
    :: atomic { owner == id && !dead[CLIENT(id)] && expiries > 0 ->
            expiries--; disturbed[CLIENT(id)] = true; end_lease(id) }
    od
}

/* --- the clients -------------------------------------------------------------------------------------- */

inline hold(me, id)
{
    i = 0;
    do
    :: i < CLIENTS -> assert(i == me || !believes[i]); i++
    :: else -> i = 0; break
    od;
    believes[me] = true;
#ifdef BUG_KEEPS_GRANT
    was_held[id] = true;
#endif
    unsure[id] = asks[id] > 0 || twice[id]
}

inline ask_again(id)
{
    if
    :: asks[id] == 0 -> asks[id] = 1
    :: else
    fi
}

inline finish(id)
{
    believes[me] = false;
    finished[id] = true;
    answer[id] = 0;
    message[id] = 0
}

/* A copy of an ask may come after the end of it all: released once more when none can. */
inline outbox_add(id)
{
#ifndef BUG_NO_OUTBOX
    outbox[id] = asks[id] > 0
#else
    skip
#endif
}

inline outbox_add_lost(id)
{
#ifndef BUG_LOST_NO_OUTBOX
    outbox[id] = unsure[id] /* it may have come already */
#else
    skip
#endif
}

proctype client(byte me)
{
    byte id, tries = 0;
    do
    :: tries == TRIES -> break
    :: tries < TRIES ->
        atomic { tries++; id = me * TRIES + tries; asks[id] = 1; first[id] = true }
        do
        :: atomic { answer[id] == FRESH -> answer[id] = 0; hold(me, id); goto held }
        :: atomic { answer[id] == STALE -> answer[id] = 0; ask_again(id) }
#ifdef BUG_FROM_RECEIPT
        :: atomic { message[id] != 0 -> message[id] = 0; hold(me, id); goto held }
#else
        :: atomic { message[id] == FRESH -> message[id] = 0; hold(me, id); goto held }
        :: atomic { message[id] == STALE -> message[id] = 0; ask_again(id) }
#endif
#ifndef BUG_NO_POLL /* of the polls, those that change something */
        :: atomic { asks[id] == 0 && answer[id] == 0 && (owner == 0 || IS(id, owner) || !queued[id]) -> asks[id] = 1 }
#endif
        :: atomic { asks[id] == 1 && losses > 0 -> losses--; asks[id]++; twice[id] = true } /* cut off: sent once more */
        :: atomic { !listens[me] -> listens[me] = true; ask_again(id) }   /* the hub is back, and everybody asks */
        :: atomic { me == 0 && crashes > 0 -> crashes--; dead[me] = true; goto gone }
#ifndef LIVE
        :: goto give_back /* at its limit, or cancelled */
#endif
        od;
held:
        if
        :: believes[me]
        :: atomic { !believes[me] -> finish(id); outbox_add_lost(id); goto over } /* lost: nothing is released */
        :: atomic { me == 0 && crashes > 0 -> crashes--; dead[me] = true; goto gone }
        fi;
give_back:
#ifdef BUG_SENT_FIRST
        releases[id]++;
        atomic { finish(id); outbox_add(id) }
#else
        atomic { finish(id); releases[id]++; outbox_add(id) }
#endif
over:
        id = 0
    od;
gone:
    atomic { believes[me] = false; id = 0; ended++ }
}

/* The first and the last client may go deaf; who died is deaf when its socket closes. */
active proctype hub()
{
end:
    do
    :: atomic { cuts > 0 -> cuts--;
            if
            :: listens[0] = false; disturbed[0] = true
            :: listens[CLIENTS - 1] = false; disturbed[CLIENTS - 1] = true
            fi }
    :: atomic { dead[0] && listens[0] -> listens[0] = false }
    od
}

#if !defined(LIVE) && !defined(BUG_SENT_FIRST) /* of that bug it would see a lesser consequence */
/* When all is done, nothing is left of those who lived. */
active proctype auditor()
{
    byte id = 1;
end:
    atomic {
        ended == CLIENTS;
        do
        :: id <= IDS && asks[id] == 0 && releases[id] == 0 && !outbox[id] -> id++
        :: id <= IDS && (asks[id] > 0 || releases[id] > 0 || outbox[id]) -> goto unsettled
        :: else -> break
        od;
        id = 1;
        do
        :: id <= IDS -> assert(dead[CLIENT(id)] || (!queued[id] && owner != id)); id++
        :: else -> break
        od
    }
unsettled:
    skip
}
#endif

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

#ifdef LIVE
ltl served { <> (ended == CLIENTS) }
#endif
