/* SPDX-License-Identifier: MIT */
/* queue.h - the public call that lists who waits for an object, whole */
#ifndef LK__OBJECT_QUEUE_H
#define LK__OBJECT_QUEUE_H

#include "object/op.h"

/* A page of a wait queue, as the scripts tell it. */
struct lk__queuepage {
    enum lk__verdict verdict;
    int64_t server_us;
    int64_t waiters;
    unsigned ids, ids_count; /* place of the first in the reply, and how many */
};

/* The ids of at most `capacity` waiters, each element `stride` bytes, and how many there are; by pages of its kind. */
int lk__queue_list(const char *function, struct lk__handle handle, const struct lk__kind *kind, lk_waiter_t *waiters,
                   size_t stride, unsigned capacity, unsigned *count);

/* What a kind's table has as ask_queue(), by the scripts of a module. */
#define LK__ASK_QUEUE(module)                                                                                          \
    static int ask_queue(const struct lk__object *object, unsigned first, unsigned last, struct lk__reply *reply,      \
                         struct lk__queuepage *page)                                                                   \
    {                                                                                                                  \
        const struct lk__##module##_queue_page_args args = { .first = first, .last = last };                           \
        const struct lk__command command = lk__object_command(object, &lk__lua_##module##_queue_page, &args);          \
        int rc = lk__object_ask(object, &command, NULL, reply);                                                        \
        if (rc == 0)                                                                                                   \
            lk__##module##_queue_page_read(reply, page);                                                               \
        return rc;                                                                                                     \
    }

#endif
