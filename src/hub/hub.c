/* SPDX-License-Identifier: MIT */
/*
 * hub.c - one subscription connection and the thread that reads it
 *
 * Guards: hub->mu the ears and the lists. Order: after an object's mu, before the connection's and a
 * parker's. Ears are called under it, so that lk__hub_unlisten() can promise that none is called after.
 *
 * The hard case: silence. A dead peer of a subscription looks like a channel on which nothing happens;
 * so the thread pings, often while somebody waits, and ends a connection that does not answer.
 */
#include "hub/hub.h"

#include <hiredis/hiredis.h>
#include <string.h>
#include <unistd.h>

enum { IDLE_PING_MS = 10000 };

/* A channel that nobody hears any more. */
struct farewell {
    struct lk__link link;
    char channel[];
};

static struct lk__ear *ear_of(struct lk__hub *hub, const char *channel)
{
    struct lk__entry *entry = lk__map_find(&hub->ears, 0, channel, strlen(channel));
    return entry == NULL ? NULL : LK__CONTAINER(entry, struct lk__ear, entry);
}

/* --- sending: on the hub's thread -------------------------------------------------------------------------- */

static int post(struct lk__hub *hub, int argc, const char *const words[])
{
    const char *argv[2] = { words[0], argc > 1 ? words[1] : NULL };
    char *bytes = NULL;
    int length = redisFormatCommandArgv(&bytes, argc, argv, NULL);
    if (length < 0)
        return ENOMEM;
    int rc = lk__conn_post(&hub->conn, bytes, (size_t)length);
    redisFreeCommand(bytes);
    return rc;
}

struct asking {
    struct lk__hub *hub;
    int rc;
};

/* Under hub->mu. What cannot be sent now is sent when the connection is back. */
static void ask(struct lk__entry *entry, void *arg)
{
    struct asking *asking = arg;
    struct lk__ear *ear = LK__CONTAINER(entry, struct lk__ear, entry);
    if (ear->state != LK__EAR_NEW || asking->rc != 0)
        return;
    asking->rc = post(asking->hub, 2, (const char *const[]){ "SUBSCRIBE", entry->key });
    if (asking->rc == 0) {
        ear->state = LK__EAR_ASKED;
        lk__list_append(&asking->hub->asked, &ear->order);
    }
}

static void forget(struct lk__entry *entry, void *arg)
{
    struct lk__ear *ear = LK__CONTAINER(entry, struct lk__ear, entry);
    (void)arg;
    lk__list_remove(&ear->order);
    ear->state = LK__EAR_NEW;
}

/* Under hub->mu: the server forgot our subscriptions with the connection. */
static void reconnected(struct lk__hub *hub)
{
    struct lk__link *link;
    lk__map_each(&hub->ears, forget, NULL);
    while ((link = lk__list_first(&hub->leaving)) != NULL) {
        lk__list_remove(link);
        lk__release(LK__CONTAINER(link, struct farewell, link));
    }
    hub->heard_us = lk__now_us();
    hub->pinged_us = 0;
}

/* Under hub->mu. */
static void say_what_is_new(struct lk__hub *hub)
{
    struct lk__link *link;
    while ((link = lk__list_first(&hub->leaving)) != NULL) {
        struct farewell *farewell = LK__CONTAINER(link, struct farewell, link);
        if (ear_of(hub, farewell->channel) == NULL &&
            post(hub, 2, (const char *const[]){ "UNSUBSCRIBE", farewell->channel }) != 0)
            break;
        lk__list_remove(link);
        lk__release(farewell);
    }
    struct asking asking = { hub, 0 };
    lk__map_each(&hub->ears, ask, &asking);
}

/* When to ping next, or to give the connection up; does what is due. */
static int64_t watch_silence(struct lk__hub *hub)
{
    const struct lk__options *options = hub->options;
    int64_t now_us = lk__now_us(), command_us = options->command_timeout_ms * 1000;
    int64_t idle_us = (atomic_load(&hub->waiters) > 0 ? options->poll_ms : IDLE_PING_MS) * 1000;
    if (!lk__conn_isup(&hub->conn))
        return LK__NEVER;
    if (hub->pinged_us > hub->heard_us) {
        if (now_us < hub->pinged_us + command_us)
            return hub->pinged_us + command_us;
        lk__conn_reset(&hub->conn, "the subscription connection did not answer a ping");
        return LK__NEVER;
    }
    if (now_us < hub->heard_us + idle_us)
        return hub->heard_us + idle_us;
    hub->pinged_us = now_us;
    post(hub, 1, (const char *const[]){ "PING" });
    return now_us + command_us;
}

/* --- hearing: on the hub's thread ----------------------------------------------------------------------------- */

/* Under hub->mu: the answer to the oldest subscription that has none. */
static void settle(struct lk__hub *hub, bool permitted)
{
    struct lk__link *oldest = lk__list_first(&hub->asked);
    if (oldest == NULL)
        return;
    struct lk__ear *ear = LK__CONTAINER(oldest, struct lk__ear, order);
    lk__list_remove(oldest);
    ear->state = permitted ? LK__EAR_OPEN : LK__EAR_DEAF;
    ear->heard(ear, NULL);
}

