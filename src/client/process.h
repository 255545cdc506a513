/* SPDX-License-Identifier: MIT */
/*
 * process.h - what there is once in a process: its clients, and the default one
 */
#ifndef LK__CLIENT_PROCESS_H
#define LK__CLIENT_PROCESS_H

#include "client/client.h"

/* Opening the default client; one thread does it for all. */
struct lk__opening {
    pthread_cond_t over; /* with the process state's mu: an attempt is over */
    bool under_way;      /* all of this: under the process state's mu */
    unsigned attempts;   /* attempts that are over */
    int code;            /* of the last attempt, and its error text */
    bool slow;           /* the last attempt failed, after a long time */
    char errmsg[384];
};

struct lk__bindings;

struct lk__processstate {
    uintptr_t process;
    struct lk__mu mu;
    struct lk__link clients;       /* under mu */
    lk_client_t *default_client;   /* under mu */
    bool default_used;             /* under mu: somebody got it, so it stays until it is closed */
    bool default_given;            /* under mu: the program sets it, and none is opened. A fork's child inherits this */
    struct lk__opening opening;    /* under mu */
    struct lk__bindings *bindings; /* under mu: what src/object keeps here, once it has something */
    struct lk__processstate *parents; /* the states of processes forked from: left alone */
    uint64_t born;                    /* the number of forks when this process was made */
};

struct lk__processstate *lk__process_state(void); /* NULL: ENOMEM */

/*
 * The default client, opened if there is none, entered: without that another thread may close it at once. Until
 * `limit_us` one slow attempt of another thread is no reason to fail.
 */
int lk__client_enterdefault(lk_client_t **client, int64_t limit_us);

#endif
