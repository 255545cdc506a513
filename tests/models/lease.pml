/* SPDX-License-Identifier: MIT */
/*
 * lease.pml - a lease at the server, and what its holder may believe of it
 *
 * Stands for on_granted() of src/wait/acquire.c, send_renewal(), renewed() and lk__watchdog_end() of
 * src/watchdog, become_holder() of src/client/take.c, and acquire.lua, renew.lua and release.lua of
 * src/lock. Time goes in ticks. A client asks for a short lease and renews it with a short or a long one
 * (lk_mutex_extend). While it believes in it the hold has to stand at the server: then nobody else can be
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
request now, copy;
bool released;

/* The client. */
byte valid; /* ticks that are left */
bool lost, missed;
byte unsure; /* ticks until no copy with `unsure_lease` can come */
byte unsure_lease;

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

inline send(what, ticks)
{
    now.sent = true;
    now.kind = what;
    now.answer = none;
    now.lease = ticks;
    now.age = 0
}

/* The connection ended; what was sent may still arrive, and nobody hears the answer. */
inline cut()
{
    if
    :: now.answer == none ->
        copy.sent = true;
        copy.kind = now.kind;
        copy.lease = now.lease;
        copy.age = now.age
    :: else
    fi;
    unsure = DEADLINE + 1;
    unsure_lease = now.lease;
    clear(now)
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
#define MAY_SEND(ticks) (unsure == 0 || unsure_lease == ticks)
#endif

inline send_renewal(ticks)
{
#ifndef BUG_SHORTENS_LATE
    if /* before the server hears of it */
    :: ticks - GUARD < valid -> valid = ticks - GUARD
    :: else
    fi;
#endif
    send(renew, ticks)
}

active proctype client()
{
    do
    :: atomic { !now.sent -> send(ask, SHORT) }
    :: atomic { now.sent && !copy.sent && unsure == 0 -> cut() }
    :: atomic { now.answer == refused || now.answer == late -> clear(now) }
    :: atomic { now.answer == granted -> believe();
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
    :: atomic { now.sent && !copy.sent && unsure == 0 -> cut() }
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
    :: valid > 0 -> /* unlocked */
#ifdef BUG_SENT_FIRST
        released = true;
        atomic { valid = 0; break }
#else
        atomic { valid = 0; released = true; break }
#endif
    od;
    atomic { lost = false; missed = false; unsure = 0; unsure_lease = 0 }
}
