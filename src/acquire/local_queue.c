/* SPDX-License-Identifier: MIT */
/*
 * local_queue.c - threads of one process wait for their turn to wait in Redis
 *
 * However many threads want one mutex, one of them is queued on the server; the others stand in line here,
 * in order of arrival, and cost no round trip.
 */
#include "acquire/acquire.h"

void lk__localqueue_init(struct lk__localqueue *line, struct lk__mu *mu)
{
    line->mu = mu;
    lk__list_init(&line->places);
    line->length = 0;
}

void lk__localqueue_destroy(struct lk__localqueue *line)
{
    assert(lk__list_empty(&line->places));
    (void)line;
}

static bool is_first(const struct lk__localqueue *line, const struct lk__qnode *place)
{
    return lk__list_first(&line->places) == &place->link;
}

void lk__localqueue_stepout(struct lk__localqueue *line, struct lk__qnode *place)
{
    assert(lk__mu_held(line->mu));
    bool was_first = is_first(line, place);
    lk__list_remove(&place->link);
    line->length--;
    struct lk__link *next = lk__list_first(&line->places);
    if (was_first && next != NULL)
        lk__parker_signal(LK__CONTAINER(next, struct lk__qnode, link)->parker, LK__WOKEN);
}

int lk__localqueue_await(struct lk__localqueue *line, struct lk__qnode *place, int64_t until_us)
{
    int rc = 0;
    lk__mu_lock(line->mu);
    while (rc == 0 && !is_first(line, place)) {
        if (place->cancelled) {
            rc = ECANCELED;
        } else if (lk__now_us() >= until_us) {
            rc = ETIMEDOUT;
        } else {
            lk__mu_unlock(line->mu);
            lk__parker_park(place->parker, until_us);
            lk__mu_lock(line->mu);
        }
    }
    if (rc != 0)
        lk__localqueue_stepout(line, place);
    lk__mu_unlock(line->mu);
    return rc;
}

void lk__localqueue_cancel(struct lk__localqueue *line)
{
    lk__mu_lock(line->mu);
    for (struct lk__link *l = lk__list_first(&line->places); l != NULL; l = lk__list_next(&line->places, l)) {
        struct lk__qnode *place = LK__CONTAINER(l, struct lk__qnode, link);
        place->cancelled = true;
        lk__parker_signal(place->parker, LK__WOKEN);
    }
    lk__mu_unlock(line->mu);
}

unsigned lk__localqueue_length(struct lk__localqueue *line)
{
    lk__mu_lock(line->mu);
    unsigned length = line->length;
    lk__mu_unlock(line->mu);
    return length;
}
