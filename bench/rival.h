/* SPDX-License-Identifier: MIT */
/* rival.h - locks that many processes contend for, behind one face: the library's and those it is measured against */
#ifndef BENCH_RIVAL_H
#define BENCH_RIVAL_H

#include "measure.h"
#include "wire.h"

struct rival {
    const char *name;
    bool single;                                          /* one thread of a process at most */
    void (*prepare)(struct wire *wire);                   /* before all processes; may be NULL */
    void *(*join)(const struct place *place, int number); /* in each process: what its threads use */
    void (*lock)(void *state);
    void (*unlock)(void *state);
    void (*leave)(void *state);
};

/* All of them, ended by one without a name:
 *
 *   latchkey  a mutex with default attributes     fair  one that is fair
 *   mixed     one that Redisson may use as well (redisson=yes), though none does
 *   queue     a bare queue that hands over and does nothing else: no renewals, tokens, deadlines, dead processes
 *   redisson  Redisson's protocol: each release tells all processes, and all try again
 *   blpop     a token in a list: no owner, no lease
 */
extern const struct rival rivals[];

const struct rival *rival(const char *name); /* ends the program if there is none */

#endif
