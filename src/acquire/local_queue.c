/* SPDX-License-Identifier: MIT */
/*
 * local_queue.c - threads of one process wait for their turn to wait in Redis
 *
 * However many threads want one mutex, one of them is queued on the server; the others queue here,
 * in order of arrival, and cost no round trip.
 */
#include "acquire/acquire.h"
#include "base/probe.h"

void lk__localqueue_init(struct lk__localqueue *queue, struct lk__mu *mu)
{
    queue->mu = mu;
    lk__list_init(&queue->qnodes);
    queue->length = 0;
}

void lk__localqueue_destroy(struct lk__localqueue *queue)
{
    assert(lk__list_empty(&queue->qnodes));
    (void)queue;
}

static bool is_first(const struct lk__localqueue *queue, const struct lk__qnode *qnode)
{
    return lk__list_first(&queue->qnodes) == &qnode->link;
}

void lk__localqueue_stepout(struct lk__localqueue *queue, struct lk__qnode *qnode)
{
    assert(lk__mu_held(queue->mu));
    bool was_first = is_first(queue, qnode);
    lk__list_remove(&qnode->link);
    queue->length--;
    struct lk__link *next = lk__list_first(&queue->qnodes);
    if (was_first && next != NULL)
        lk__parker_signal(LK__CONTAINER(next, struct lk__qnode, link)->parker, LK__WOKEN);
}

/* Who stands there; NULL: it is not known. */
static struct lk__waiter *waiter_of(const struct lk__qnode *qnode)
{
    return qnode->patience == NULL ? NULL : LK__CONTAINER(qnode->patience, struct lk__waiter, patience);
}

/* A signal handler ended the thread where it slept; that leaves the queue, and its call. */
static void ended(void *arg)
{
    struct lk__waiter *waiter = waiter_of(arg);
    if (waiter != NULL)
        waiter->unwind(waiter);
}

/* Sleep, without queue->mu; until the patience is over at most. */
static void park(struct lk__qnode *qnode, int64_t until_us)
{
    struct lk__patience *patience = qnode->patience;
    if (patience != NULL)
        lk__patience_check(patience, lk__now_us());
    bool sooner = patience != NULL && patience->until_us < until_us;
    pthread_cleanup_push(ended, qnode);
    lk__parker_park(qnode->parker, sooner ? patience->until_us : until_us);
    pthread_cleanup_pop(0);
}

/* It stands behind another thread of the process. */
static void trace_wait(const struct lk__qnode *qnode)
{
    const struct lk__waiter *waiter = waiter_of(qnode);
    if (waiter != NULL)
        LK__PROBE2(wait, waiter->name, waiter->release->id);
}

int lk__localqueue_await(struct lk__localqueue *queue, struct lk__qnode *qnode, int64_t until_us)
{
    int rc = 0;
    trace_wait(qnode);
    lk__mu_lock(queue->mu);
    while (rc == 0 && !is_first(queue, qnode)) {
        if (qnode->cancelled) {
            rc = ECANCELED;
        } else if (lk__now_us() >= until_us) {
            rc = ETIMEDOUT;
        } else {
            lk__mu_unlock(queue->mu);
            park(qnode, until_us);
            lk__mu_lock(queue->mu);
        }
    }
    if (rc != 0)
        lk__localqueue_stepout(queue, qnode);
    lk__mu_unlock(queue->mu);
    return rc;
}

void lk__localqueue_cancel(struct lk__localqueue *queue)
{
    lk__mu_lock(queue->mu);
    for (struct lk__link *l = lk__list_first(&queue->qnodes); l != NULL; l = lk__list_next(&queue->qnodes, l)) {
        struct lk__qnode *qnode = LK__CONTAINER(l, struct lk__qnode, link);
        qnode->cancelled = true;
        lk__parker_signal(qnode->parker, LK__WOKEN);
    }
    lk__mu_unlock(queue->mu);
}
