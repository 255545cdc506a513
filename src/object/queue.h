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

#endif
