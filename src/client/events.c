/* SPDX-License-Identifier: MIT */
/*
 * events.c - events of holds and objects: who is told what
 *
 * Guards: events->mu the news and who is told them. Taken under dog->mu, so it is held for moments only.
 *
 * What is to be told of a hold lies in it, so that telling allocates nothing, however many are told. All news are one
 * list, oldest first, and each audience has its place there; news leave the list when all were told. A hold that changes
 * again goes to the end, so a slow audience is told its last state. What is told of an object is a notice of its own.
 *
 * The hard case: an audience that does not read. Its news keep their holds in memory. From a number on, each new hold
 * drops the oldest news. An audience that was not told them yet is told how many losses were among them, so the losses
 * that it hears of are as many as there were.
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
    lk__list_init(&events->news);
    lk__list_init(&events->audiences);
}

void lk__events_destroy(struct lk__events *events)
{
    assert(lk__list_empty(&events->news) && lk__list_empty(&events->audiences));
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

static struct lk__news *news_of(struct lk__link *link)
{
    return LK__CONTAINER(link, struct lk__news, link);
}

void lk__news_drop(struct lk__news *news)
{
    if (news != NULL && news->notice)
        lk__free(LK__CONTAINER(news, struct notice, news));
    else if (news != NULL)
        lk__hold_unref(LK__CONTAINER(news, struct lk__hold, news));
}

static struct lk__audience *audience_of(struct lk__link *link)
{
    return LK__CONTAINER(link, struct lk__audience, link);
}

bool lk__audience_hasnews(const struct lk__events *events, const struct lk__audience *audience)
{
    return audience->missed > 0 || audience->next != &events->news;
}

/* --- the list of news ---------------------------------------------------------------------------------------- */

/* Whoever would have been told this next is told what is behind it. */
static void pass(struct lk__events *events, struct lk__link *news, bool loss)
{
    for (struct lk__link *l = lk__list_first(&events->audiences); l != NULL; l = lk__list_next(&events->audiences, l)) {
        struct lk__audience *audience = audience_of(l);
        if (audience->next != news)
            continue;
        audience->next = news->next;
        audience->missed += loss;
    }
}

/* Put news at the end; all are told. News that were on the list already have their reference. */
static void append(struct lk__events *events, struct lk__news *news)
{
    if (lk__listed(&news->link)) {
        pass(events, &news->link, false);
        lk__list_remove(&news->link);
    } else {
        atomic_fetch_add(&events->news_count, 1);
    }
    lk__list_append(&events->news, &news->link);
    news->number = ++events->numbers;
    news->untold = events->audience_count;
}

/* The news are the caller's to drop. */
static struct lk__news *take_off(struct lk__events *events, struct lk__news *news)
{
    lk__list_remove(&news->link);
    atomic_fetch_sub(&events->news_count, 1);
    return news;
}

/* One audience less is to be told. Returns the news if it was the last one, as take_off() does, or NULL. */
static struct lk__news *told(struct lk__events *events, struct lk__news *news)
{
    return --news->untold == 0 ? take_off(events, news) : NULL;
}

static void wake(struct lk__events *events, const struct lk__audience *audience)
{
    if (audience->handle != 0)
        pthread_cond_signal(&events->some);
    else if (audience->fd >= 0)
        lk__eventfd_set(audience->fd);
}

/* There is an audience. */
static void spread(struct lk__events *events, struct lk__news *news)
{
    assert(lk__mu_held(&events->mu));
    append(events, news);
    for (struct lk__link *l = lk__list_first(&events->audiences); l != NULL; l = lk__list_next(&events->audiences, l)) {
        struct lk__audience *audience = audience_of(l);
        if (audience->next == &events->news)
            audience->next = &news->link;
        wake(events, audience);
    }
}

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
    if (type == LK_EVENT_LONG_HOLD && lk__listed(&hold->news.link)) {
        lk__mu_unlock(&events->mu); /* somebody is still to be told something worse */
        return;
    }
    hold->news.event = (unsigned char)type;
    hold->news.reason = (unsigned char)(type == LK_EVENT_LOST ? lease->reason : LK_REASON_NONE);
    if (events->audience_count > 0 && !lk__listed(&hold->news.link))
        lk__hold_ref(hold);
    if (events->audience_count > 0)
        spread(events, &hold->news);
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
    bool heard = events->audience_count > 0;
    if (heard)
        spread(events, &notice->news);
    lk__mu_unlock(&events->mu);
    if (!heard)
        lk__free(notice);
}

void lk__events_trim(struct lk__events *events)
{
    bool more = true;
    while (more) {
        struct lk__news *dropped = NULL;
        lk__mu_lock(&events->mu);
        if (atomic_load(&events->news_count) > LK__NEWS_MAX) {
            dropped = news_of(lk__list_first(&events->news));
            pass(events, &dropped->link, dropped->event == LK_EVENT_LOST);
            take_off(events, dropped);
        }
        lk__mu_unlock(&events->mu);
        lk__news_drop(dropped);
        more = dropped != NULL;
    }
}

/* --- audiences ------------------------------------------------------------------------------------------------ */

void lk__events_join(struct lk__events *events, struct lk__audience *audience)
{
    assert(lk__mu_held(&events->mu));
    audience->next = &events->news;
    lk__list_append(&events->audiences, &audience->link);
    events->audience_count++;
}

unsigned long long lk__events_leave(struct lk__events *events, struct lk__audience *audience)
{
    assert(lk__mu_held(&events->mu));
    uint64_t last = events->numbers;
    unsigned long long losses = 0;
    lk_event_t event;
    struct lk__news *over;
    events->audience_count--; /* so what comes from now on is not for it */
    while (audience->next != &events->news && news_of(audience->next)->number <= last) {
        lk__audience_tell(events, audience, &event, &over);
        losses += event.type == LK_EVENT_LOST ? event.count : 0;
        lk__mu_unlock(&events->mu);
        lk__news_drop(over);
        lk__mu_lock(&events->mu);
    }
    lk__list_remove(&audience->link);
    return losses + audience->missed;
}

/* So many losses whose news were dropped: nothing else is known of them. */
static void describe_missed(lk_event_t *event, unsigned long long count)
{
    *event = (lk_event_t){ .size = sizeof *event, .type = LK_EVENT_LOST, .count = count };
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

static void describe(lk_event_t *event, const struct lk__news *news)
{
    if (news->notice)
        describe_notice(event, LK__CONTAINER(news, struct notice, news));
    else
        describe_hold(event, LK__CONTAINER(news, struct lk__hold, news));
}

bool lk__audience_tell(struct lk__events *events, struct lk__audience *audience, lk_event_t *event,
                       struct lk__news **over)
{
    assert(lk__mu_held(&events->mu));
    *over = NULL;
    if (audience->missed > 0) {
        describe_missed(event, audience->missed);
        audience->missed = 0;
    } else if (audience->next != &events->news) {
        struct lk__news *news = news_of(audience->next);
        describe(event, news);
        audience->next = audience->next->next;
        *over = told(events, news);
    } else {
        return false;
    }
    return true;
}
