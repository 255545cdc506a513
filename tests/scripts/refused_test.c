/* SPDX-License-Identifier: MIT */
/*
 * refused_test.c - a request that was refused does not count later: a copy of it that comes when it would be allowed is
 * answered as the first one was, and changes nothing
 *
 * seconds: 1
 */
#include "barrier/scripts.h"
#include "latch/scripts.h"
#include "redis/redis.h"
#include "rights.h"
#include "semaphore/scripts.h"
#include "world.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWNER "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:s1"
#define PARTY "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:0:1"
#define OTHER "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb:0:1"
#define LATER_US "4000000000000000"
#define LATER_MS "4000000000000"
#define NTH "?" /* which request */
#define SLOT OWNER, NTH, LATER_US, "1"

#define LATCH "x", "latchkey:opened:{x}", "latchkey:once:{x}"
#define BARRIER "latchkey:barrier:{x}", "latchkey:parties:{x}", "latchkey:past:{x}", "latchkey:once:{x}"
#define SEM                                                                                                            \
    "x", "latchkey:claims:{x}", "latchkey:queue:sem:{x}", "latchkey:alive:sem:{x}", "latchkey:once:{x}",               \
        "latchkey:total:sem:{x}"
#define PERMITS                                                                                                        \
    "latchkey:permits:{x}", "latchkey:total:{x}", "latchkey:queue:permits:{x}", "latchkey:alive:permits:{x}",          \
        "latchkey:once:{x}"

#define LATCH_FLAGS(flags) "latchkey", flags, SLOT
#define ARRIVE(wanted, flags) wanted, "30000", PARTY, "latchkey:met:{x}", flags, SLOT
#define ROUND(parties, broken)                                                                                         \
    "HSET latchkey:barrier:{x} parties " parties " generation 7 first 5 ended 3 before 1 broken " broken
#define WAITS(party) "ZADD latchkey:parties:{x} " LATER_MS " " party

/* `before` it is refused, `after` it would not be; a number alone, with which request, tells the two apart. */
static const struct row {
    const struct lk__script *script;
    enum lk__verdict refused;
    const char *before, *after;
    const char *keys[8], *args[12];
} rows[] = {
    { &lk__lua_latch_set, LK__PRESENT, "SET x 3", "DEL x", { LATCH }, { "5", "0", LATCH_FLAGS("0") } },
    { &lk__lua_latch_set,
      LK__ABSENT,
      "",
      "SET latchkey:opened:{x} '' PX 50000",
      { LATCH },
      { "5", "0", LATCH_FLAGS("16") } },
    { &lk__lua_latch_countdown, LK__ABSENT, "", "SET x 3", { LATCH }, { "1", LATCH_FLAGS("0") } },
    { &lk__lua_latch_delete, LK__ABSENT, "", "SET x 3", { LATCH }, { LATCH_FLAGS("0") } },

    { &lk__lua_barrier_arrive, LK__GONE, ROUND("2", "left"), ROUND("2", "''"), { BARRIER }, { ARRIVE("2", "0") } },
    { &lk__lua_barrier_arrive,
      LK__PRESENT,
      ROUND("3", "'';") WAITS(OTHER),
      "DEL latchkey:parties:{x}",
      { BARRIER },
      { ARRIVE("2", "0") } },
    { &lk__lua_barrier_arrive, LK__BUSY, ROUND("2", "''"), WAITS(OTHER), { BARRIER }, { ARRIVE("2", "16") } },

    { &lk__lua_semaphore_change,
      LK__PRESENT,
      "SET x 3",
      "DEL x",
      { SEM },
      { "5", "0", "1000", "0", "channel", "512", SLOT } },
    { &lk__lua_semaphore_give,
      LK__IMPOSSIBLE,
      "SET x 2147483647",
      "SET x 3",
      { SEM },
      { "2", "0", "2147483647", "channel", "0", SLOT } },
    { &lk__lua_semaphore_give,
      LK__ABSENT,
      "",
      "SET x 3 PX 50000",
      { SEM },
      { "2", "0", "2147483647", "channel", "32", SLOT } },
    { &lk__lua_semaphore_change,
      LK__PRESENT,
      "SET x 3",
      "SET x 4",
      { SEM },
      { "6", "0", "1000", "4", "channel", "1024", SLOT } },
    { &lk__lua_semaphore_change,
      LK__ABSENT,
      "",
      "SET x 4 PX 50000",
      { SEM },
      { "6", "0", "1000", "4", "channel", "1056", SLOT } },
    { &lk__lua_semaphore_change,
      LK__IMPOSSIBLE,
      "SET x 999",
      "SET x 3",
      { SEM },
      { "2", "0", "1000", "0", "channel", "0", SLOT } },
    { &lk__lua_semaphore_delete, LK__ABSENT, "", "SET x 3", { SEM }, { SLOT } },
    { &lk__lua_semaphore_permit_total,
      LK__PRESENT,
      "SET latchkey:total:{x} 3",
      "DEL latchkey:total:{x}",
      { PERMITS },
      { "2", "0", "1000", "0", "512", SLOT } },
    { &lk__lua_semaphore_permit_total,
      LK__IMPOSSIBLE,
      "SET latchkey:total:{x} 999",
      "SET latchkey:total:{x} 3",
      { PERMITS },
      { "2", "0", "1000", "0", "0", SLOT } },
    { &lk__lua_semaphore_permit_total,
      LK__ABSENT,
      "",
      "SET latchkey:total:{x} 3 PX 50000",
      { PERMITS },
      { "2", "0", "1000", "0", "32", SLOT } },
    { &lk__lua_semaphore_permit_delete, LK__ABSENT, "", "SET latchkey:total:{x} 3", { PERMITS }, { SLOT } },
};

