/* SPDX-License-Identifier: MIT */
/* inspect.c - calls that need no hold: info, queue, forceunlock */
#include "lock/mutex.h"

#include <string.h>

int lk_mutex_forceunlock(lk_mutex_t *m)
{
    struct lk__op op;
    int rc = lk__op_enter(&op, LK__HANDLE(m), &lk__mutex_kind);
    if (rc != 0)
        return rc;
    struct lk__mutexblock *block = lk__mutex_block(lk__mutex_of(&op));
    const struct lk__lock_force_args args = { .claim_ms = block->release.claim_ms,
                                              .channel = block->release.channel,
                                              .flags = block->release.flags };
    const struct lk__command command = lk__object_command(op.object, &lk__lua_lock_force, &args);
    return lk__op_leave(&op, lk__force(op.object, &command));
}

static void tell_info(lk_mutexinfo_t *info, const struct lk__lock_info_reply *reply)
{
    lk_mutexinfo_t found = { .held = reply->verdict == LK__TAKEN,
                             .token = (uint64_t)reply->token,
                             .waiters = (unsigned)reply->waiters,
                             .recoverable = reply->recoverable == 1 };
    if (found.held) {
        found.remaining_ms = reply->left_ms;
        found.holds = (unsigned)reply->holds;
        strncpy(found.holder, reply->holder, sizeof found.holder - 1);
    }
    lk__sized_write(info, &found, sizeof found);
}

static int read_info(const struct lk__op *op, lk_mutexinfo_t *info)
{
    const struct lk__command command = lk__object_command(op->object, &lk__lua_lock_info, NULL);
    struct lk__replybuf buf;
    struct lk__lock_info_reply reply;
    int rc = lk__object_ask(op->object, &command, NULL, lk__replybuf_reply(&buf));
    if (rc == 0 && !lk__lock_info_read(&buf.reply, &reply))
        rc = lk__call_garbled(op->object->what);
    if (rc == 0)
        tell_info(info, &reply);
    return rc;
}

int lk_mutex_info(lk_mutex_t *m, lk_mutexinfo_t *info)
{
    struct lk__op op;
    int rc = lk__sized_check(info, LK__THROUGH(lk_mutexinfo_t, holder), "what is known of a mutex");
    if (rc == 0)
        rc = lk__op_enter(&op, LK__HANDLE(m), &lk__mutex_kind);
    if (rc != 0)
        return rc;
    return lk__op_leave(&op, read_info(&op, info));
}

enum { PAGE = 50 }; /* with its four integers a page is below LK__REPLY_MAX */

/* Where the next page is written, and the reply that it is read from. */
struct listing {
    unsigned char *waiters;
    size_t stride; /* from one to the next */
    unsigned capacity, listed, waiting, on_page;
    struct lk__reply *reply;
};

static void list_page(struct listing *listing, const struct lk__lock_queue_page_reply *page)
{
    listing->waiting = (unsigned)page->waiters;
    listing->on_page = page->ids_count;
    for (unsigned i = 0; i < page->ids_count && listing->listed < listing->capacity; i++) {
        lk_waiter_t waiter = { .wants = LK_WANTS_LOCK, .n = 1 };
        strncpy(waiter.id, lk__reply_text(listing->reply, page->ids + i), sizeof waiter.id - 1);
        lk__sized_fill(listing->waiters + listing->listed++ * listing->stride, listing->stride, &waiter, sizeof waiter);
    }
}

static int read_page(const struct lk__op *op, struct listing *listing)
{
    const struct lk__lock_queue_page_args args = { .first = listing->listed, .last = listing->listed + PAGE - 1 };
    const struct lk__command command = lk__object_command(op->object, &lk__lua_lock_queue_page, &args);
    struct lk__lock_queue_page_reply page;
    int rc = lk__object_ask(op->object, &command, NULL, listing->reply);
    if (rc == 0 && !lk__lock_queue_page_read(listing->reply, &page))
        rc = lk__call_garbled(op->object->what);
    if (rc == 0)
        list_page(listing, &page);
    return rc;
}

static int list_queue(const struct lk__op *op, struct listing *listing)
{
    struct {
        struct lk__reply reply;
        char text[PAGE * sizeof((lk_waiter_t *)0)->id];
    } *page = lk__alloc(sizeof *page);
    if (page == NULL)
        return lk__fail(ENOMEM, "%s: out of memory for a list of waiters", op->object->what);
    page->reply.text = page->text;
    page->reply.text_capacity = sizeof page->text;
    listing->reply = &page->reply;
    int rc;
    do
        rc = read_page(op, listing);
    while (rc == 0 && listing->on_page == PAGE && listing->listed < listing->capacity);
    lk__free(page);
    return rc;
}

int lk_mutex_queue(lk_mutex_t *m, lk_waiter_t *waiters, size_t stride, unsigned capacity, unsigned *count)
{
    struct lk__op op;
    struct listing listing = { .waiters = (unsigned char *)waiters, .stride = stride, .capacity = capacity };
    if (count == NULL || (waiters == NULL && capacity > 0))
        return lk__fail(EINVAL, "lk_mutex_queue: nowhere to put the waiters");
    if (capacity > 0 && stride < LK__THROUGH(lk_waiter_t, n))
        return lk__fail(EINVAL, "lk_mutex_queue: the stride is sizeof(lk_waiter_t)");
    int rc = lk__op_enter(&op, LK__HANDLE(m), &lk__mutex_kind);
    if (rc != 0)
        return rc;
    rc = list_queue(&op, &listing);
    if (rc == 0)
        *count = listing.waiting;
    return lk__op_leave(&op, rc);
}
