/* SPDX-License-Identifier: MIT */
/*
 * listener.c - the thread that calls a client's listeners, one after another
 *
 * Guards: events->mu which listeners there are, and which one is being called. A listener runs without any lock.
 *
 * The hard case: whoever removes a listener may free its memory next, or unload its code, and so waits until it is not
 * running; but not on the thread that calls it, as that is the listener itself, or one that was called instead of it.
 * The thread works with copies, and a handle is never given out twice, so nothing of a removed listener is needed.
 */
#include "client/events.h"

static struct lk__audience *audience_of(struct lk__link *link)
{
    return LK__CONTAINER(link, struct lk__audience, link);
}

/* A listener that has something to be told, which goes to the end of the line; NULL: none has. */
static struct lk__audience *next_listener(struct lk__events *events)
{
    assert(lk__mu_held(&events->mu));
    struct lk__link *l = lk__list_first(&events->audiences);
    while (l != NULL && (audience_of(l)->handle == 0 || !lk__audience_hasnews(events, audience_of(l))))
        l = lk__list_next(&events->audiences, l);
    if (l == NULL)
        return NULL;
    lk__list_remove(l);
    lk__list_append(&events->audiences, l);
    return audience_of(l);
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
static void call(struct lk__events *events, struct lk__audience *audience)
{
    assert(lk__mu_held(&events->mu));
    lk_event_t event;
    struct lk__news *over;
    lk_listener_t listener = audience->listener;
    void *listener_arg = audience->arg;
    events->running = audience->handle;
    lk__audience_tell(events, audience, &event, &over);
    lk__mu_unlock(&events->mu);
    lk__news_drop(over);
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
        struct lk__audience *audience = next_listener(events);
        if (audience != NULL)
            call(events, audience);
        else if (events->stopping)
            break; /* not before: a loss is always told */
        else
            lk__cond_wait(&events->some, &events->mu, LK__NEVER);
    }
    lk__mu_unlock(&events->mu);
    return NULL;
}

static bool is_here(const struct lk__events *events)
{
    assert(lk__mu_held(&events->mu));
    return events->started && pthread_equal(events->thread, pthread_self());
}

bool lk__events_ishere(struct lk__events *events)
{
    lk__mu_lock(&events->mu);
    bool here = is_here(events);
    lk__mu_unlock(&events->mu);
    return here;
}

static int start(struct lk__events *events)
{
    assert(lk__mu_held(&events->mu));
    if (events->started)
        return 0;
    int rc = lk__thread_start(&events->thread, "lk-listener", run, events);
    events->started = rc == 0;
    return rc;
}

int lk__events_addlistener(struct lk__events *events, lk_listener_t listener, void *arg, uint64_t *handle)
{
    struct lk__audience *fresh = lk__alloc(sizeof *fresh);
    if (fresh == NULL)
        return lk__fail(ENOMEM, "out of memory for a listener");
    fresh->listener = listener;
    fresh->arg = arg;
    fresh->fd = -1;
    lk__mu_lock(&events->mu);
    int rc = start(events);
    if (rc == 0) {
        fresh->handle = ++events->handles;
        if (handle != NULL)
            *handle = fresh->handle;
        lk__events_join(events, fresh);
    }
    lk__mu_unlock(&events->mu);
    if (rc != 0)
        lk__free(fresh);
    return rc;
}

static struct lk__audience *find(struct lk__events *events, uint64_t handle)
{
    assert(lk__mu_held(&events->mu));
    struct lk__link *l = lk__list_first(&events->audiences);
    while (l != NULL && audience_of(l)->handle != handle)
        l = lk__list_next(&events->audiences, l);
    return l != NULL ? audience_of(l) : NULL;
}

int lk__events_removelistener(struct lk__events *events, uint64_t handle)
{
    lk__mu_lock(&events->mu);
    struct lk__audience *audience = handle != 0 ? find(events, handle) : NULL;
    if (audience != NULL) {
        audience->handle = 0; /* nobody else finds it, and it is not called any more */
        lk__events_leave(events, audience);
    }
    while (handle != 0 && events->running == handle && !is_here(events))
        lk__cond_wait(&events->quiet, &events->mu, LK__NEVER);
    lk__mu_unlock(&events->mu);
    if (audience == NULL)
        return lk__fail(ENOENT, "there is no listener of this handle, or it was removed");
    lk__free(audience);
    return 0;
}

/* Queues are their programs', and tell what they know of losses and that the client is closed. */
static void leave_all(struct lk__events *events)
{
    assert(lk__mu_held(&events->mu));
    struct lk__link *first;
    while ((first = lk__list_first(&events->audiences)) != NULL) {
        struct lk__audience *audience = audience_of(first);
        audience->missed = lk__events_leave(events, audience);
        if (audience->handle != 0)
            lk__free(audience);
        else if (audience->fd >= 0)
            lk__eventfd_set(audience->fd);
    }
    pthread_cond_broadcast(&events->quiet);
}

void lk__events_stop(struct lk__events *events)
{
    lk__mu_lock(&events->mu);
    bool started = events->started;
    events->stopping = true;
    pthread_cond_signal(&events->some);
    lk__mu_unlock(&events->mu);
    if (started)
        pthread_join(events->thread, NULL);
    lk__mu_lock(&events->mu);
    events->started = false;
    while (events->leaving > 0)
        lk__cond_wait(&events->quiet, &events->mu, LK__NEVER);
    leave_all(events);
    lk__mu_unlock(&events->mu);
}
