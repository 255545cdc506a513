/* SPDX-License-Identifier: MIT */
/*
 * default.c - the client that static objects use: opened once, by the first call that needs it, or set by the program
 *
 * Hundreds of threads may need it at once. One opens it, and the others wait for the result: if each opened a client of
 * its own, they would run out of descriptors, or fill the server. All that waited for an attempt fail with it. Only
 * after a failure that took long, as on a busy server or machine, threads that have time left try once more, again one
 * of them for all.
 *
 * A program that set one did so because the environment says something else, or nothing. So in its place none is opened
 * when it is gone, and neither in a fork's child: locks of one name would be kept on two servers, in silence.
 *
 * Guards: the process state's mu, the attempt, and who has the default client. Without it a client is opened; nothing
 * else may hold one of its locks.
 */
#include "client/process.h"

#include <stdio.h>

enum { SLOW_US = 100000 };

/* What it is opened with; NULL: what the environment says. A fork's child has that of its parent. */
static _Atomic(char *) default_url;

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
    opening->under_way = true; /* so the URL stays */
    lk__mu_unlock(&here->mu);
    int rc = lk__client_openurl(&fresh, atomic_load(&default_url));
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
    if (here->default_given)
        return lk__fail(ECANCELED, "the default client was closed, or is the parent process': set it again");
    if (!here->opening.under_way)
        return open_for_all(here);
    int rc = await_opening(here);
    bool again = rc != 0 && here->opening.slow && !*waited && lk__now_us() < limit_us;
    *waited = true;
    return again ? 0 : rc;
}

/* `users`: how many more will close it. */
static int enter(lk_client_t **client, int64_t limit_us, unsigned users)
{
    struct lk__processstate *here = lk__process_state();
    bool waited = false;
    int rc = 0;
    if (here == NULL)
        return lk__fail(ENOMEM, "out of memory for a client");
    lk__mu_lock(&here->mu);
    while (rc == 0 && here->default_client == NULL)
        rc = have_it_opened(here, limit_us, &waited);
    if (rc == 0) {
        *client = entered(here->default_client);
        (*client)->users += users;
        here->default_used = true;
    }
    lk__mu_unlock(&here->mu);
    return rc;
}

int lk__client_enterdefault(lk_client_t **client, int64_t limit_us)
{
    return enter(client, limit_us, 0);
}

static int find_default(lk_client_t **client)
{
    lk_client_t *found;
    int rc = enter(&found, LK__NEVER, 1);
    if (rc != 0)
        return rc;
    *client = found;
    lk__client_leave(found);
    return 0;
}

int lk_client_default(lk_client_t **client)
{
    if (client == NULL)
        return lk__fail(EINVAL, "lk_client_default: nowhere to put the client");
    struct lk__apistate api = lk__api_enter();
    return lk__api_leave(&api, find_default(client));
}

/* --- setting it -------------------------------------------------------------------------------------------------- */

/*
 * Under the process state's mu. 0, or why not, with an error text. A close that began before this has found that the
 * client is not the default one, and would leave it here.
 */
static int replace(struct lk__processstate *here, lk_client_t *client)
{
    assert(lk__mu_held(&here->mu));
    if (client != NULL && lk__client_isclosed(client))
        return lk__fail(ECANCELED, "the client was closed");
    if (here->opening.under_way || (here->default_client != NULL && here->default_used))
        return lk__fail(EBUSY, "the default client is in use already");
    here->default_client = client;
    here->default_given = client != NULL;
    here->default_used = false;
    return 0;
}

static int set_client(lk_client_t *client)
{
    struct lk__processstate *here = lk__process_state();
    if (here == NULL)
        return lk__fail(ENOMEM, "out of memory for a client");
    int rc = client != NULL ? lk__client_enter(client) : 0; /* so that its close waits for this */
    if (rc != 0)
        return rc;
    lk__mu_lock(&here->mu);
    rc = replace(here, client);
    lk__mu_unlock(&here->mu);
    if (client != NULL)
        lk__client_leave(client);
    return rc;
}

int lk_client_setdefault(lk_client_t *client)
{
    struct lk__apistate api = lk__api_enter();
    return lk__api_leave(&api, set_client(client));
}

/* Takes `url`. */
static int set_url(struct lk__processstate *here, char *url)
{
    lk__mu_lock(&here->mu);
    int rc = replace(here, NULL);
    if (rc == 0)
        url = atomic_exchange(&default_url, url);
    lk__mu_unlock(&here->mu);
    lk__wipe(url);
    return rc;
}

static int check_and_set_url(const char *url)
{
    struct lk__processstate *here = lk__process_state();
    struct lk__options options;
    if (here == NULL)
        return lk__fail(ENOMEM, "out of memory for a client");
    if (url == NULL)
        return set_url(here, NULL);
    int rc = lk__options_url(&options, url);
    if (rc != 0)
        return rc;
    lk__options_clear(&options);
    char *copy = lk__strdup(url);
    return copy != NULL ? set_url(here, copy) : lk__fail(ENOMEM, "out of memory for a URL");
}

int lk_client_setdefaulturl(const char *url)
{
    struct lk__apistate api = lk__api_enter();
    return lk__api_leave(&api, check_and_set_url(url));
}
