/* SPDX-License-Identifier: MIT */
/*
 * commands.c - what a test asks its server: see world.h
 */
#include "world_parts.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* Texts are handed out from a ring, so that tests need not free them. */
char *world_keep(const char *text, size_t length)
{
    static char *ring[8];
    static unsigned next;
    char *kept = realloc(ring[next % 8], length + 1);
    assert_that(kept != NULL);
    memcpy(kept, text, length);
    kept[length] = 0;
    ring[next++ % 8] = kept;
    return kept;
}

static redisContext *connect_to(struct world *w)
{
    struct timeval patience = { 30, 0 }; /* a server may pause in a storm of the simulation */
    redisContext *context = redisConnectUnixWithTimeout(w->socket, patience);
    if (context == NULL || context->err != 0)
        assert_failed(__FILE__, __LINE__, "the test cannot reach its server");
    fcntl(context->fd, F_SETFD, FD_CLOEXEC);
    redisSetTimeout(context, patience);
    return context;
}

/* Has the server ended this connection? (hiredis would find out by SIGPIPE.) */
static bool was_cut(const redisContext *context)
{
    char byte;
    return context->err != 0 || recv(context->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* The connection of this process, made anew after a restart of the server or a fork. */
static redisContext *redis_of(struct world *w)
{
    if (w->redis != NULL && (w->redis_of != getpid() || was_cut(w->redis))) {
        redisFree(w->redis); /* in a child: closes its copy of the descriptor */
        w->redis = NULL;
    }
    if (w->redis == NULL)
        w->redis = connect_to(w);
    w->redis_of = getpid();
    return w->redis;
}

static redisReply *command(struct world *w, const char *format, va_list args)
{
    redisReply *reply = redisvCommand(redis_of(w), format, args);
    if (reply == NULL)
        assert_failed(__FILE__, __LINE__, "%s: the server did not answer: %s", format, w->redis->errstr);
    if (reply->type == REDIS_REPLY_ERROR)
        assert_failed(__FILE__, __LINE__, "%s: %s", format, reply->str);
    return reply;
}

redisReply *world_reply(struct world *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = command(w, format, args);
    va_end(args);
    return reply;
}

void world_redis(struct world *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    freeReplyObject(command(w, format, args));
    va_end(args);
}

int64_t world_int(struct world *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = command(w, format, args);
    va_end(args);
    int64_t value = reply->type == REDIS_REPLY_INTEGER ? reply->integer
                    : reply->type == REDIS_REPLY_NIL   ? -1
                                                       : strtoll(reply->str, NULL, 10);
    freeReplyObject(reply);
    return value;
}

const char *world_str(struct world *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = command(w, format, args);
    va_end(args);
    const char *text = reply->str != NULL ? world_keep(reply->str, reply->len) : world_keep("", 0);
    freeReplyObject(reply);
    return text;
}

int64_t world_elements(struct world *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = command(w, format, args);
    va_end(args);
    int64_t count = (int64_t)reply->elements;
    freeReplyObject(reply);
    return count;
}

int64_t world_lasting(struct world *w)
{
    return world_int(w, "EVAL %s 0",
                     "local n = 0 for _, key in ipairs(redis.call('KEYS', '*')) do "
                     "if redis.call('PTTL', key) == -1 then n = n + 1 end end return n");
}

/* The elements of an array of texts but those that begin with `without` (NULL: all), divided by blanks. */
static const char *joined(const redisReply *reply, const char *without)
{
    char text[4096] = "";
    size_t length = 0;
    for (size_t i = 0; i < reply->elements && length < sizeof text; i++)
        if (without == NULL || strncmp(reply->element[i]->str, without, strlen(without)) != 0)
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", length > 0 ? " " : "",
                                       reply->element[i]->str);
    return world_keep(text, strlen(text));
}

int64_t world_leaseleft(struct world *w, const char *name)
{
    return world_int(w, "EVAL %s 3 %s latchkey:rw:{%s} latchkey:permits:{%s}",
                     "local time, left = redis.call('TIME'), math.max(0, redis.call('PTTL', KEYS[1])) "
                     "for i = 2, 3 do "
                     "  local last = redis.call('ZRANGE', KEYS[i], -1, -1, 'WITHSCORES')[2] "
                     "  if last then left = math.max(left, last - time[1] * 1000 - math.floor(time[2] / 1000)) end "
                     "end return left",
                     name, name, name);
}

int64_t world_pttl(struct world *w, const char *name)
{
    return world_int(w, "PTTL %s", name);
}

bool world_exists(struct world *w, const char *key)
{
    return world_int(w, "EXISTS %s", key) == 1;
}

bool world_listening(struct world *w, const char *object)
{
    return world_int(w, "EVAL %s 1 latchkey:alive:%s", WORLD_DEAF, object) == 0;
}

int64_t world_queued(struct world *w, const char *name)
{
    return world_int(w, "ZCARD latchkey:queue:mutex:{%s}", name);
}

const char *alive_of(const char *queue)
{
    return strcmp(queue, "readers") == 0 || strcmp(queue, "writers") == 0 ? "rw" : queue;
}

int64_t world_rwqueued(struct world *w, const char *name)
{
    return world_int(w, "ZCARD latchkey:queue:readers:{%s}", name) + world_int(w, "ZCARD latchkey:queue:writers:{%s}", name);
}

int64_t world_semqueued(struct world *w, const char *name)
{
    return world_int(w, "ZCARD latchkey:queue:sem:{%s}", name) +
           world_int(w, "ZCARD latchkey:queue:permits:{%s}", name);
}

int64_t world_condqueued(struct world *w, const char *name)
{
    return world_int(w, "ZCARD latchkey:queue:cond:{%s}", name);
}

int64_t world_rwholds(struct world *w, const char *name)
{
    return world_int(w, "ZCARD latchkey:rw:{%s}", name);
}

const char *world_owner(struct world *w, const char *name)
{
    redisReply *fields = world_reply(w, "HKEYS %s", name);
    const char *owner = joined(fields, NULL);
    freeReplyObject(fields);
    return owner;
}

int64_t world_holds(struct world *w, const char *name)
{
    redisReply *values = world_reply(w, "HVALS %s", name);
    int64_t holds = values->elements > 0 ? strtoll(values->element[0]->str, NULL, 10) : -1;
    freeReplyObject(values);
    return holds;
}

const char *world_keys(struct world *w)
{
    redisReply *keys = world_reply(w, "KEYS *");
    const char *text = joined(keys, "latchkey:who:");
    freeReplyObject(keys);
    return text;
}

int64_t world_counter(struct world *w, const char *field)
{
    char line[80];
    const char *info = world_str(w, "INFO everything"), *found;
    snprintf(line, sizeof line, "\n%s:", field);
    found = strstr(info, line);
    return found != NULL ? strtoll(found + strlen(line), NULL, 10) : -1;
}

int64_t world_commands(struct world *w, const char *command_name)
{
    char line[80];
    const char *info = world_str(w, "INFO commandstats"), *found;
    snprintf(line, sizeof line, "cmdstat_%s:calls=", command_name);
    found = strstr(info, line);
    return found != NULL ? strtoll(found + strlen(line), NULL, 10) : 0;
}

void world_subscribe(struct world *w, const char *channel)
{
    if (w->ears != NULL)
        redisFree(w->ears);
    w->ears = connect_to(w);
    redisReply *reply = redisCommand(w->ears, "SUBSCRIBE %s", channel);
    assert_that(reply != NULL && reply->type == REDIS_REPLY_ARRAY);
    freeReplyObject(reply);
}

const char *world_message(struct world *w, int64_t ms)
{
    int64_t until_ms = now_ms() + ms;
    redisReply *reply = NULL;
    const char *text;
    for (;;) {
        assert_that(redisGetReplyFromReader(w->ears, (void **)&reply) == REDIS_OK);
        if (reply != NULL)
            break;
        struct pollfd wait = { .fd = w->ears->fd, .events = POLLIN };
        int64_t left_ms = until_ms - now_ms();
        if (left_ms < 0 || poll(&wait, 1, (int)left_ms) == 0)
            return NULL;
        assert_that(redisBufferRead(w->ears) == REDIS_OK);
    }
    assert_that(reply->type == REDIS_REPLY_ARRAY && reply->elements == 3);
    text = world_keep(reply->element[2]->str, reply->element[2]->len);
    freeReplyObject(reply);
    return text;
}

int library_clients(const char *list)
{
    int count = 0;
    for (const char *at = list; (at = strstr(at, "name=latchkey")) != NULL; at++)
        count++;
    return count;
}

void world_killcommands(struct world *w)
{
    world_redis(w, "CLIENT KILL TYPE normal SKIPME yes");
}

void world_killsubscriptions(struct world *w)
{
    world_redis(w, "CLIENT KILL TYPE pubsub");
}
