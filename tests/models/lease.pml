/* SPDX-License-Identifier: MIT */
/*
 * lease.pml - a lease at the server, and what its holder may believe of it
 *
 * Stands for on_granted() of src/acquire/fsm.c, add_renewal(), renewed(), lk__lease_begincall(),
 * lk__lease_endcall() and lk__lease_end() of src/watchdog, become_holder() of src/object/acquire.c, and acquire.lua,
 * renew.lua, nest.lua and release.lua of src/lock. Time goes in ticks. A client is given a short lease, or a claim
 * that is longer, and renews it with a short or a long one (lk_mutex_extend). Meanwhile its owner calls, once at a
 * time and on a connection of its own: a nested lock sets the lease, too. While it believes in it the hold has to stand at the server: then nobody else can be
 * there, and no rival is needed. A request takes as long as it likes, there and back; a connection may be cut, then
 * the request is sent again while its first copy is still on its way. Copies are obeyed up to DEADLINE.
 * Once per validity the client's clock may miss a tick, which is what the guard is for.
 *
 * Left out: the queue (queue.pml), what a copy does to a later acquisition (resend.pml).
 *
 *   clean  as it is                                       -DGUARD=1
 *   found  no guard                                       -DGUARD=0
 *   found  validity from the receipt of the answer        -DGUARD=1 -DBUG_FROM_RECEIPT
 *   found  release sent while still believing             -DGUARD=1 -DBUG_SENT_FIRST
 *   found  a late renewal revives what was lost           -DGUARD=1 -DBUG_REVIVES
 *   found  a shorter lease is believed after its answer   -DGUARD=1 -DBUG_SHORTENS_LATE
 *   found  renewals have no deadline                      -DGUARD=1 -DBUG_NO_DEADLINE
 *   found  another lease beside a copy of a renewal       -DGUARD=1 -DBUG_MIXES
 *   found  another lease beside a copy of an ask          -DGUARD=1 -DBUG_MIXES_ASKS
 *   found  an answer makes older copies forgotten         -DGUARD=1 -DBUG_FORGETS_COPIES
 *   found  a claim is believed beside a copy of an ask    -DGUARD=1 -DBUG_CLAIM_FORGETS_COPIES
 *   found  a call asks for what an extend put off wants   -DGUARD=1 -DBUG_CALLS_FOR_WANTED
 *   found  a call shortens what is believed on            -DGUARD=1 -DBUG_CALL_SHORTENS_LATE
 *   found  another lease beside a call                    -DGUARD=1 -DBUG_MIXES_CALLS
 *
 *   long clean  later deadlines, longer leases            -DGUARD=1 -DDEADLINE=4 -DSHORT=8 -DLONG=15
 */
#ifndef SHORT
#define SHORT 3
#endif
#ifndef LONG
#define LONG 5
#endif
#ifndef DEADLINE
#define DEADLINE 1
#endif
#define OLD (LONG + 1) /* ages stop there */

/* The server. */
byte left = 0; /* ticks of the client's lease; 0: somebody else's, or free */

/* One request with its answer, and a copy of one that was cut. */
mtype = { ask, renew };
mtype = { none, granted, refused, late };
typedef request {
    bool sent;
    mtype kind, answer;
    byte lease, age
};
request now, call, copy; /* `now` is the ask or a renewal */
bool released;

/* The client. */
byte valid; /* ticks that are left */
bool lost, missed;
byte unsure; /* ticks until no copy with `unsure_lease` can come */
byte unsure_lease;
byte last; /* lease that the last renewal asked for, or is to ask for */

/* --- the server ------------------------------------------------------------------------------------- */

/* Who believes in a hold has one. */
inline promise()
{
    assert(valid == 0 || left > 0)
}

inline carry_out(r)
{
    if
#ifndef BUG_NO_DEADLINE
    :: r.age > DEADLINE -> r.answer = late
#else
    :: r.age > DEADLINE && r.kind == ask -> r.answer = late
#endif
    :: else ->
        if
        :: left > 0 || r.kind == ask -> left = r.lease; r.answer = granted
        :: left == 0 -> r.answer = refused
        fi
    fi
}

inline clear(r)
{
    r.sent = false;
    r.answer = none;
    r.age = 0
}

active proctype network()
{
end:
    do
    :: atomic { now.sent && now.answer == none -> carry_out(now) }
    :: atomic { call.sent && call.answer == none -> carry_out(call) }
    :: atomic { copy.sent -> carry_out(copy); clear(copy); copy.lease = 0 }
    :: atomic { copy.sent -> clear(copy); copy.lease = 0 } /* it never arrives */
    :: atomic { released -> released = false; left = 0; promise() }
    od
}

/* --- time ----------------------------------------------------------------------------------------------- */

inline older(r)
{
    if
    :: r.sent && r.age < OLD -> r.age++
    :: else
    fi
}

active proctype clock()
{
end:
    do
    :: atomic {
            older(now);
            older(call);
            older(copy);
            if
            :: left > 0 -> left--
            :: else
            fi;
            if
            :: unsure > 0 -> unsure--
            :: else
            fi;
            if
            :: valid > 0 -> valid--; lost = valid == 0
            :: valid > 0 && !missed -> missed = true
            :: else
            fi;
            promise()
        }
    od
}

