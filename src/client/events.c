/* SPDX-License-Identifier: MIT */
/*
 * events.c - events of holds and objects: one queue for each listener, and for each program that reads
 *
 * Guards: events->mu all queues, what happened to each hold last, and which listener is being called. It is taken under
 * dog->mu, so it is held for moments only. A listener runs without any lock.
 *
 * The last event of a hold lies in the hold, and a queue has a fixed number of places, so telling allocates nothing. A hold
 * that changes again takes a new place, and its older ones are passed over: a slow listener is told its last state. A
 * full queue gives up its oldest place; losses among these are told as a number.
 *
 * The hard case: a queue may give up the last reference to a hold under dog->mu, where no lease may be freed. So news
 * that left their last queue are spent, and the next caller without that lock drops them.
 *
 * The listeners' thread works with copies, and a handle is never given out twice: it needs nothing of a listener that
 * was removed.
 */
#include "client/events.h"
#include "base/probe.h"

#include <stdio.h>
#include <string.h>

void lk__events_init(struct lk__events *events, struct lk__kindstats *stats)
{
    *events = (struct lk__events){ .stats = stats };
    lk__mu_init(&events->mu, LK__MU_EVENTS);
    lk__cond_init(&events->some);
    lk__cond_init(&events->quiet);
    lk__list_init(&events->queues);
    lk__list_init(&events->spent);
}

void lk__events_destroy(struct lk__events *events)
{
    assert(lk__list_empty(&events->queues) && lk__list_empty(&events->spent));
    pthread_cond_destroy(&events->some);
    pthread_cond_destroy(&events->quiet);
    lk__mu_destroy(&events->mu);
}

/* News of an object. */
struct notice {
    struct lk__news news;
    int kind;
    uint64_t owner;
    char name[];
};

static struct lk_events *queue_of(struct lk__link *link)
{
    return LK__CONTAINER(link, struct lk_events, link);
}

/* --- queues --------------------------------------------------------------------------------------------- */

bool lk__queue_hasnews(const struct lk_events *queue)
{
    return queue->missed > 0 || queue->count > 0;
}

/* Take the oldest place out. NULL: its hold has changed again since, and has a newer place. */
static struct lk__news *pop(struct lk__events *events, struct lk_events *queue)
{
    assert(lk__mu_held(&events->mu));
    struct lk__queued oldest = queue->entries[queue->first];
    queue->first = (queue->first + 1) % LK__QUEUE_MAX;
    queue->count--;
    if (--oldest.news->queued == 0) {
        lk__list_append(&events->spent, &oldest.news->link);
        atomic_fetch_add(&events->spent_count, 1);
    }
    return oldest.number == oldest.news->number ? oldest.news : NULL;
}

static bool is_loss(const struct lk__news *news)
{
    return news != NULL && news->event == LK_EVENT_LOST;
}

static void push(struct lk__events *events, struct lk_events *queue, struct lk__news *news)
{
    assert(lk__mu_held(&events->mu));
    if (queue->count == LK__QUEUE_MAX)
        queue->missed += is_loss(pop(events, queue));
    queue->entries[(queue->first + queue->count++) % LK__QUEUE_MAX] = (struct lk__queued){ news, news->number };
    news->queued++;
    if (queue->handle != 0)
        pthread_cond_signal(&events->some);
    else if (queue->fd >= 0)
        lk__eventfd_set(queue->fd);
}

/* Some queue exists. News that are queued or spent have a reference already. */
static void push_all(struct lk__events *events, struct lk__news *news)
{
    assert(lk__mu_held(&events->mu));
    if (lk__listed(&news->link)) {
        lk__list_remove(&news->link);
        atomic_fetch_sub(&events->spent_count, 1);
    } else if (news->queued == 0 && !news->notice) {
        lk__hold_ref(LK__CONTAINER(news, struct lk__hold, news));
    }
    news->number++;
    news->queued++; /* not spent while older places are given up */
    for (struct lk__link *l = lk__list_first(&events->queues); l != NULL; l = lk__list_next(&events->queues, l))
        push(events, queue_of(l), news);
    news->queued--;
}

