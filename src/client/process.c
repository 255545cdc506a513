/* SPDX-License-Identifier: MIT */
/*
 * process.c - what there is once in a process: its clients, and the default one
 *
 * A fork's child must not take the parent's locks, which another thread may have held at that moment; it
 * starts a household of its own and leaves the parent's memory as it is.
 */
#include "client/client.h"

static _Atomic(struct lk__processstate *) household;

static void thread_exited(uint64_t owner)
{
    struct lk__processstate *here = lk__process_state();
    if (here == NULL)
        return;
    lk__mu_lock(&here->mu);
    for (struct lk__link *l = lk__list_first(&here->clients); l != NULL; l = lk__list_next(&here->clients, l))
        lk__watchdog_ownergone(&LK__CONTAINER(l, struct lk_client, link)->dog, owner);
    lk__mu_unlock(&here->mu);
}

/* All threads of the program are over. What still is held is given back, as nobody is left to do it. */
static void process_ends(void)
{
    struct lk__processstate *here = lk__process_state();
    lk_client_t *client;
    do {
        lk__mu_lock(&here->mu);
        struct lk__link *first = lk__list_first(&here->clients);
        client = first != NULL ? LK__CONTAINER(first, struct lk_client, link) : NULL;
        lk__mu_unlock(&here->mu);
    } while (client != NULL && lk_client_close(client) != EDEADLK);
}

struct lk__processstate *lk__process_state(void)
{
    uintptr_t process = lk__process();
    struct lk__processstate *here = atomic_load(&household);
    while (here == NULL || here->process != process) {
        struct lk__processstate *fresh = lk__alloc(sizeof *fresh);
        if (fresh == NULL)
            return NULL;
        fresh->process = process;
        fresh->parents = here;
        fresh->born = lk__forks_atbirth();
        lk__mu_init(&fresh->mu, LK__MU_PROCESS);
        lk__list_init(&fresh->clients);
        lk__cond_init(&fresh->opening.over);
        if (atomic_compare_exchange_strong(&household, &here, fresh)) {
            lk__thread_onexit(thread_exited);
            lk__process_onend(process_ends);
            return fresh;
        }
        pthread_cond_destroy(&fresh->opening.over);
        lk__mu_destroy(&fresh->mu);
        lk__free(fresh);
    }
    return here;
}
