/* SPDX-License-Identifier: MIT */
#include "rival.h"

#include "redisson.h"
#include "subject.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "contended"

/* --- the library ---------------------------------------------------------------------------------------------- */

struct ours {
    lk_client_t *client;
    struct subject subject;
};

static void *ours_join(const struct place *place, const char *more, const char *kind, const char *name)
{
    struct ours *ours = calloc(1, sizeof *ours);
    char url[sizeof place->url + 32];
    snprintf(url, sizeof url, "%s%s", place->url, more);
    if (lk_client_open(&ours->client, url) != 0)
        fail(url);
    subject_init(&ours->subject, subject_kind(kind), ours->client, name);
    return ours;
}

static void *mutex_join(const struct place *place, int number)
{
    (void)number;
    return ours_join(place, "", "pair", NAME "-mutex");
}

static void *fair_join(const struct place *place, int number)
{
    (void)number;
    return ours_join(place, "", "fair", NAME "-fair");
}

static void *mixed_join(const struct place *place, int number)
{
    (void)number;
    return ours_join(place, "&redisson=yes", "pair", NAME "-mixed");
}

static void ours_lock(void *state)
{
    struct ours *ours = state;
    if (ours->subject.kind->take(&ours->subject) != 0)
        fail("lock");
}

static void ours_unlock(void *state)
{
    struct ours *ours = state;
    if (ours->subject.kind->give(&ours->subject) != 0)
        fail("unlock");
}

static void ours_leave(void *state)
{
    struct ours *ours = state;
    subject_destroy(&ours->subject);
    if (lk_client_close(ours->client) != 0)
        fail("close");
    free(ours);
}

/* --- a bare queue: one connection, on which grants come as push messages of RESP3 -------------------------------- */

static const char queue_ask[] = "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then\n"
                                "  return 1\n"
                                "end\n"
                                "redis.call('RPUSH', KEYS[2], ARGV[1])\n"
                                "return 0\n";
static const char queue_hand[] = "local next = redis.call('LPOP', KEYS[2])\n"
                                 "if not next then\n"
                                 "  return redis.call('DEL', KEYS[1])\n"
                                 "end\n"
                                 "redis.call('PUBLISH', next, 'yours')\n"
                                 "redis.call('SET', KEYS[1], next, 'PX', ARGV[1])\n"
                                 "return 1\n";

struct queue {
    struct wire *wire;
    char ask[41], hand[41], self[32];
};

static void *queue_join(const struct place *place, int number)
{
    struct queue *queue = calloc(1, sizeof *queue);
    queue->wire = wire_open(place->address);
    wire_ask(queue->wire, WORDS("HELLO", "3"));
    wire_load(queue->wire, queue_ask, queue->ask);
    wire_load(queue->wire, queue_hand, queue->hand);
    snprintf(queue->self, sizeof queue->self, NAME "-waiter-%d", number);
    wire_ask(queue->wire, WORDS("SUBSCRIBE", queue->self));
    return queue;
}

static void queue_lock(void *state)
{
    struct queue *queue = state;
    struct wire_reply reply =
        wire_ask(queue->wire, WORDS("EVALSHA", queue->ask, "2", NAME "-string", NAME "-list", queue->self, "30000"));
    if (reply_number(reply) == 0)
        wire_read(queue->wire); /* the grant */
}

static void queue_unlock(void *state)
{
    struct queue *queue = state;
    wire_ask(queue->wire, WORDS("EVALSHA", queue->hand, "2", NAME "-string", NAME "-list", "30000"));
}

static void queue_leave(void *state)
{
    struct queue *queue = state;
    wire_close(queue->wire);
    free(queue);
}

/* --- Redisson's protocol ----------------------------------------------------------------------------------------- */

/* Kinder than Redisson, which subscribes and unsubscribes around each wait. */
struct java {
    struct wire *wire, *listening;
    struct redisson lock;
};

static void *java_join(const struct place *place, int number)
{
    struct java *java = calloc(1, sizeof *java);
    java->wire = wire_open(place->address);
    java->listening = wire_open(place->address);
    redisson_init(&java->lock, java->wire, NAME "-java", number);
    wire_ask(java->listening, WORDS("SUBSCRIBE", java->lock.channel));
    return java;
}

static void java_lock(void *state)
{
    struct java *java = state;
    struct pollfd message = { .fd = wire_fd(java->listening), .events = POLLIN };
    wire_drain(java->listening);
    while (true) {
        struct wire_out *out = wire_scratch(java->wire);
        redisson_put_take(&java->lock, out);
        wire_send(java->wire, out);
        struct wire_reply reply = wire_read(java->wire);
        if (reply_is_nil(reply))
            return;
        if (!wire_pending(java->listening) && poll(&message, 1, (int)reply_number(reply)) == 0)
            continue; /* the lease should have ended */
        wire_read(java->listening);
    }
}

static void java_unlock(void *state)
{
    struct java *java = state;
    struct wire_out *out = wire_scratch(java->wire);
    redisson_put_give(&java->lock, out);
    wire_send(java->wire, out);
    wire_read(java->wire);
    out = wire_scratch(java->wire);
    redisson_put_forget(&java->lock, out); /* Redisson does not wait for this answer either */
    wire_send(java->wire, out);
    wire_read(java->wire);
}

static void java_leave(void *state)
{
    struct java *java = state;
    wire_close(java->wire);
    wire_close(java->listening);
    free(java);
}

/* --- a token in a list --------------------------------------------------------------------------------------------- */

static void token_prepare(struct wire *wire)
{
    wire_ask(wire, WORDS("DEL", NAME "-token"));
    wire_ask(wire, WORDS("RPUSH", NAME "-token", "token"));
}

static void *token_join(const struct place *place, int number)
{
    (void)number;
    return wire_open(place->address);
}

static void token_lock(void *state)
{
    wire_ask(state, WORDS("BLPOP", NAME "-token", "0"));
}

static void token_unlock(void *state)
{
    wire_ask(state, WORDS("RPUSH", NAME "-token", "token"));
}

static void token_leave(void *state)
{
    wire_close(state);
}

const struct rival rivals[] = {
    { "latchkey", false, NULL, mutex_join, ours_lock, ours_unlock, ours_leave },
    { "fair", false, NULL, fair_join, ours_lock, ours_unlock, ours_leave },
    { "mixed", false, NULL, mixed_join, ours_lock, ours_unlock, ours_leave },
    { "queue", true, NULL, queue_join, queue_lock, queue_unlock, queue_leave },
    { "redisson", true, NULL, java_join, java_lock, java_unlock, java_leave },
    { "blpop", true, token_prepare, token_join, token_lock, token_unlock, token_leave },
    { NULL, false, NULL, NULL, NULL, NULL, NULL },
};

const struct rival *rival(const char *name)
{
    for (const struct rival *found = rivals; found->name != NULL; found++)
        if (strcmp(found->name, name) == 0)
            return found;
    fail(name);
    return NULL;
}
