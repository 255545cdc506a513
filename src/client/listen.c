/* SPDX-License-Identifier: MIT */
/* listen.c - the public calls for events: listeners, and queues to be read */
#include "client/client.h"

static struct lk_events *queue_of(struct lk__link *link)
{
    return LK__CONTAINER(link, struct lk_events, link);
}

static struct lk_events *new_queue(const char *what)
{
    struct lk_events *queue = lk__alloc(sizeof *queue);
    if (queue == NULL)
        lk__fail(ENOMEM, "out of memory for %s", what);
    else
        queue->fd = -1;
    return queue;
}

/* --- listeners ------------------------------------------------------------------------------------------ */

static int add_listener(struct lk__events *events, lk_listener_t listener, void *arg, uint64_t *handle)
{
    struct lk_events *queue = new_queue("a listener");
    if (queue == NULL)
        return ENOMEM;
    queue->listener = listener;
    queue->arg = arg;
    lk__mu_lock(&events->mu);
    int rc = lk__events_start(events);
    if (rc == 0) {
        queue->handle = ++events->handles;
        if (handle != NULL)
            *handle = queue->handle;
        lk__list_append(&events->queues, &queue->link);
    }
    lk__mu_unlock(&events->mu);
    if (rc != 0)
        lk__free(queue);
    return rc;
}

int lk_client_addlistener(lk_client_t *client, lk_listener_t listener, void *arg, uint64_t *handle)
{
    if (listener == NULL)
        return lk__fail(EINVAL, "lk_client_addlistener: no function was given");
    struct lk__apistate api = lk__api_enter();
    int rc = lk__client_enter(client);
    if (rc == 0) {
        rc = add_listener(&client->events, listener, arg, handle);
        lk__client_leave(client);
    }
    return lk__api_leave(&api, rc);
}

static struct lk_events *find(struct lk__events *events, uint64_t handle)
{
    assert(lk__mu_held(&events->mu));
    struct lk__link *l = handle != 0 ? lk__list_first(&events->queues) : NULL;
    while (l != NULL && queue_of(l)->handle != handle)
        l = lk__list_next(&events->queues, l);
    return l != NULL ? queue_of(l) : NULL;
}

/*
 * The caller may free the listener's memory next, or unload its code. So it waits until the listener is not running; but
 * not on the thread that calls it, because that is the listener itself, or one that was called instead of it.
 */
static int remove_listener(struct lk__events *events, uint64_t handle)
{
    const bool here = lk__events_ishere(events);
    lk__mu_lock(&events->mu);
    struct lk_events *queue = find(events, handle);
    if (queue != NULL)
        lk__queue_leave(events, queue);
    while (handle != 0 && events->running == handle && !here)
        lk__cond_wait(&events->quiet, &events->mu, LK__NEVER);
    lk__mu_unlock(&events->mu);
    lk__events_makeroom(events);
    if (queue == NULL)
        return lk__fail(ENOENT, "there is no listener of this handle, or it was removed");
    lk__free(queue);
    return 0;
}

/* A listener that runs while its client is being closed may be removed, as the close waits for it. */
static bool is_listening(lk_client_t *client)
{
    return client != NULL && client->process == lk__process() && lk__events_ishere(&client->events);
}

int lk_client_removelistener(lk_client_t *client, uint64_t handle)
{
    struct lk__apistate api = lk__api_enter();
    bool here = is_listening(client);
    int rc = here ? 0 : lk__client_enter(client);
    if (rc == 0) {
        rc = remove_listener(&client->events, handle);
        if (!here)
            lk__client_leave(client);
    }
    return lk__api_leave(&api, rc);
}

/* --- queues that a program reads ---------------------------------------------------------------------------- */

