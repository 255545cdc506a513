/* SPDX-License-Identifier: MIT */
/* queue.c - who waits for an object, page by page; what each waiter wants is in its id, which its kind can read */
#include "object/queue.h"

#include <string.h>

enum { PAGE = 50 }; /* with its four integers a page is below LK__REPLY_MAX */

/* Where the next page is written, and the reply that it is read from. */
struct listing {
    unsigned char *waiters;
    size_t stride; /* from one to the next */
    unsigned capacity, listed, waiting, on_page;
    struct lk__reply *reply;
};

static void list_page(const struct lk__op *op, struct listing *listing, const struct lk__queuepage *page)
{
    listing->waiting = (unsigned)page->waiters;
    listing->on_page = page->ids_count;
    for (unsigned i = 0; i < page->ids_count && listing->listed < listing->capacity; i++) {
        lk_waiter_t waiter = { .n = 1 };
        strncpy(waiter.id, lk__reply_text(listing->reply, page->ids + i), sizeof waiter.id - 1);
        op->object->kind->read_waiter(&waiter);
        lk__sized_fill(listing->waiters + listing->listed++ * listing->stride, listing->stride, &waiter, sizeof waiter);
    }
}

static int list_queue(const struct lk__op *op, struct listing *listing)
{
    const struct lk__kind *kind = op->object->kind;
    struct lk__queuepage page;
    struct {
        struct lk__reply reply;
        struct lk__value values[LK__REPLY_MAX];
        char text[PAGE * sizeof((lk_waiter_t *)0)->id];
    } *room = lk__alloc(sizeof *room);
    if (room == NULL)
        return lk__fail(ENOMEM, "%s: out of memory for a list of waiters", op->object->what);
    listing->reply = lk__reply_in(&room->reply, room->values, LK__REPLY_MAX, room->text, sizeof room->text);
    int rc;
    do {
        rc = lk__client_stay(op->object->client, op->object->what);
        if (rc == 0)
            rc = kind->ask_queue(op->object, listing->listed, listing->listed + PAGE - 1, listing->reply, &page);
        if (rc == 0)
            list_page(op, listing, &page);
    } while (rc == 0 && listing->on_page == PAGE && listing->listed < listing->capacity);
    lk__free(room);
    return rc;
}

int lk__queue_list(const char *function, struct lk__handle handle, const struct lk__kind *kind, lk_waiter_t *waiters,
                   size_t stride, unsigned capacity, unsigned *count)
{
    struct lk__op op;
    struct listing listing = { .waiters = (unsigned char *)waiters, .stride = stride, .capacity = capacity };
    if (count == NULL || (waiters == NULL && capacity > 0))
        return lk__fail(EINVAL, "%s: nowhere to put the waiters", function);
    if (capacity > 0 && stride < LK__THROUGH(lk_waiter_t, n))
        return lk__fail(EINVAL, "%s: the stride is sizeof(lk_waiter_t)", function);
    int rc = lk__op_enter(&op, handle, kind);
    if (rc != 0)
        return rc;
    rc = list_queue(&op, &listing);
    if (rc == 0)
        *count = listing.waiting;
    return lk__op_leave(&op, rc);
}
