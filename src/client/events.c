/* SPDX-License-Identifier: MIT */
/*
 * events.c - events of holds, for a listener and for programs that poll
 *
 * Guards: events->mu the queues. Taken under dog->mu, so it is held for moments only; the listener runs
 * without any lock.
 *
 * What is to be told lies in its hold, with a link for each audience, so that telling allocates nothing and a loss is
 * never dropped for want of room. A hold that changes again before it was fetched shows its last state.
 */
#include "client/events.h"

#include <stdio.h>
#include <unistd.h>

void lk__events_init(struct lk__events *events)
{
    *events = (struct lk__events){ .fd = -1 };
    lk__mu_init(&events->mu, LK__MU_EVENTS);
    lk__cond_init(&events->news);
    lk__cond_init(&events->quiet);
    for (int i = 0; i < LK__AUDIENCES; i++)
        lk__list_init(&events->queues[i]);
}

static struct lk__link *link_of(struct lk__hold *hold, int audience)
{
    return audience == LK__LISTENER ? &hold->for_listener : &hold->for_eventfd;
}

static struct lk__hold *hold_of(struct lk__link *link, int audience)
{
    return audience == LK__LISTENER ? LK__CONTAINER(link, struct lk__hold, for_listener)
                                    : LK__CONTAINER(link, struct lk__hold, for_eventfd);
}

void lk__events_notify(void *arg, const struct lk__lease *lease, int type)
{
    struct lk__events *events = arg;
    struct lk__hold *hold = lease->holder;
    if (hold == NULL)
        return;
    lk__mu_lock(&events->mu);
    hold->event = (unsigned char)type;
    hold->reason = (unsigned char)(type == LK_EVENT_LOST ? lease->reason : LK_REASON_NONE);
    for (int i = 0; i < LK__AUDIENCES; i++) {
        if (!events->wanted[i])
            continue;
        if (!lk__listed(link_of(hold, i)))
            lk__list_append(&events->queues[i], link_of(lk__hold_ref(hold), i));
        if (i == LK__LISTENER)
            pthread_cond_signal(&events->news);
        else
            lk__eventfd_set(events->fd);
    }
    lk__mu_unlock(&events->mu);
}

static void describe(lk_event_t *event, const struct lk__hold *hold)
{
    int64_t left_us = atomic_load(&hold->lease->valid_until_us) - lk__now_us();
    *event = (lk_event_t){ .size = sizeof *event,
                           .type = hold->event,
                           .reason = hold->reason,
                           .kind = hold->kind,
                           .remaining_ms = hold->event == LK_EVENT_LOST || left_us < 0 ? 0 : left_us / 1000,
                           .token = hold->token,
                           .owner = hold->owner };
    snprintf(event->name, sizeof event->name, "%s", hold->lease->name);
}

/* The hold is then the caller's to drop, without the lock. */
static struct lk__hold *fetch(struct lk__events *events, int audience, lk_event_t *event)
{
    assert(lk__mu_held(&events->mu));
    struct lk__link *link = lk__list_first(&events->queues[audience]);
    if (link == NULL)
        return NULL;
    struct lk__hold *hold = hold_of(link, audience);
    lk__list_remove(link);
    describe(event, hold);
    return hold;
}

/* Under events->mu, left and taken again: forget what an audience has not fetched. */
static void forget(struct lk__events *events, int audience)
{
    assert(lk__mu_held(&events->mu));
    lk_event_t event;
    struct lk__hold *hold;
    while ((hold = fetch(events, audience, &event)) != NULL) {
        lk__mu_unlock(&events->mu);
        lk__hold_unref(hold);
        lk__mu_lock(&events->mu);
    }
}

/* The listener returned. */
static void returned(struct lk__events *events)
{
    assert(lk__mu_held(&events->mu));
    events->running = false;
    events->calls++;
    pthread_cond_broadcast(&events->quiet);
}

static void *run(void *arg);

/* The listener ended the thread. Another one tells what is queued; without memory, when a listener is set again. */
static void replace_thread(void *arg)
{
    struct lk__events *events = arg;
    lk__mu_lock(&events->mu);
    returned(events);
    if (!events->stopping) { /* else it is joined */
        pthread_detach(pthread_self());
        events->started = lk__thread_spawn(&events->thread, "lk-listener", run, events) == 0;
    }
    lk__mu_unlock(&events->mu);
}