void lk__queue_leave(struct lk__events *events, struct lk_events *queue)
{
    assert(lk__mu_held(&events->mu));
    while (queue->count > 0)
        queue->missed += is_loss(pop(events, queue));
    lk__list_remove(&queue->link);
}

static struct lk__news *take_spent(struct lk__events *events)
{
    lk__mu_lock(&events->mu);
    struct lk__link *first = lk__list_first(&events->spent);
    if (first != NULL) {
        lk__list_remove(first);
        atomic_fetch_sub(&events->spent_count, 1);
    }
    lk__mu_unlock(&events->mu);
    return first != NULL ? LK__CONTAINER(first, struct lk__news, link) : NULL;
}

void lk__events_drop(struct lk__events *events)
{
    for (struct lk__news *news; (news = take_spent(events)) != NULL;)
        if (news->notice)
            lk__free(LK__CONTAINER(news, struct notice, news));
        else
            lk__hold_unref(LK__CONTAINER(news, struct lk__hold, news));
}

/* --- telling -------------------------------------------------------------------------------------------- */

void lk__events_notify(void *arg, const struct lk__lease *lease, int type)
{
    struct lk__events *events = arg;
    struct lk__hold *hold = lease->holder;
    if (hold == NULL)
        return;
    if (type == LK_EVENT_LOST && lease->reason < LK__REASONS)
        atomic_fetch_add(&events->stats[hold->kind].losses[lease->reason], 1);
    if (type == LK_EVENT_LOST)
        LK__PROBE3(lost, lease->name, lease->id, lease->reason);
    if (type == LK_EVENT_LONG_HOLD)
        atomic_fetch_add(&events->stats[hold->kind].long_holds, 1);
    lk__mu_lock(&events->mu);
    if (type != LK_EVENT_LONG_HOLD || hold->news.queued == 0) { /* else somebody is still to be told something worse */
        hold->news.event = (unsigned char)type;
        hold->news.reason = (unsigned char)(type == LK_EVENT_LOST ? lease->reason : LK_REASON_NONE);
        if (!lk__list_empty(&events->queues))
            push_all(events, &hold->news);
    }
    lk__mu_unlock(&events->mu);
}

void lk__events_ofobject(struct lk__events *events, int type, int kind, const char *name, uint64_t owner)
{
    size_t size = strlen(name) + 1;
    struct notice *notice = lk__alloc(sizeof *notice + size);
    if (notice == NULL)
        return;
    notice->news.notice = true;
    notice->news.event = (unsigned char)type;
    notice->kind = kind;
    notice->owner = owner;
    memcpy(notice->name, name, size);
    lk__mu_lock(&events->mu);
    bool heard = !lk__list_empty(&events->queues);
    if (heard)
        push_all(events, &notice->news);
    lk__mu_unlock(&events->mu);
    if (!heard)
        lk__free(notice);
    lk__events_makeroom(events);
}

static void describe_notice(lk_event_t *event, const struct notice *notice)
{
    *event = (lk_event_t){ .size = sizeof *event,
                           .type = notice->news.event,
                           .kind = notice->kind,
                           .owner = notice->owner,
                           .count = 1 };
    snprintf(event->name, sizeof event->name, "%s", notice->name);
}

static void describe_hold(lk_event_t *event, const struct lk__hold *hold)
{
    int64_t left_us = atomic_load(&hold->lease.valid_until_us) - lk__now_us();
    *event = (lk_event_t){ .size = sizeof *event,
                           .type = hold->news.event,
                           .reason = hold->news.reason,
                           .kind = hold->kind,
                           .remaining_ms = hold->news.event == LK_EVENT_LOST || left_us < 0 ? 0 : left_us / 1000,
                           .token = hold->token,
                           .owner = hold->lease.owner,
                           .count = 1 };
    snprintf(event->name, sizeof event->name, "%s", hold->lease.name);
}

