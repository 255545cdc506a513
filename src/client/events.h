/* SPDX-License-Identifier: MIT */
/*
 * events.h - events of holds and objects, for listeners and for programs that poll
 *
 * events.c    who is told what      listener.c  the thread that calls listeners
 * listen.c    the public calls
 */
#ifndef LK__CLIENT_EVENTS_H
#define LK__CLIENT_EVENTS_H

#include "client/hold.h"
#include "client/stats.h"

#include <latchkey/events.h>

/* Somebody who is told: a listener, or a queue that a program reads. All of it under the events' mu. */
struct lk__audience {
    struct lk__link link;      /* in events->audiences */
    struct lk__link *next;     /* the oldest news that it was not told; the head of the list: there are none */
    unsigned long long missed; /* losses that it was not told in time, and will be told as one event */
    uint64_t handle;           /* a listener's; 0: a queue */
    lk_listener_t listener;
    void *arg;
    int fd; /* a queue's, readable while there is something; -1: not asked for */
};

struct lk__events {
    struct lk__kindstats *stats; /* of each kind: losses are counted where they are told */
    struct lk__mu mu;            /* innermost but for a parker's: taken under dog->mu */
    struct lk__link news;      /* under mu, as all of this: what somebody was not told yet, oldest first */
    atomic_uint news_count;    /* written under mu */
    uint64_t numbers;          /* given to news so far */
    struct lk__link audiences; /* those that are next in turn first */
    unsigned audience_count;   /* without those that are leaving */
    uint64_t handles;     /* handed out so far */
    uint64_t running;     /* handle of the listener that is being called; 0: none */
    pthread_cond_t some;  /* with mu: something for a listener, or stop */
    pthread_cond_t quiet; /* with mu: a listener returned, or audiences are gone, or one that was leaving is */
    unsigned leaving;     /* queues that are being closed, and drop what they were not told */
    bool started, stopping;
    pthread_t thread;
};

void lk__events_init(struct lk__events *events, struct lk__kindstats *stats);
void lk__events_destroy(struct lk__events *events);

/* --- events.c ------------------------------------------------------------------------------------------------ */

void lk__events_notify(void *events, const struct lk__lease *lease, int type); /* under dog->mu */
/* An event of an object of LK_KIND_..., and no hold; `owner` 0: of nobody. Without memory for it nobody is told. */
void lk__events_ofobject(struct lk__events *events, int type, int kind, const char *name, uint64_t owner);

/* A new hold makes room: whoever is far behind is told of the oldest losses as one event. Not under dog->mu. */
enum { LK__NEWS_MAX = 4096 };
void lk__events_trim(struct lk__events *events);
static inline void lk__events_makeroom(struct lk__events *events)
{
    if (atomic_load_explicit(&events->news_count, memory_order_relaxed) > LK__NEWS_MAX)
        lk__events_trim(events);
}

/* An audience is told what happens from now on. Under events->mu. */
void lk__events_join(struct lk__events *events, struct lk__audience *audience);
/* No more. Under events->mu, left and taken again. Returns how many losses it was not told. */
unsigned long long lk__events_leave(struct lk__events *events, struct lk__audience *audience);

bool lk__audience_hasnews(const struct lk__events *events, const struct lk__audience *audience);
/*
 * Tell an audience what is next; under events->mu. False: nothing is. `over`: NULL, or news that all have been told:
 * the caller's to drop, without the lock.
 */
bool lk__audience_tell(struct lk__events *events, struct lk__audience *audience, lk_event_t *event,
                       struct lk__news **over);
void lk__news_drop(struct lk__news *news); /* accepts NULL */

/* --- listener.c ---------------------------------------------------------------------------------------------- */

bool lk__events_ishere(struct lk__events *events); /* is this the listeners' thread? */
/* As lk_client_addlistener() and lk_client_removelistener(), with an error text. */
int lk__events_addlistener(struct lk__events *events, lk_listener_t listener, void *arg, uint64_t *handle);
int lk__events_removelistener(struct lk__events *events, uint64_t handle);
/* The client ends: listeners are told the rest, queues keep the number of losses that were not fetched, and all leave. */
void lk__events_stop(struct lk__events *events);

#endif
