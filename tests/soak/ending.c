/* SPDX-License-Identifier: MIT */
/*
 * ending.c - what the server has when everybody has gone
 */
#include "driver.h"

#include <hiredis/hiredis.h>
#include <string.h>

#define SETTLE_MS 21000           /* what ends with a lease, or is given back late, is gone by then */
#define QUEUE_MS (60 * 60 * 1000) /* so long the places of the dead may stay that nobody meets */
#define CLAIM_MS 3500             /* what was granted to somebody who never confirmed comes back after this */

/*
 * docs/keys.md: these stay for a time after use, claims of the dead until somebody uses that semaphore again. These
 * stay for good: numbers of semaphores, which are looked at by value, counts of latches that did not open, what is
 * done, the mark of a robust mutex that nobody repaired, and tokens where some clients say redisson=yes.
 */
static bool is_documented(struct world *world, const char *key)
{
    static const char *const timed[] = { "latchkey:once:",   "latchkey:opened:",   "latchkey:permits:",
                                         "latchkey:claims:", "latchkey:settings:", "latchkey:barrier:",
                                         "latchkey:parties:", "latchkey:past:",    "latchkey:who:" };
    static const char *const lasting[] = { "soak:counting:",
                                           "soak:latch:",
                                           "latchkey:total:",
                                           "latchkey:robust:mutex:{soak:robust:",
                                           "redisson_lock_token:",
                                           "latchkey:done:{soak:once:" };
    int64_t ttl_ms = world_pttl(world, key); /* -2: it has just gone */
    if (strncmp(key, "latchkey:queue:", 15) == 0 || strncmp(key, "latchkey:alive:", 15) == 0)
        return ttl_ms != -1 && ttl_ms <= QUEUE_MS;
    for (size_t i = 0; i < sizeof timed / sizeof *timed; i++)
        if (strncmp(key, timed[i], strlen(timed[i])) == 0)
            return ttl_ms != -1;
    for (size_t i = 0; i < sizeof lasting / sizeof *lasting; i++)
        if (strncmp(key, lasting[i], strlen(lasting[i])) == 0)
            return true;
    return false;
}

static void write_left(struct tape *tape, const char *what)
{
    uint32_t object = 0, instance = 0;
    object_named(what, &object, &instance);
    fprintf(stderr, "left at the end: %s\n", what);
    tape_end(tape_begin(tape, OP_LEFT, object, instance), EEXIST);
}

/* Keys that should not be there; with a tape, they are written down. */
static int look_at_keys(struct world *world, struct tape *tape)
{
    redisContext *redis = redisConnectUnix(world->socket);
    redisReply *keys = redisCommand(redis, "KEYS *");
    int left = 0;
    assert_that(keys != NULL && keys->type == REDIS_REPLY_ARRAY);
    for (size_t i = 0; i < keys->elements; i++) {
        if (is_documented(world, keys->element[i]->str))
            continue;
        left++;
        if (tape != NULL)
            write_left(tape, keys->element[i]->str);
    }
    freeReplyObject(keys);
    redisFree(redis);
    return left;
}

/* Free permits, with those that were only claimed by somebody who died. */
static void write_value(struct world *world, struct tape *tape, lk_client_t *client, uint32_t object, uint32_t instance)
{
    char name[64];
    lk_sem_t sem;
    lk_semattr_t attr = LK_SEMATTR_INIT;
    lk_seminfo_t info = LK_SEMINFO_INIT;
    attr.leased = kind_of(object) == LEASED;
    object_name(name, sizeof name, object, instance);
    if (attr.leased ? world_int(world, "EXISTS latchkey:total:{%s}", name) != 1 : !world_exists(world, name))
        return;
    assert_lk(0, lk_sem_init(&sem, client, name, permits_of(object), &attr));
    assert_lk(0, lk_sem_info(&sem, &info));
    assert_lk(0, lk_sem_destroy(&sem));
    struct record *record = tape_begin(tape, OP_VALUE, object, instance);
    record->token = (uint64_t)info.available;
    tape_end(record, 0);
}

void look_at_what_is_left(struct world *world, const struct table *table, struct tape *tape)
{
    sleep_ms(table->lease_ms + table->command_ms > CLAIM_MS ? table->lease_ms + table->command_ms : CLAIM_MS);
    for (int64_t until_ms = now_ms() + SETTLE_MS; look_at_keys(world, NULL) > 0 && now_ms() < until_ms;)
        sleep_ms(200);
    look_at_keys(world, tape);
    if (world_elements(world, "PUBSUB CHANNELS latchkey:*") != 0)
        write_left(tape, "a channel of the library");
    lk_client_t *client = world_open(world, "");
    for (unsigned index = 0; index < HOT + (unsigned)(PROCESSES_MAX / 2 * table->threads); index++) {
        write_value(world, tape, client, object_of(LEASED, index), 0);
        for (uint32_t epoch = 0; epoch <= table->epoch; epoch++)
            write_value(world, tape, client, object_of(COUNTING, index), epoch);
    }
    assert_lk(0, lk_client_close(client));
}
