/* SPDX-License-Identifier: MIT */
/*
 * process.c - what there is once in a process: its clients, and the default one
 *
 * A fork's child must not take the parent's locks, which another thread may have held at that moment; it
 * makes a state of its own and leaves the parent's memory as it is.
 */
#include "client/process.h"

static _Atomic(struct lk__processstate *) current;

struct lk__processstate *lk__process_state(void)
{
    uintptr_t process = lk__process();
    struct lk__processstate *here = atomic_load(&current);
    while (here == NULL || here->process != process) {
        struct lk__processstate *fresh = lk__alloc(sizeof *fresh);
        if (fresh == NULL)
            return NULL;
        fresh->process = process;
        fresh->parents = here;
        fresh->default_given = here != NULL && here->default_given;
        fresh->born = lk__forks_atbirth();
        lk__mu_init(&fresh->mu, LK__MU_PROCESS);
        lk__list_init(&fresh->clients);
        lk__cond_init(&fresh->opening.over);
        if (atomic_compare_exchange_strong(&current, &here, fresh))
            return fresh;
        pthread_cond_destroy(&fresh->opening.over);
        lk__mu_destroy(&fresh->mu);
        lk__free(fresh);
    }
    return here;
}
