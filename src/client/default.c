/* SPDX-License-Identifier: MIT */
/*
 * default.c - the client that static objects use: opened once, by the first call that needs it
 *
 * Hundreds of threads may need it at once. One opens it, and the others wait for the result: if each opened a client of
 * its own, they would run out of descriptors, or fill the server. All that waited for an attempt fail with it. Only
 * after a failure that took long, as on a busy server or machine, threads that have time left try once more, again one
 * of them for all.
 *
 * Guards: the process state's mu, the attempt. Without it a client is opened; nothing else may hold one of its locks.
 */
#include "client/process.h"

#include <stdio.h>

enum { SLOW_US = 100000 };

/* Under the process state's mu, where a client is the default one only until its close begins. */
static lk_client_t *entered(lk_client_t *client)
{
    bool open = lk__client_tryenter(client);
    assert(open);
    (void)open;
    return client;
}

/* Under the process state's mu, left and taken again. */
static int open_for_all(struct lk__processstate *here)
{
    assert(lk__mu_held(&here->mu));
    struct lk__opening *opening = &here->opening;
    int64_t began_us = lk__now_us();
    lk_client_t *fresh = NULL;
    opening->under_way = true;
    lk__mu_unlock(&here->mu);
    int rc = lk__client_openurl(&fresh, NULL);
    lk__mu_lock(&here->mu);
    here->default_client = fresh;
    opening->code = rc;
    opening->slow = rc == ENOTCONN && lk__now_us() - began_us > SLOW_US;
    if (rc != 0)
        snprintf(opening->errmsg, sizeof opening->errmsg, "%s", lk_errortext());
    opening->under_way = false;
    opening->attempts++;
    pthread_cond_broadcast(&opening->over);
    return rc;
}

/* Wait for the attempt under way, which has its own limit. */
static int await_opening(struct lk__processstate *here)
{
    assert(lk__mu_held(&here->mu));
    struct lk__opening *opening = &here->opening;
    unsigned attempts = opening->attempts;
    while (opening->attempts == attempts)
        lk__cond_wait(&opening->over, &here->mu, LK__NEVER);
    return here->default_client != NULL || opening->code == 0 ? 0 : lk__fail(opening->code, "%s", opening->errmsg);
}

/* Under the process state's mu, left and taken again. 0: look again whether there is one. */
static int have_it_opened(struct lk__processstate *here, int64_t limit_us, bool *waited)
{
    assert(lk__mu_held(&here->mu));
    if (!here->opening.under_way)
        return open_for_all(here);
    int rc = await_opening(here);
    bool again = rc != 0 && here->opening.slow && !*waited && lk__now_us() < limit_us;
    *waited = true;
    return again ? 0 : rc;
}

int lk__client_enterdefault(lk_client_t **client, int64_t limit_us)
{
    struct lk__processstate *here = lk__process_state();
    bool waited = false;
    int rc = 0;
    if (here == NULL)
        return lk__fail(ENOMEM, "out of memory for a client");
    lk__mu_lock(&here->mu);
    while (rc == 0 && here->default_client == NULL)
        rc = have_it_opened(here, limit_us, &waited);
    if (rc == 0)
        *client = entered(here->default_client);
    lk__mu_unlock(&here->mu);
    return rc;
}

static int find_default(lk_client_t **client)
{
    lk_client_t *found;
    int rc = lk__client_enterdefault(&found, LK__NEVER);
    if (rc != 0)
        return rc;
    if (client != NULL)
        *client = found;
    lk__client_leave(found);
    return 0;
}

int lk_client_default(lk_client_t **client)
{
    struct lk__apistate api = lk__api_enter();
    return lk__api_leave(&api, find_default(client));
}
