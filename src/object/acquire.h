/* SPDX-License-Identifier: MIT */
/*
 * acquire.h - becoming the holder of something that has a lease, and giving it back
 */
#ifndef LK__OBJECT_ACQUIRE_H
#define LK__OBJECT_ACQUIRE_H

#include "object/op.h"
#include "object/redisson.h"

/*
 * One acquire, on the caller's stack. The primitive fills in the first part and calls lk__acquire_run().
 * Everything that may fail for want of memory comes before the first byte is sent.
 */
struct lk__acquire {
    const struct lk__op *op;
    uint64_t owner;                   /* 0: nobody's thread, anybody may give it back */
    int64_t lease_ms;                 /* 0: the client's */
    int64_t min_hold_ms, max_hold_ms; /* 0: none */
    bool fixed;
    bool tokenless;     /* one of several holders: the token that came is not its own */
    bool queue_locally; /* of the owner's process one waits in Redis, the others in line */
    /*
     * NULL: that of the hold. Else what is taken has no lease: nothing is held, the server remembers the request, and
     * this gives it back; the primitive made it, and drops it.
     */
    struct lk__outboxentry *release;
    /*
     * Not NULL: the wait is a cancellation point, but not in line. Called on a cancelled thread instead of a
     * return from lk__acquire_run().
     */
    void (*unwind)(struct lk__acquire *acquire);
    /* Fill in acquire->waiter.ask and read, and the commands of the hold's lease: renewal, release. */
    void (*set_commands)(struct lk__acquire *acquire);
    void *arg;                         /* for set_commands */
    struct lk__redissonwake *redisson; /* NULL: none */

    /* what set_commands() may use; waiter.machine.lease_ms is what the ask should ask for */
    struct lk__waiter waiter;
    struct lk__hold *hold; /* NULL: what is taken has no lease */
    bool try_only;

    /* private */
    int64_t began_us;
    bool contended;
};

/*
 * 0 or EOWNERDEAD: acquire->hold is good, known to the object and renewed. Otherwise not held, with an error text; a
 * request whose answer got lost is taken back in the background.
 */
int lk__acquire_run(struct lk__acquire *acquire, int64_t limit_us);

/*
 * Give all of `hold` back. 0 · ESTALE it had been lost · else the outcome is open, and the release goes on in
 * the background; with an error text. Then lk__object_drophold().
 */
int lk__object_release(struct lk__object *object, struct lk__hold *hold);

/* ESTALE, with an error text. */
int lk__gone(const struct lk__object *object);

/* --- dated.c ------------------------------------------------------------------------------------------------------- */

/* An operator takes it away from whoever holds it: a script that is sent its deadline and nothing else. */
int lk__force(struct lk__object *object, const struct lk__command *command);

/*
 * Change a hold at the server, by a script that sets its lease, too. 0 and the verdict, DONE or GONE, when it is lost;
 * or why there is none, with an error text.
 */
int lk__update(struct lk__object *object, struct lk__hold *hold, const struct lk__command *command,
               enum lk__verdict *verdict);

/* Ask what changes nothing; `id` NULL: of no hold. 0 and the reply, or why there is none, with an error text. */
int lk__object_ask(const struct lk__object *object, const struct lk__command *command, const char *id,
                   struct lk__reply *reply);

/* ENOTCONN, with an error text: each request came too late. */
int lk__late(const struct lk__object *object);

#endif