static void on_message(void *arg, const struct lk__reply *reply)
{
    struct lk__hub *hub = arg;
    const char *word = lk__reply_text(reply, 0), *refused = NULL;
    hub->heard_us = lk__now_us();
    pthread_mutex_lock(&hub->mu);
    if (reply->type == LK__ERROR) {
        if (!lk__list_empty(&hub->asked))
            refused = word;
        settle(hub, false);
    } else if (strcmp(word, "subscribe") == 0) {
        settle(hub, true);
    } else if (strcmp(word, "message") == 0) {
        struct lk__ear *ear = ear_of(hub, lk__reply_text(reply, 1));
        atomic_fetch_add(&hub->messages, 1);
        if (ear != NULL)
            ear->heard(ear, lk__reply_text(reply, 2));
    }
    pthread_mutex_unlock(&hub->mu);
    if (refused != NULL)
        lk__log(LK_LOG_WARNING, "the server refuses a subscription, waiters poll instead: %s", refused);
}

static void *run(void *arg)
{
    struct lk__hub *hub = arg;
    for (;;) {
        pthread_mutex_lock(&hub->mu);
        bool stopping = hub->stopping;
        if (atomic_load(&hub->conn.connects) != hub->connects) {
            hub->connects = atomic_load(&hub->conn.connects);
            reconnected(hub);
        }
        if (!stopping)
            say_what_is_new(hub);
        pthread_mutex_unlock(&hub->mu);
        if (stopping)
            return NULL;
        int64_t until_us = watch_silence(hub);
        struct pollfd extra = { hub->wake_fd, POLLIN, 0 };
        lk__conn_serve(&hub->conn, &extra, 1, until_us);
        if (extra.revents != 0)
            lk__eventfd_clear(hub->wake_fd);
    }
}

/* --- life ----------------------------------------------------------------------------------------------------------- */

int lk__hub_init(struct lk__hub *hub, struct lk__connector *connector)
{
    *hub = (struct lk__hub){ .options = &connector->options };
    hub->wake_fd = lk__eventfd_open();
    if (hub->wake_fd < 0)
        return lk__fail(ENOMEM, "no descriptor left for a client");
    int rc = lk__conn_init(&hub->conn, connector, "subscription");
    if (rc != 0) {
        lk__fd_close(hub->wake_fd);
        return rc;
    }
    hub->conn.owner_fd = hub->wake_fd;
    hub->conn.message = on_message;
    hub->conn.arg = hub;
    pthread_mutex_init(&hub->mu, NULL);
    lk__list_init(&hub->asked);
    lk__list_init(&hub->leaving);
    return 0;
}

void lk__hub_stop(struct lk__hub *hub)
{
    pthread_mutex_lock(&hub->mu);
    bool started = hub->started;
    hub->stopping = true;
    pthread_mutex_unlock(&hub->mu);
    lk__eventfd_set(hub->wake_fd);
    if (started)
        pthread_join(hub->thread, NULL);
    lk__conn_close(&hub->conn);
    reconnected(hub); /* drops the farewells */
}

void lk__hub_destroy(struct lk__hub *hub)
{
    lk__conn_destroy(&hub->conn);
    lk__map_free(&hub->ears);
    pthread_mutex_destroy(&hub->mu);
    lk__fd_close(hub->wake_fd);
}

/* Under hub->mu. */
static int start(struct lk__hub *hub)
{
    if (hub->started || hub->stopping)
        return 0;
    int rc = lk__thread_start(&hub->thread, "lk-hub", run, hub);
    if (rc != 0)
        return rc;
    hub->started = true;
    lk__conn_want(&hub->conn);
    return 0;
}

int lk__hub_listen(struct lk__hub *hub, struct lk__ear *ear)
{
    pthread_mutex_lock(&hub->mu);
    int rc = start(hub);
    if (rc == 0) {
        assert(ear_of(hub, ear->entry.key) == NULL);
        ear->state = LK__EAR_NEW;
        lk__map_insert(&hub->ears, &ear->entry);
        lk__eventfd_set(hub->wake_fd);
    }
    pthread_mutex_unlock(&hub->mu);
    return rc;
}

void lk__hub_unlisten(struct lk__hub *hub, struct lk__ear *ear)
{
    size_t length = strlen(ear->entry.key);
    struct farewell *farewell = lk__alloc(sizeof *farewell + length + 1);
    pthread_mutex_lock(&hub->mu);
    lk__map_remove(&hub->ears, &ear->entry);
    if (lk__listed(&ear->order)) { /* its confirmation will come: end the count anew rather than mistake it */
        lk__list_remove(&ear->order);
        lk__conn_reset(&hub->conn, "a subscription was withdrawn while it was being made");
    } else if (farewell != NULL && !hub->stopping) { /* without memory it is heard in vain until the next connection */
        memcpy(farewell->channel, ear->entry.key, length + 1);
        lk__list_append(&hub->leaving, &farewell->link);
        farewell = NULL;
        lk__eventfd_set(hub->wake_fd);
    }
    pthread_mutex_unlock(&hub->mu);
    lk__release(farewell);
}

bool lk__hub_isdeaf(struct lk__hub *hub, struct lk__ear *ear)
{
    pthread_mutex_lock(&hub->mu);
    bool deaf = ear->state == LK__EAR_DEAF;
    pthread_mutex_unlock(&hub->mu);
    return deaf;
}
