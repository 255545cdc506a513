/* SPDX-License-Identifier: MIT */
/*
 * parts.pml - permits with leases, taken at once and given back in parts: no copy of the take brings one back
 *
 * Stands for permit_take.lua, permit_release.lua of src/semaphore, shrink() of leased.c, lk__object_release()
 * of src/object/release.c and src/watchdog/outbox.c. One owner takes N permits, gives them back one or several
 * at a time, and all that are left in the end; each request may be sent again while copies of it are on
 * their way. Copies of the take come at any time until their deadline, copies of releases at any time.
 * A full release is followed by another one when no copy of the take can come any more.
 *
 *   clean  as it is                                      -DN=3
 *   clean  more copies                                   -DN=4 -DCOPIES=3
 *   found  a copy lends all parts anew                   -DN=2 -DBUG_LENDS_ANEW
 *   found  the release is not followed by another one    -DN=1 -DBUG_UNSWEPT
 *   found  a release says how many go, not who stays     -DN=3 -DBUG_RELATIVE
 */
#ifndef COPIES
#define COPIES 2 /* of a request on their way at once */
#endif

byte held = 0; /* at the server */
byte has = 0;  /* what the owner knows that it has */

byte takes = 0;                  /* copies of the take on their way */
byte releases[N + 1];            /* of the release that keeps so many */
byte gives[N + 1];               /* how many that one gives back */
bool taken = false, released[N + 1];
bool finished = false, swept = false;

inline carry_out_take()
{
    if
    :: held == 0 -> held = N /* the first copy, or one behind the last release */
    :: held == N
    :: held > 0 && held < N ->
#ifdef BUG_LENDS_ANEW
        held = N
#else
        skip
#endif
    fi;
    if
    :: taken = true
    :: true /* the answer is lost */
    fi
}

inline carry_out_release(kept)
{
#ifdef BUG_RELATIVE
    held = (held > gives[kept] -> held - gives[kept] : 0);
#else
    held = (held > kept -> kept : held);
#endif
    if
    :: released[kept] = true
    :: true
    fi
}

active proctype network()
{
    byte kept;
end:
    do
    :: atomic { takes > 0 -> takes--; carry_out_take() }
    :: atomic { takes > 0 -> takes-- } /* past its deadline, or never arrives */
    :: atomic {
        select (kept : 0 .. N - 1);
        if
        :: releases[kept] > 0 -> releases[kept]--; carry_out_release(kept)
        :: else
        fi
    }
    od
}

active proctype owner()
{
    byte kept;
    do
    :: atomic { !taken && takes < COPIES -> takes++ }
    :: atomic { taken -> has = N; break }
    od;
    do
    :: has > 0 ->
        atomic {
            select (kept : 0 .. has - 1);
            gives[kept] = has - kept;
            if
            :: kept == 0 -> has = 0 /* it ends before its release is sent */
            :: else
            fi
        }
        do
        :: atomic { !released[kept] && releases[kept] < COPIES -> releases[kept]++ }
        :: atomic { released[kept] -> has = kept; break }
        od
    :: else -> break
    od;
    finished = true
}

#ifndef BUG_UNSWEPT
/* The watchdog: once more, when no copy of the take can come any more. */
active proctype sweep()
{
    atomic { finished && takes == 0 -> held = 0; swept = true }
}
#define SETTLED (swept && takes == 0)
#else
#define SETTLED (finished && takes == 0)
#endif

active proctype auditor()
{
end:
    do
    :: atomic { SETTLED -> assert(held == 0); break }
    :: has > 0 && held > has -> assert(held <= has) /* more is lent than its owner knows of */
    od
}
