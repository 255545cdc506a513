/* SPDX-License-Identifier: MIT */
/*
 * claims.pml - who is granted a claim by a hand-over: not a client that stands still, again and again
 *
 * Stands for give_sign(), shorten() and leave() of src/acquire/queue.lua. Client 0 has THREADS threads that wait in front
 * of those of client 1, and may stand still with its connections open: then it takes in every message, and answers none.
 * A claim of one that stands still ends by itself. Nobody counts time, so nobody is passed over because it was silent for
 * long: the note of the last claim alone has to do.
 *
 *   clean  a client that stands still has one claim          -DFREEZES=2
 *   clean  everybody is served once it goes on               -DFREEZES=1 -DLIVE
 *   found  claims are not noted                              -DFREEZES=1 -DBUG_NO_NOTE
 *   found  an ask does not count as a sign of life           -DFREEZES=1 -DBUG_NOT_HEARD
 *   found  a note outlasts the release of what was claimed   -DFREEZES=1 -DBUG_NOTE_STAYS
 *
 *   long clean  three threads                                -DFREEZES=2 -DTHREADS=3
 */
#ifndef THREADS
#define THREADS 2 /* of each of the two clients */
#endif
#define IDS (2 * THREADS) /* from 1 on, in order of arrival */
#define CLIENT(id) ((id - 1) / THREADS)

#define RUNS(id) (CLIENT(id) == 1 || !still)

/* The server. */
byte owner = 0;
bool queued[IDS + 1];
bool noted[2];       /* a waiter of this client was granted a claim, and no release of the client came since */
bool heard[IDS + 1]; /* it asked after that claim */

/* Only to be compared: the client let something end since it last gave back; it asked since its client's last claim. */
bool lapsed[2], asked[IDS + 1];

/* The clients. */
bool still = false, claimed = false; /* client 0 stands still; the owner was told by a message and did not confirm */
bool holds[IDS + 1];
byte freezes = FREEZES, claims = 0, done = 0; /* `claims`: to client 0 since it stands still */

byte i; /* scratch, 0 between steps */

inline note(client)
{
#ifndef BUG_NO_NOTE
    noted[client] = true;
#endif
    i = 1;
    do
    :: i <= IDS && CLIENT(i) == client -> heard[i] = false; asked[i] = false; i++
    :: i <= IDS && CLIENT(i) != client -> i++
    :: else -> i = 0; break
    od
}

/* hand_over(): to the first that is not passed over; the asker needs no message. */
inline hand_over(asker)
{
    i = 1;
    do
    :: i <= IDS && queued[i] && (i == asker || !noted[CLIENT(i)] || heard[i]) -> break
    :: i <= IDS && !(queued[i] && (i == asker || !noted[CLIENT(i)] || heard[i])) ->
        assert(!queued[i] || (lapsed[CLIENT(i)] && !asked[i])); /* who is passed over */
        i++
    :: else -> i = 0; break
    od;
    if
    :: i == 0
    :: i != 0 ->
        owner = i;
        queued[i] = false;
        claimed = i != asker;
        if
        :: claimed && CLIENT(i) == 0 && still -> claims++
        :: else
        fi;
        if
        :: claimed -> note(CLIENT(owner))
        :: else -> i = 0
        fi
    fi;
    assert(claims <= 1)
}

inline ask(id)
{
#ifndef BUG_NOT_HEARD
    heard[id] = true;
#endif
    asked[id] = true;
    if
    :: owner == id -> claimed = false
    :: owner != id -> queued[id] = true;
        if
        :: owner == 0 -> hand_over(id)
        :: else
        fi
    fi
}

inline release(id)
{
    owner = 0;
#ifndef BUG_NOTE_STAYS
    noted[CLIENT(id)] = false;
#endif
    lapsed[CLIENT(id)] = false;
    hand_over(0)
}

proctype thread(byte id)
{
    atomic { RUNS(id); ask(id) }
    do
    :: atomic { RUNS(id) && owner == id -> claimed = false; holds[id] = true; break }
    :: atomic { RUNS(id) && owner != id && (!queued[id] || !heard[id] || owner == 0) -> ask(id) }
    od;
    atomic { RUNS(id) ->
        holds[id] = false;
        if
        :: owner == id -> release(id)
        :: else /* its lease ended meanwhile */
        fi;
        done++ }
}

/* What happens to client 0. */
active proctype fate()
{
end:
    do
    :: atomic { freezes > 0 && !still && done < IDS -> freezes--; still = true; claims = 0 }
    :: atomic { still -> still = false }
    :: atomic { still && owner != 0 && CLIENT(owner) == 0 -> 
            owner = 0; claimed = false; lapsed[0] = true } /* the lease or the claim ends */
    od
}

init
{
    atomic {
        byte id = 1;
        do
        :: id <= IDS -> run thread(id); id++
        :: else -> break
        od
    }
}

#ifdef LIVE
ltl served { <> (done == IDS) }
#endif
