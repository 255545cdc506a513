/* SPDX-License-Identifier: MIT */
/*
 * lost_while_away_test.c - leases end while their renewals wait for a server that is not there
 *
 * The thread that renews looks through all holds at each attempt to connect, and finds some of them over.
 *
 * labels: threads memory
 * simulated: yes
 */
#include "log.h"
#include "news.h"

#include <stdio.h>

enum { MANY = SANITIZED || NOISY ? 100 : 400, LEASE_MS = SANITIZED || NOISY ? 3000 : 1000 };

static int losses; /* atomic builtins */

static void count_losses(const lk_event_t *event, void *arg)
{
    (void)arg;
    if (event->type == LK_EVENT_LOST)
        __atomic_add_fetch(&losses, 1, __ATOMIC_SEQ_CST);
}

static void each_loss_is_told(struct world *w)
{
    char options[80];
    snprintf(options, sizeof options, "lease=%dms&retry_min=1ms&retry_max=1ms", LEASE_MS);
    lk_client_t *client = world_client(w, options);
    static lk_mutex_t *mutexes[MANY];
    losses = 0;
    assert_lk(0, lk_client_addlistener(client, count_losses, NULL, NULL));
    for (int i = 0; i < MANY; i++) {
        char name[24];
        snprintf(name, sizeof name, "order-%d", i);
        mutexes[i] = world_mutex(w, client, name, NULL);
        assert_lk(0, lk_mutex_lock(mutexes[i]));
    }
    world_kill_server(w);
    eventually(__atomic_load_n(&losses, __ATOMIC_SEQ_CST) == MANY, LEASE_MS + 10 * SLACK_MS);
    for (int i = 0; i < MANY; i++) {
        assert_lk(ESTALE, lk_mutex_unlock(mutexes[i]));
        world_close(w, mutexes[i]);
    }
    world_close(w, client);
    world_restart_server(w);
}

int main(void)
{
    log_to(NULL, LK_LOG_WARNING, NULL);
    return world_run(each_loss_is_told);
}