/* Commands that `;` divides; '' is an empty word. */
static void set_up(struct world *w, const char *commands)
{
    char text[512], *save, *more;
    snprintf(text, sizeof text, "%s", commands);
    for (char *line = strtok_r(text, ";", &save); line != NULL; line = strtok_r(NULL, ";", &save)) {
        const char *argv[20];
        int argc = 0;
        for (char *word = strtok_r(line, " ", &more); word != NULL; word = strtok_r(NULL, " ", &more))
            argv[argc++] = strcmp(word, "''") == 0 ? "" : word;
        redisReply *reply = redisCommandArgv(w->redis, argc, argv, NULL);
        assert_non_null(reply);
        if (reply->type == REDIS_REPLY_ERROR)
            fail_msg("%s: %s", commands, reply->str);
        freeReplyObject(reply);
    }
}

/* Run the script with that request's number; returns its verdict. */
static int64_t run(struct world *w, const struct row *row, const char *nth)
{
    char count[8], *text = text_of_script(row->script);
    const char *argv[32] = { "EVAL", text };
    int argc = 3, keys = 0;
    while (keys < 8 && row->keys[keys] != NULL)
        argv[argc++] = row->keys[keys++];
    assert_int_equal(row->script->keys, keys);
    snprintf(count, sizeof count, "%d", keys);
    argv[2] = count;
    for (int i = 0; i < 12 && row->args[i] != NULL; i++)
        argv[argc++] = strcmp(row->args[i], NTH) == 0 ? nth : row->args[i];
    redisReply *reply = redisCommandArgv(w->redis, argc, argv, NULL);
    free(text);
    assert_non_null(reply);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", row->script->name, reply->str);
    int64_t verdict = reply->type == REDIS_REPLY_ARRAY ? reply->element[0]->integer : strtoll(reply->str, NULL, 10);
    freeReplyObject(reply);
    return verdict;
}

/* All that the server knows of the object. */
static void read_all(struct world *w, const struct row *row, char text[512])
{
    text[0] = '\0';
    for (int i = 0; i < row->script->keys; i++)
        if (strcmp(row->keys[i], "latchkey:once:{x}") != 0)
            snprintf(text + strlen(text), 512 - strlen(text), "%s|",
                     world_str(w, "EVAL %s 1 %s",
                               "local t = redis.call('TYPE', KEYS[1]).ok "
                               "return t == 'string' and redis.call('GET', KEYS[1]) or t == 'hash' and "
                               "table.concat(redis.call('HGETALL', KEYS[1]), ' ') or t == 'zset' and "
                               "table.concat(redis.call('ZRANGE', KEYS[1], 0, -1), ' ') or t",
                               row->keys[i]));
}

static void a_refused_request_does_not_count_later(struct world *w)
{
    int failed = 0;
    world_allow(w, "*");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        char before[512], then[512];
        world_redis(w, "FLUSHALL");
        set_up(w, row->before);
        assert_int_equal(row->refused, run(w, row, "1"));
        set_up(w, row->after);
        read_all(w, row, before);
        int64_t again = run(w, row, "1");
        read_all(w, row, then);
        if (again != row->refused || strcmp(before, then) != 0) {
            print_error("row %d, %s: refused with %d, then %d: %s, %s\n", (int)i, row->script->name, (int)row->refused,
                        (int)again, before, then);
            failed++;
            continue;
        }
        assert_int_equal(LK__OVERTAKEN, run(w, row, "0")); /* which is refused for another reason */
        assert_int_equal(LK__DONE, run(w, row, "2"));      /* another request counts */
    }
    assert_int_equal(0, failed);
}

int main(void)
{
    return world_run(a_refused_request_does_not_count_later);
}