/* Under events->mu, left and taken again. */
static void call_listener(struct lk__events *events, const lk_event_t *event, struct lk__hold *hold)
{
    assert(lk__mu_held(&events->mu));
    lk_listener_t listener = events->listener;
    void *listener_arg = events->arg;
    events->running = true;
    lk__mu_unlock(&events->mu);
    lk__hold_unref(hold);
    pthread_cleanup_push(replace_thread, events);
    if (listener != NULL)
        listener(event, listener_arg);
    pthread_cleanup_pop(0);
    lk__mu_lock(&events->mu);
    returned(events);
}

static void *run(void *arg)
{
    struct lk__events *events = arg;
    lk_event_t event;
    lk__mu_lock(&events->mu);
    for (;;) {
        struct lk__hold *hold = fetch(events, LK__LISTENER, &event);
        if (hold != NULL)
            call_listener(events, &event, hold);
        else if (events->stopping)
            break; /* not before: a loss is always told */
        else
            lk__cond_wait(&events->news, &events->mu, LK__NEVER);
    }
    lk__mu_unlock(&events->mu);
    return NULL;
}

bool lk__events_ishere(struct lk__events *events)
{
    lk__mu_lock(&events->mu);
    bool here = events->started && pthread_equal(events->thread, pthread_self());
    lk__mu_unlock(&events->mu);
    return here;
}

void lk__events_stop(struct lk__events *events)
{
    lk__mu_lock(&events->mu);
    bool started = events->started;
    events->stopping = true;
    events->wanted[LK__LISTENER] = events->wanted[LK__EVENTFD] = false;
    pthread_cond_signal(&events->news);
    lk__mu_unlock(&events->mu);
    if (started)
        pthread_join(events->thread, NULL);
    lk__mu_lock(&events->mu);
    events->started = false;
    for (int i = 0; i < LK__AUDIENCES; i++)
        forget(events, i);
    lk__mu_unlock(&events->mu);
}

void lk__events_destroy(struct lk__events *events)
{
    if (events->fd >= 0)
        lk__fd_close(events->fd);
    pthread_cond_destroy(&events->news);
    pthread_cond_destroy(&events->quiet);
    lk__mu_destroy(&events->mu);
}

int lk__events_listen(struct lk__events *events, lk_listener_t listener, void *arg)
{
    int rc = 0;
    bool here = lk__events_ishere(events);
    lk__mu_lock(&events->mu);
    if (!events->started && listener != NULL) {
        rc = lk__thread_start(&events->thread, "lk-listener", run, events);
        events->started = rc == 0;
    }
    if (rc == 0) {
        events->listener = listener;
        events->arg = arg;
        events->wanted[LK__LISTENER] = listener != NULL;
        unsigned calls = events->calls; /* the one under way; the next is the new listener's */
        while (events->running && events->calls == calls && !here)
            lk__cond_wait(&events->quiet, &events->mu, LK__NEVER);
        if (listener == NULL)
            forget(events, LK__LISTENER);
    }
    lk__mu_unlock(&events->mu);
    return rc;
}

int lk__events_fd(struct lk__events *events, int *fd)
{
    int rc = 0;
    lk__mu_lock(&events->mu);
    if (events->fd < 0)
        events->fd = lk__eventfd_open();
    if (events->fd < 0) {
        rc = lk__fail(ENOMEM, "no descriptor left for events");
    } else {
        events->wanted[LK__EVENTFD] = true;
        *fd = events->fd;
    }
    lk__mu_unlock(&events->mu);
    return rc;
}

bool lk__events_next(struct lk__events *events, lk_event_t *event)
{
    lk__mu_lock(&events->mu);
    struct lk__hold *hold = fetch(events, LK__EVENTFD, event);
    if (events->fd >= 0 && lk__list_empty(&events->queues[LK__EVENTFD]))
        lk__eventfd_clear(events->fd);
    lk__mu_unlock(&events->mu);
    bool found = hold != NULL;
    lk__hold_unref(hold);
    return found;
}