bool lk__queue_take(struct lk__events *events, struct lk_events *queue, lk_event_t *event)
{
    assert(lk__mu_held(&events->mu));
    struct lk__news *news = NULL;
    if (queue->missed > 0) { /* nothing else is known of them */
        *event = (lk_event_t){ .size = sizeof *event, .type = LK_EVENT_LOST, .count = queue->missed };
        queue->missed = 0;
        return true;
    }
    while (news == NULL && queue->count > 0)
        news = pop(events, queue);
    if (news != NULL && news->notice)
        describe_notice(event, LK__CONTAINER(news, struct notice, news));
    else if (news != NULL)
        describe_hold(event, LK__CONTAINER(news, struct lk__hold, news));
    return news != NULL;
}

/* --- the thread that calls listeners, one after another ---------------------------------------------------- */

/* The queue of a listener that has something to be told, which goes to the end of the line; NULL: none has. */
static struct lk_events *next_listener(struct lk__events *events)
{
    assert(lk__mu_held(&events->mu));
    struct lk__link *l = lk__list_first(&events->queues);
    while (l != NULL && (queue_of(l)->handle == 0 || !lk__queue_hasnews(queue_of(l))))
        l = lk__list_next(&events->queues, l);
    if (l == NULL)
        return NULL;
    lk__list_remove(l);
    lk__list_append(&events->queues, l);
    return queue_of(l);
}

static void returned(struct lk__events *events)
{
    assert(lk__mu_held(&events->mu));
    events->running = 0;
    pthread_cond_broadcast(&events->quiet);
}

static void *run(void *arg);

/* A listener ended the thread. Another one tells what is left; without memory, when a listener is added. */
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
static void call(struct lk__events *events, struct lk_events *queue)
{
    assert(lk__mu_held(&events->mu));
    lk_event_t event;
    lk_listener_t listener = queue->listener;
    void *listener_arg = queue->arg;
    events->running = queue->handle;
    lk__queue_take(events, queue, &event);
    lk__mu_unlock(&events->mu);
    lk__events_makeroom(events);
    pthread_cleanup_push(replace_thread, events);
    listener(&event, listener_arg);
    pthread_cleanup_pop(0);
    lk__mu_lock(&events->mu);
    returned(events);
}

static void *run(void *arg)
{
    struct lk__events *events = arg;
    lk__mu_lock(&events->mu);
    for (;;) {
        struct lk_events *queue = next_listener(events);
        if (queue != NULL)
            call(events, queue);
        else if (events->stopping)
            break; /* not before: a loss is always told */
        else
            lk__cond_wait(&events->some, &events->mu, LK__NEVER);
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

int lk__events_start(struct lk__events *events)
{
    assert(lk__mu_held(&events->mu));
    if (events->started)
        return 0;
    int rc = lk__thread_start(&events->thread, "lk-listener", run, events);
    events->started = rc == 0;
    return rc;
}

/* Queues are their programs', and tell what they know of losses and that the client is closed. */
void lk__events_stop(struct lk__events *events)
{
    struct lk__link *first;
    lk__mu_lock(&events->mu);
    bool started = events->started;
    events->stopping = true;
    pthread_cond_signal(&events->some);
    lk__mu_unlock(&events->mu);
    if (started)
        pthread_join(events->thread, NULL);
    lk__mu_lock(&events->mu);
    events->started = false;
    while ((first = lk__list_first(&events->queues)) != NULL) {
        struct lk_events *queue = queue_of(first);
        lk__queue_leave(events, queue);
        if (queue->handle != 0)
            lk__free(queue);
        else if (queue->fd >= 0)
            lk__eventfd_set(queue->fd);
    }
    lk__mu_unlock(&events->mu);
    lk__events_drop(events);
}
