/* SPDX-License-Identifier: MIT */
/* listen.c - the public calls for events: listeners, and queues to be read */
#include "client/client.h"

/* --- listeners ------------------------------------------------------------------------------------------------- */

int lk_client_addlistener(lk_client_t *client, lk_listener_t listener, void *arg, uint64_t *handle)
{
    if (listener == NULL)
        return lk__fail(EINVAL, "lk_client_addlistener: no function was given");
    struct lk__apistate api = lk__api_enter();
    int rc = lk__client_enter(client);
    if (rc == 0) {
        rc = lk__events_addlistener(&client->events, listener, arg, handle);
        lk__client_leave(client);
    }
    return lk__api_leave(&api, rc);
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
        rc = lk__events_removelistener(&client->events, handle);
        if (!here)
            lk__client_leave(client);
    }
    return lk__api_leave(&api, rc);
}

/* --- queues ---------------------------------------------------------------------------------------------------- */

struct lk_events {
    struct lk__audience audience;
    lk_client_t *client; /* with a reference */
};

static void join(lk_client_t *client, struct lk_events *queue)
{
    *queue = (struct lk_events){ .audience.fd = -1, .client = client };
    atomic_fetch_add(&client->refs, 1);
    lk__mu_lock(&client->events.mu);
    lk__events_join(&client->events, &queue->audience);
    lk__mu_unlock(&client->events.mu);
}

static int open_queue(lk_client_t *client, lk_events_t **opened)
{
    int rc = lk__client_enter(client);
    if (rc != 0)
        return rc;
    struct lk_events *queue = lk__alloc(sizeof *queue);
    if (queue != NULL) {
        join(client, queue);
        *opened = queue;
    } else {
        rc = lk__fail(ENOMEM, "out of memory for a queue of events");
    }
    lk__client_leave(client);
    return rc;
}

int lk_events_open(lk_client_t *client, lk_events_t **queue)
{
    if (queue == NULL)
        return lk__fail(EINVAL, "lk_events_open: nowhere to put the queue");
    struct lk__apistate api = lk__api_enter();
    return lk__api_leave(&api, open_queue(client, queue));
}

/* Under events->mu: the descriptor of a queue, which is readable if there is something to read. */
static int descriptor_of(const struct lk__events *events, struct lk__audience *audience)
{
    assert(lk__mu_held(&events->mu));
    if (audience->fd < 0)
        audience->fd = lk__eventfd_open();
    if (audience->fd >= 0 && lk__audience_hasnews(events, audience))
        lk__eventfd_set(audience->fd);
    return audience->fd;
}

static int find_descriptor(struct lk_events *queue, int *fd)
{
    struct lk__events *events = &queue->client->events;
    int rc = lk__client_enter(queue->client);
    if (rc != 0)
        return rc;
    lk__mu_lock(&events->mu);
    int found = descriptor_of(events, &queue->audience);
    lk__mu_unlock(&events->mu);
    lk__client_leave(queue->client);
    if (found < 0)
        return lk__fail(ENOMEM, "no descriptor left for events");
    *fd = found;
    return 0;
}

int lk_events_fd(lk_events_t *queue, int *fd)
{
    if (queue == NULL || fd == NULL)
        return lk__fail(EINVAL, "lk_events_fd: no queue, or nowhere to put the descriptor");
    struct lk__apistate api = lk__api_enter();
    return lk__api_leave(&api, find_descriptor(queue, fd));
}

/* The client's close leaves to the queue how many losses were not fetched. Until then there may be something yet. */
static int read_closed(struct lk_events *queue, lk_event_t *event)
{
    struct lk__events *events = &queue->client->events;
    struct lk__news *none;
    if (queue->client->process != lk__process())
        return ECANCELED;
    lk__mu_lock(&events->mu);
    int rc = lk__listed(&queue->audience.link)                           ? EAGAIN
             : lk__audience_tell(events, &queue->audience, event, &none) ? 0
                                                                         : ECANCELED;
    lk__mu_unlock(&events->mu);
    return rc;
}

/* EAGAIN without an error text, as it is no failure. */
static int read_queue(struct lk_events *queue, lk_event_t *event)
{
    struct lk__events *events = &queue->client->events;
    struct lk__audience *audience = &queue->audience;
    struct lk__news *over;
    if (lk__client_enter(queue->client) != 0)
        return read_closed(queue, event);
    lk__mu_lock(&events->mu);
    bool found = lk__audience_tell(events, audience, event, &over);
    if (audience->fd >= 0 && !lk__audience_hasnews(events, audience))
        lk__eventfd_clear(audience->fd);
    lk__mu_unlock(&events->mu);
    lk__news_drop(over);
    lk__client_leave(queue->client);
    return found ? 0 : EAGAIN;
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

/*
 * Its client may be closing. The last part of a close has all queues leave, and frees what their holds belong to: a queue
 * leaves by itself only until that begins. A close that was EBUSY does not come so far, and may be the last one.
 */
static void leave(lk_client_t *client, struct lk__audience *audience)
{
    struct lk__events *events = &client->events;
    bool entered = lk__client_tryenter(client), here = is_listening(client);
    lk__mu_lock(&events->mu);
    if (entered || here || !events->stopping) {
        events->leaving++;
        lk__events_leave(events, audience);
        events->leaving--;
        pthread_cond_broadcast(&events->quiet);
    }
    while (lk__listed(&audience->link))
        lk__cond_wait(&events->quiet, &events->mu, LK__NEVER);
    lk__mu_unlock(&events->mu);
    if (entered)
        lk__client_leave(client);
}

static void close_queue(struct lk_events *queue)
{
    lk_client_t *client = queue->client;
    if (client->process != lk__process())
        return; /* a fork's child: the parent's locks and lists may be in any state */
    leave(client, &queue->audience);
    if (queue->audience.fd >= 0)
        lk__fd_close(queue->audience.fd);
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
