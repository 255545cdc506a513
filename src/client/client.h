/* SPDX-License-Identifier: MIT */
/*
 * client.h - a client: its connections, and what it closes with it
 */
#ifndef LK__CLIENT_H
#define LK__CLIENT_H

#include "acquire/acquire.h"
#include "client/events.h"
#include "client/stats.h"

#include <latchkey/client.h>

/* What a client has by name: an object, which is told of the client's end. */
struct lk__member {
    struct lk__entry entry; /* under client->mu; kind, and the name with the client's prefix: what Redis sees */
    const struct lk__memberrole *role;
};

/* Called under client->mu. */
struct lk__memberrole {
    void (*cancel)(struct lk__member *member); /* the client is closing: wake waiters, which give up */
    /* All holds were given back, and the hub ends next: unsubscribe, and forget the holds. */
    void (*quiet)(struct lk__member *member);
    void (*describe)(struct lk__member *member, struct lk__memberstats *stats);
};

struct lk_client {
    struct lk__link link; /* under the process' mu: in its clients */
    uintptr_t process;    /* a fork's child only ever reads this */
    unsigned users;       /* under the process' mu: the opener, and those that asked for the default client */
    atomic_int refs;      /* the opener's, and one for each member and each queue of events */
    char id[LK__ID_LENGTH + 1];
    struct lk__connector *connector;
    const struct lk__options *options;
    struct lk__node node;
    struct lk__hub hub;
    struct lk__watchdog dog;
    struct lk__waiters waiters;
    struct lk__events events;

    struct lk__mu mu;
    pthread_cond_t idle;      /* with mu: no call is under way */
    struct lk__map members;   /* under mu */
    struct lk__link leftover; /* under mu: holds of members that were destroyed while the client is closing */
    bool released;            /* under mu: the close is through with all holds */
    atomic_uint calls;        /* public calls under way, and LK__CLOSING */
    atomic_ullong acquisitions;
    atomic_uint abandoned;      /* slots whose last request got no answer */
    struct lk__linepause waited; /* of the log's lines of waits that were too long */
    _Atomic int64_t hurried_us; /* when one that let the next holder go first was kept waiting for long; 0: never */
    struct lk__kindstats stats[LK__KINDS];
    atomic_ullong
        confirms[LK__KINDS]; /* which connection for grants was sent the script's text that confirms them; 0: none */
    struct lk__terms terms[2]; /* of claims that become leases, and of those that do not; never change */
};

#define LK__CLOSING (1u << 31)

/*
 * Every public call on an object runs between these two. ECANCELED: the client is closed. After it left, a call
 * does not touch the client any more: it may be freed.
 */
int lk__client_enter(lk_client_t *client);
void lk__client_leaveclosing(lk_client_t *client); /* the rest of lk__client_leave() */

static inline void lk__client_leave(lk_client_t *client)
{
    unsigned calls = atomic_load(&client->calls);
    while ((calls & LK__CLOSING) == 0)
        if (atomic_compare_exchange_weak(&client->calls, &calls, calls - 1))
            return;
    lk__client_leaveclosing(client);
}

/* Without an error text, of a client of this process. */
static inline bool lk__client_tryenter(lk_client_t *client)
{
    if ((atomic_fetch_add(&client->calls, 1) & LK__CLOSING) == 0)
        return true;
    lk__client_leave(client);
    return false;
}

/* As lk_client_open(). */
int lk__client_openurl(lk_client_t **client, const char *url);
/* As lk_client_openwith(), and its servers are asked what they say of themselves: node->server.told. */
int lk__client_opensurvey(lk_client_t **client, const lk_clientattr_t *attr);
bool lk__client_isclosed(const lk_client_t *client);
/* Before each round trip of a call that makes as many as the server says. ECANCELED, with words: a close waits for it. */
int lk__client_stay(const lk_client_t *client, const char *what);
void lk__client_unref(lk_client_t *client);

/* stats.c: it as text, to be freed by lk__free(); NULL: no memory. */
struct json_t;
char *lk__json_text(const struct json_t *json);

/*
 * give_back.c: release all that is held, by a client whose calls left, or stand still. What the server has not confirmed by
 * `until_us` is in the outbox. False: it refused something.
 */
bool lk__client_giveback(lk_client_t *client, int64_t until_us);

#endif
