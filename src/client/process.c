/* SPDX-License-Identifier: MIT */
/*
 * process.c - what there is once in a process: its clients, and the default one
 *
 * A fork's child must not take the parent's locks, which another thread may have held at that moment; it
 * makes a state of its own and leaves the parent's memory as it is. The first state is memory of the library itself, so a
 * plugin that has the library in it leaves none when it is unloaded.
 */
#include "client/process.h"

static struct lk__processstate first;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic(struct lk__processstate *) current;

static void prepare(struct lk__processstate *fresh, struct lk__processstate *parents)
{
    fresh->process = lk__process();
    fresh->parents = parents;
    fresh->default_given = parents != NULL && parents->default_given;
    fresh->born = lk__forks_atbirth();
    lk__mu_init(&fresh->mu, LK__MU_PROCESS);
    lk__list_init(&fresh->clients);
    lk__cond_init(&fresh->opening.over);
}

static void prepare_first(void)
{
    prepare(&first, NULL);
    atomic_store(&current, &first);
}

struct lk__processstate *lk__process_state(void)
{
    pthread_once(&once, prepare_first);
    struct lk__processstate *here = atomic_load(&current);
    while (here->process != lk__process()) {
        struct lk__processstate *fresh = lk__alloc(sizeof *fresh);
        if (fresh == NULL)
            return NULL;
        prepare(fresh, here);
        if (atomic_compare_exchange_strong(&current, &here, fresh))
            return fresh;
        pthread_cond_destroy(&fresh->opening.over);
        lk__mu_destroy(&fresh->mu);
        lk__free(fresh);
    }
    return here;
}