/* --- the client ----------------------------------------------------------------------------------------- */

inline send(r, what, ticks)
{
    r.sent = true;
    r.kind = what;
    r.answer = none;
    r.lease = ticks;
    r.age = 0
}

/* The connection ended; what was sent may still arrive, and nobody hears the answer. */
inline cut(r)
{
    if
    :: r.answer == none ->
        copy.sent = true;
        copy.kind = r.kind;
        copy.lease = r.lease;
        copy.age = r.age
    :: else
    fi;
    unsure = DEADLINE + 1;
    unsure_lease = r.lease;
    clear(r)
}

#ifdef BUG_FROM_RECEIPT
#define SINCE 0
#else
#define SINCE now.age
#endif

/* Granted, or granted again: until then if nothing is renewed. */
inline believe()
{
    assert(!lost);
    if
    :: now.lease > GUARD + SINCE ->
        valid = now.lease - GUARD - SINCE;
        missed = false;
        promise()
    :: else -> valid = 0; lost = now.kind == renew
    fi;
    clear(now)
}

#ifdef BUG_MIXES
#define MAY_SEND(ticks) true
#else
#define MAY_SEND(ticks) ((unsure == 0 || unsure_lease == ticks) && BESIDE_CALL(ticks))
#endif
#ifdef BUG_MIXES_CALLS
#define BESIDE_CALL(ticks) true
#else
#define BESIDE_CALL(ticks) (!call.sent || call.lease == ticks)
#endif

/* Before the server hears of it. */
inline believe_no_more(ticks)
{
    if
    :: ticks - GUARD < valid -> valid = ticks - GUARD
    :: else
    fi
}

inline send_renewal(ticks)
{
#ifndef BUG_SHORTENS_LATE
    believe_no_more(ticks);
#endif
    last = ticks;
    send(now, renew, ticks)
}

inline send_call(ticks)
{
#ifndef BUG_CALL_SHORTENS_LATE
    believe_no_more(ticks);
#endif
    send(call, renew, ticks)
}

/* With the lease that was sent last, or in doubt with a shorter one. */
inline send_call_alike()
{
    if
    :: unsure > 0 && unsure_lease < last -> send_call(unsure_lease)
    :: else -> send_call(last)
    fi
}

inline believe_call()
{
    if
    :: valid > 0 && call.lease > GUARD + call.age && call.lease - GUARD - call.age > valid ->
        valid = call.lease - GUARD - call.age;
        missed = false;
        promise()
    :: else
    fi;
    clear(call)
}

active proctype client()
{
    last = SHORT;
    do
    :: atomic { !now.sent -> send(now, ask, SHORT) }
    :: atomic { !now.sent -> send(now, ask, LONG) } /* handed over with a claim */
    :: atomic { now.sent && !copy.sent && unsure == 0 -> cut(now) }
    :: atomic { now.answer == refused || now.answer == late -> clear(now) }
    :: atomic { now.answer == granted ->
#ifndef BUG_CLAIM_FORGETS_COPIES
            if /* a copy of an ask finds the claim, and sets its own lease; also before this was read */
            :: unsure_lease > 0 && unsure_lease < now.lease -> now.lease = unsure_lease
            :: else
            fi;
#endif
            believe();
            if
            :: valid > 0 ->
#ifdef BUG_MIXES_ASKS
                unsure = 0;
#endif
                break
            :: else
            fi }
    od;
    do
    :: atomic { valid > 0 && !now.sent && MAY_SEND(SHORT) -> send_renewal(SHORT) }
    :: atomic { valid > 0 && !now.sent && MAY_SEND(LONG) -> send_renewal(LONG) }
    :: atomic { now.sent && !copy.sent && unsure == 0 -> cut(now) }
    :: atomic { call.sent && !copy.sent && unsure == 0 -> cut(call) }
    :: atomic { valid > 0 && !call.sent -> send_call_alike() }
#ifdef BUG_CALLS_FOR_WANTED
    :: atomic { valid > 0 && !call.sent -> send_call(SHORT) }
    :: atomic { valid > 0 && !call.sent -> send_call(LONG) }
#endif
    :: atomic { call.answer == granted -> believe_call() }
    :: atomic { call.answer == late || call.answer == refused -> clear(call) }
    :: atomic { now.answer == late -> clear(now) }
    :: atomic { now.answer == refused -> valid = 0; break }
    :: atomic { now.answer == granted && valid > 0 -> believe();
#ifdef BUG_FORGETS_COPIES
            unsure = 0
#endif
        }
#ifdef BUG_REVIVES
    :: atomic { now.answer == granted && valid == 0 -> believe() }
#endif
    :: valid == 0 -> break /* lost, and never regained */
    :: valid > 0 && !call.sent -> /* unlocked */
#ifdef BUG_SENT_FIRST
        released = true;
        atomic { valid = 0; break }
#else
        atomic { valid = 0; released = true; break }
#endif
    od;
    atomic { lost = false; missed = false; unsure = 0; unsure_lease = 0; last = 0 }
}
