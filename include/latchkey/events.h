/* SPDX-License-Identifier: MIT */
/*
 * events.h - what may happen to holds and objects, in words; listeners and queues of events, both
 * in client.h, tell it
 */
#ifndef LATCHKEY_EVENTS_H
#define LATCHKEY_EVENTS_H

#include <latchkey/api.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    LK_EVENT_AT_RISK = 1,   /* its renewal is overdue by a third of the lease; still good for remaining_ms */
    LK_EVENT_RECOVERED = 2, /* renewed after LK_EVENT_AT_RISK */
    LK_EVENT_LOST = 3,      /* the hold is over, finally; exactly one for each lost hold,
                               or one for several: `count` */
    LK_EVENT_DISAGREES = 4, /* of an object, and no hold: others use its name with other
                               settings (fair, robust, prefer, leased); the log says
                               which. Once, until a look at them finds that all agree
                               again; see docs/configuration.md, strict */
    LK_EVENT_LONG_WAIT = 5, /* of an object, and no hold: `owner` waits for it for longer than
                               warn_wait, and goes on waiting. Once for each wait */
    LK_EVENT_LONG_HOLD = 6  /* held for longer than warn_hold, and still good. Once for each
                               hold, unless its last event was not fetched yet */
};

enum {
    LK_REASON_NONE = 0,
    LK_REASON_EXPIRED = 1,     /* no renewal succeeded in time */
    LK_REASON_GONE = 2,        /* the server no longer knows the hold */
    LK_REASON_THREAD_EXIT = 3, /* its thread ended while holding */
    LK_REASON_MAX_HOLD = 4,    /* held as long as max_hold_ms allows */
    LK_REASON_FIXED = 5,       /* a fixed lease ran out */
    LK_REASON_RELEASED = 6     /* a permit with an id: given back by another client, or gone */
};

enum {
    LK_KIND_MUTEX = 1,
    LK_KIND_RWLOCK = 2,
    LK_KIND_SEM = 3,     /* counting semaphore: no event of a hold is about one */
    LK_KIND_PERMITS = 4, /* leased semaphore */
    LK_KIND_LATCH = 5,   /* countdown latch: in statistics only, no event is about one */
    LK_KIND_ONCE = 6,    /* a run of what is done once */
    LK_KIND_BARRIER = 7, /* barrier: in statistics only, no event is about one */
    LK_KIND_COND = 8,    /* condition variable: likewise */
    LK_KIND_REDLOCK = 9  /* a mutex that a majority of several servers grants */
};

typedef struct lk_event {
    size_t size;                /* sizeof(lk_event_t); see LK_EVENT_INIT, and api.h on sizes */
    int type;                   /* LK_EVENT_... */
    int reason;                 /* LK_REASON_... */
    int kind;                   /* LK_KIND_... */
    int64_t remaining_ms;       /* of the hold, when the event was fetched; 0 when lost */
    uint64_t token;             /* fencing token of the hold; 0: it has none. An event of an object
                                   has neither token, reason nor time */
    uint64_t owner;             /* whose hold or wait it is: see lk_owner_number(); 0: nobody's */
    uint64_t count;             /* 1; of losses that nobody fetched in time, their number: then the
                                   name is "", and kind, reason and token are 0 */
    char name[LK_NAME_MAX + 1]; /* as the user gave it */
} lk_event_t;

/* clang-format off */
#define LK_EVENT_INIT { sizeof(lk_event_t), 0, 0, 0, 0, 0, 0, 0, { 0 } }
/* clang-format on */

/*
 * Hears of what happens to holds and objects.
 *
 *   event     valid until the listener returns; its size is that of the library's
 *             version, and what lies beyond the size that the program knows is
 *             nothing to it
 *   arg       as given to lk_client_addlistener()
 *
 * Runs on     a thread of the library that holds no lock and does nothing else: it
 *             may block, lock and unlock, add and remove listeners, itself as well,
 *             but not close the client. A slow listener delays later events, also those
 *             of the client's other listeners, never a renewal. If it ends its thread,
 *             later events come on another one.
 */
typedef void (*lk_listener_t)(const lk_event_t *event, void *arg);

#ifdef __cplusplus
}
#endif

#endif
