/* SPDX-License-Identifier: MIT */
/*
 * places_test.c - what readers of the protocol found: late copies, a clock that went back, a turn of Java's
 *
 * Each row is a state that a real sequence of requests leads to, one script, and what has to be so then.
 *
 * seconds: 2
 */
#include "lock/scripts.h"
#include "rights.h"
#include "world.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define A_CLIENT "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B_CLIENT "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define C_CLIENT "cccccccccccccccccccccccccccccccc"
#define A A_CLIENT ":1:1"
#define B B_CLIENT ":1:1" /* it receives messages */
#define C C_CLIENT ":1:1" /* it does not */
#define LATER_US "4000000000000000"
#define LATER_MS "4000000000000"
#define LIVES LATER_MS " 5000 3000 0"
#define TERMS "5000 3000 0"
#define CHANNEL "redisson_lock__channel:{x}"
#define QUEUE "latchkey:queue:mutex:{x}"
#define ALIVE "latchkey:alive:mutex:{x}"
#define TOKEN "redisson_lock_token:{x}"
#define SHARED "128"
#define AGAIN "2"
#define KEEP_US "3900000000000000"

/* Run a script of a mutex called x with these arguments. */
static void run(struct world *w, const struct lk__script *script, const char *const *args)
{
    char *text = text_of_script(script);
    const char *argv[20] = { "EVAL", text, "5", "x", TOKEN, QUEUE, ALIVE, "latchkey:robust:mutex:{x}" };
    int argc = 8;
    while (*args != NULL)
        argv[argc++] = *args++;
    redisReply *reply = redisCommandArgv(w->redis, argc, argv, NULL);
    free(text);
    assert_non_null(reply);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", script->name, reply->str);
    freeReplyObject(reply);
}

static void ask(struct world *w, const char *flags, const char *arrival)
{
    run(w, &lk__lua_lock_acquire, (const char *const[]){ "30000", flags, A, LATER_US, TERMS, arrival, "1", NULL });
}

static void release(struct world *w, const char *flags, const char *keep_us)
{
    run(w, &lk__lua_lock_release, (const char *const[]){ CHANNEL, flags, A, keep_us, "1", NULL });
}

static void held_by(struct world *w, const char *id)
{
    if (w->allowed_count == 0)
        world_allow(w, "*");
    world_redis(w, "FLUSHALL");
    world_redis(w, "HSET x %s 1", id);
    world_redis(w, "PEXPIRE x 50000");
    world_redis(w, "SET %s 7 EX 86400", TOKEN);
}

static void queued(struct world *w, const char *id, const char *client, int arrival)
{
    world_redis(w, "ZADD %s %d %s", QUEUE, arrival, id);
    world_redis(w, "PEXPIRE %s 50000", QUEUE);
    world_redis(w, "HSET %s %s %s", ALIVE, client, LIVES);
    world_redis(w, "PEXPIRE %s 50000", ALIVE);
}

static bool holds(struct world *w, const char *id)
{
    return world_int(w, "HEXISTS x %s", id) == 1;
}

/* It was dropped, a late copy of its first ask came, and then it asks with the number that it knew. */
static void who_brings_its_number_stands_where_it_stood(struct world *w)
{
    held_by(w, C);
    queued(w, B, B_CLIENT, 120);
    queued(w, A, A_CLIENT, 150);
    ask(w, "0", "100");
    assert_int_equal(0, world_int(w, "ZRANK %s %s", QUEUE, A));
    ask(w, "0", "130"); /* a copy that knew nothing better changes nothing */
    assert_int_equal(0, world_int(w, "ZRANK %s %s", QUEUE, A));
}

/* The hold survived the token, which an operator deleted, say: who finds its hold gets one that counts. */
static void a_lost_token_is_issued_anew(struct world *w)
{
    held_by(w, A);
    world_redis(w, "DEL %s", TOKEN);
    ask(w, AGAIN, "0");
    assert_int_equal(1, world_int(w, "EXISTS %s", TOKEN));
    assert_that(holds(w, A));
}

/* The server's clock went back by an hour during Java's turn. */
static void a_turn_does_not_last_an_hour(struct world *w)
{
    held_by(w, B);
    world_redis(w, "DEL x");
    world_redis(w, "HSET %s java %s", ALIVE, LATER_MS " 0 0 0");
    ask(w, SHARED, "0");
    assert_that(holds(w, A));
}

/* A late copy of the holder's first ask took a place. What is kept after the release is told the next one. */
static void a_place_of_its_own_goes_with_what_is_kept(struct world *w)
{
    held_by(w, A);
    queued(w, A, A_CLIENT, 1);
    queued(w, B, B_CLIENT, 2);
    release(w, "0", KEEP_US);
    assert_int_equal(1, world_int(w, "ZCARD %s", QUEUE));
    assert_int_equal(0, world_int(w, "ZRANK %s %s", QUEUE, B));
}

/* One release in sixteen is Java's. The first waiter died: the next one has the mutex, or is told when to ask. */
static void a_turn_of_javas_leaves_nobody_asleep(struct world *w)
{
    enum { RELEASES = 300 };
    redisContext *java = redisConnectUnix(w->socket), *ears = redisConnectUnix(w->socket);
    freeReplyObject(redisCommand(java, "SUBSCRIBE %s", CHANNEL));
    freeReplyObject(redisCommand(ears, "SUBSCRIBE latchkey:client:%s", B_CLIENT));
    redisSetTimeout(ears, (struct timeval){ 20, 0 });
    for (int i = 0; i < RELEASES; i++) {
        redisReply *heard;
        held_by(w, A);
        queued(w, C, C_CLIENT, 1);
        queued(w, B, B_CLIENT, 2);
        release(w, SHARED, "0");
        assert_int_equal(REDIS_OK, redisGetReply(ears, (void **)&heard));
        freeReplyObject(heard);
        assert_that(holds(w, B) || world_int(w, "EXISTS x") == 0);
    }
    redisFree(java);
    redisFree(ears);
}

/* Nobody knows the client of the one who waits any more. Whatever is written of Java's turn gets an end. */
static void a_turn_of_javas_has_an_end(struct world *w)
{
    redisContext *java = redisConnectUnix(w->socket);
    freeReplyObject(redisCommand(java, "SUBSCRIBE %s", CHANNEL));
    for (int i = 0; i < 100; i++) {
        held_by(w, A);
        world_redis(w, "ZADD %s 1 %s", QUEUE, B);
        world_redis(w, "PEXPIRE %s 50000", QUEUE);
        release(w, SHARED, "0");
        assert_int_not_equal(-1, world_int(w, "PTTL %s", ALIVE));
    }
    redisFree(java);
}

int main(void)
{
    return world_run(who_brings_its_number_stands_where_it_stood, a_lost_token_is_issued_anew, a_turn_does_not_last_an_hour,
                     a_place_of_its_own_goes_with_what_is_kept, a_turn_of_javas_leaves_nobody_asleep,
                     a_turn_of_javas_has_an_end);
}