int lk_events_open(lk_client_t *client, lk_events_t **queue)
{
    if (queue == NULL)
        return lk__fail(EINVAL, "lk_events_open: nowhere to put the queue");
    struct lk__apistate api = lk__api_enter();
    int rc = lk__client_enter(client);
    if (rc != 0)
        return lk__api_leave(&api, rc);
    struct lk_events *fresh = new_queue("a queue of events");
    if (fresh != NULL) {
        fresh->client = client;
        atomic_fetch_add(&client->refs, 1);
        lk__mu_lock(&client->events.mu);
        lk__list_append(&client->events.queues, &fresh->link);
        lk__mu_unlock(&client->events.mu);
        *queue = fresh;
    }
    lk__client_leave(client);
    return lk__api_leave(&api, fresh != NULL ? 0 : ENOMEM);
}

int lk_events_fd(lk_events_t *queue, int *fd)
{
    if (queue == NULL || fd == NULL)
        return lk__fail(EINVAL, "lk_events_fd: no queue, or nowhere to put the descriptor");
    struct lk__apistate api = lk__api_enter();
    struct lk__events *events = &queue->client->events;
    int rc = lk__client_enter(queue->client);
    if (rc != 0)
        return lk__api_leave(&api, rc);
    lk__mu_lock(&events->mu);
    if (queue->fd < 0)
        queue->fd = lk__eventfd_open();
    if (queue->fd < 0)
        rc = lk__fail(ENOMEM, "no descriptor left for events");
    else if (lk__queue_hasnews(queue))
        lk__eventfd_set(queue->fd);
    if (rc == 0)
        *fd = queue->fd;
    lk__mu_unlock(&events->mu);
    lk__client_leave(queue->client);
    return lk__api_leave(&api, rc);
}

/*
 * EAGAIN without an error text, as it is no failure. The client's close leaves to the queue how many losses were not
 * fetched; while it is under way there may be something yet.
 */
static int read_queue(struct lk_events *queue, lk_event_t *event)
{
    struct lk__events *events = &queue->client->events;
    bool entered = lk__client_enter(queue->client) == 0;
    if (!entered && queue->client->process != lk__process())
        return ECANCELED;
    lk__mu_lock(&events->mu);
    bool open = lk__listed(&queue->link), found = entered == open && lk__queue_take(events, queue, event);
    if (open && queue->fd >= 0 && !lk__queue_hasnews(queue))
        lk__eventfd_clear(queue->fd);
    lk__mu_unlock(&events->mu);
    if (entered) {
        lk__events_makeroom(events);
        lk__client_leave(queue->client);
    }
    return found ? 0 : open ? EAGAIN : ECANCELED;
}

int lk_events_next(lk_events_t *queue, lk_event_t *event)
{
    lk_event_t found;
    if (queue == NULL)
        return lk__fail(EINVAL, "lk_events_next: no queue was given");
    struct lk__apistate api = lk__api_enter();
    int rc = lk__sized_check(event, LK__THROUGH(lk_event_t, name), "lk_event_t");
    if (rc == 0)
        rc = read_queue(queue, &found);
    if (rc == 0)
        lk__sized_write(event, &found, sizeof found);
    return lk__api_leave(&api, rc);
}

/* Its client may be closing: then the last part of the close drops what is spent. */
static void close_queue(struct lk_events *queue)
{
    lk_client_t *client = queue->client;
    if (client->process != lk__process())
        return; /* a fork's child: the parent's locks and lists may be in any state */
    bool entered = lk__client_tryenter(client);
    lk__mu_lock(&client->events.mu);
    if (lk__listed(&queue->link))
        lk__queue_leave(&client->events, queue);
    lk__mu_unlock(&client->events.mu);
    if (entered) {
        lk__events_makeroom(&client->events);
        lk__client_leave(client);
    }
    if (queue->fd >= 0)
        lk__fd_close(queue->fd);
    lk__free(queue);
    lk__client_unref(client);
}

int lk_events_close(lk_events_t *queue)
{
    struct lk__apistate api = lk__api_enter();
    if (queue != NULL)
        close_queue(queue);
    return lk__api_leave(&api, 0);
}
