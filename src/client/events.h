/* SPDX-License-Identifier: MIT */
/* events.h - events of holds and objects, for listeners and for programs that poll */
#ifndef LK__CLIENT_EVENTS_H
#define LK__CLIENT_EVENTS_H

#include "client/hold.h"
#include "client/stats.h"

#include <latchkey/client.h>

enum { LK__QUEUE_MAX = 4096 };

/* News that a listener, or a program that reads, was not told yet. All of it under the events' mu. */
struct lk_events {
    struct lk__link link;      /* in events->queues, until the client is closed */
    unsigned long long missed; /* losses that found no room, and are told as one event */
    unsigned first, count;     /* of the entries */
    uint64_t handle;           /* a listener's; 0: a program reads */
    lk_listener_t listener;
    void *arg;
    lk_client_t *client; /* that of a program, with a reference */
    int fd;              /* likewise, readable while there is something; -1: not asked for */
    struct lk__queued {
        struct lk__news *news;
        unsigned number; /* of its change */
    } entries[LK__QUEUE_MAX];
};

struct lk__events {
    struct lk__kindstats *stats; /* of each kind: losses are counted where they are told */
    struct lk__mu mu;            /* innermost but for a parker's: taken under dog->mu */
    struct lk__link queues;      /* under mu, as all of this; those that are next in turn first */
    struct lk__link spent;       /* news to be dropped, not under dog->mu */
    atomic_uint spent_count;     /* written under mu */
    uint64_t handles;            /* handed out so far */
    uint64_t running;            /* handle of the listener that is being called; 0: none */
    pthread_cond_t some;         /* with mu: something for a listener, or stop */
    pthread_cond_t quiet;        /* with mu: a listener returned */
    bool started, stopping;
    pthread_t thread;
};

void lk__events_init(struct lk__events *events, struct lk__kindstats *stats);
void lk__events_destroy(struct lk__events *events);

void lk__events_notify(void *events, const struct lk__lease *lease, int type); /* under dog->mu */
/* An event of an object of LK_KIND_..., and no hold; `owner` 0: of nobody. Without memory for it nobody is told. */
void lk__events_ofobject(struct lk__events *events, int type, int kind, const char *name, uint64_t owner);

/* Drop the news that are spent. Not under dog->mu, nor events->mu. */
void lk__events_drop(struct lk__events *events);
static inline void lk__events_makeroom(struct lk__events *events)
{
    if (atomic_load_explicit(&events->spent_count, memory_order_relaxed) > 0)
        lk__events_drop(events);
}

/* The client ends: listeners are told the rest, queues keep the number of losses that were not fetched. */
void lk__events_stop(struct lk__events *events);
bool lk__events_ishere(struct lk__events *events); /* is this the listeners' thread? */

/* The rest is under events->mu. */
int lk__events_start(struct lk__events *events); /* the listeners' thread; harmless when it runs */
bool lk__queue_hasnews(const struct lk_events *queue);
bool lk__queue_take(struct lk__events *events, struct lk_events *queue, lk_event_t *event); /* false: there is none */
void lk__queue_leave(struct lk__events *events, struct lk_events *queue); /* what was not taken becomes its number */

#endif
