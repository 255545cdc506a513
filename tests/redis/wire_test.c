/* SPDX-License-Identifier: MIT */
/*
 * wire_test.c - a call of a script has the bytes that hiredis would format, whatever it is called with
 *
 * The tables that the build makes are made by hand here, so that every kind of argument is among them.
 *
 * labels: memory
 */
#include "assert_lk.h"
#include "lock/scripts.h"
#include "redis/redis.h"
#include "rights.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct keys {
    const char *unused, *first, *second;
};

struct args {
    int64_t number;
    const char *text;
    unsigned flags;
    const char *other;
};

enum { MINE = 8 | 32, SENT = LK__SENT_AGAIN };

static const unsigned short key_at[] = { offsetof(struct keys, second), offsetof(struct keys, first) };
static const struct lk__argument arguments[] = {
    { LK__ARG_TEXT, offsetof(struct args, text) },
    { LK__ARG_NUMBER, offsetof(struct args, number) },
    { LK__ARG_FLAGS, offsetof(struct args, flags) },
    { LK__ARG_TEXT, offsetof(struct args, other) },
    { LK__ARG_SENT_TEXT, offsetof(struct lk__sent, id) },
    { LK__ARG_SENT_NUMBER, offsetof(struct lk__sent, deadline_us) },
    { LK__ARG_SENT_FLAGS, 0 },
    { LK__ARG_REQUEST, 0 },
};
static const struct lk__shape shapes[] = { { LK__DONE, "n?nt" }, { LK__GONE, "" }, { LK__QUEUED, "nt*" } };

static const char *const sources[LK__PUBSUB_KINDS] = { "local PUBLISH = 'PUBLISH'\nfirst\nsecond\n",
                                                       "local PUBLISH = 'SPUBLISH'\nfirst\nsecond\n" };
static const char *const pieces[] = { "first\n", "second\n", NULL };
static const struct lk__script script = {
    .name = "test/any",
    .pieces = pieces,
    .length = 13,
    .publishes = true,
    .sha1 = { "da39a3ee5e6b4b0d3255bfef95601890afd80709", "2fd4e1c67a2d28fced849ee1bb76e7391b93eb12" },
    .keys = 2,
    .key_at = key_at,
    .args = arguments,
    .arg_count = sizeof arguments / sizeof *arguments,
    .takes_settings = true,
    .flags = MINE,
    .sent_flags = SENT,
    .shapes = shapes,
    .shape_count = sizeof shapes / sizeof *shapes,
};

/* xorshift64* */
static uint64_t drawn(uint64_t bound)
{
    static uint64_t seed = 42;
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;
    return seed * 0x2545f4914f6cdd1dULL % bound;
}

static int64_t any_number(void)
{
    static const int64_t edges[] = { 0, 1, -1, 9, 10, 99, 100, INT64_MAX, INT64_MIN, 1754000000123456 };
    if (drawn(2) == 0)
        return edges[drawn(sizeof edges / sizeof *edges)];
    return (int64_t)(drawn(UINT64_MAX) >> drawn(63)) * (drawn(4) == 0 ? -1 : 1);
}

/* Of any bytes but NUL; lengths around those where one more digit says them are the most likely. */
static const char *any_text(char *text, size_t size)
{
    static const size_t lengths[] = { 0, 1, 9, 10, 36, 99, 100, 999, 1000 };
    size_t length = drawn(2) == 0 ? lengths[drawn(sizeof lengths / sizeof *lengths)] : drawn(size);
    for (size_t i = 0; i < length; i++)
        text[i] = (char)(drawn(8) == 0 ? "\r\n$*\xff"[drawn(5)] : 'a' + (char)drawn(26));
    text[length] = '\0';
    return text;
}

static const char *printed(char *text, int64_t number)
{
    sprintf(text, "%" PRId64, number);
    return text;
}

static void expect(const struct keys *keys, const struct args *args, const struct lk__sent *sent, int64_t request,
                   bool as_text)
{
    struct lk__script called = script;
    enum lk__pubsub_kind pubsub = (enum lk__pubsub_kind)drawn(LK__PUBSUB_KINDS);
    called.arg_count -= (int)drawn(5); /* more than nine words, or not */
    const struct lk__command command = { .script = &called, .keys = keys, .args = args };
    const struct lk__settingsmark *mark = sent->settings;
    char numbers[5][24], *bytes;
    const char *words[] = { as_text ? "EVAL" : "EVALSHA",
                            as_text ? sources[pubsub] : script.sha1[pubsub],
                            mark != NULL ? "3" : "2",
                            keys->second,
                            keys->first,
                            args->text,
                            printed(numbers[0], args->number),
                            printed(numbers[1], (args->flags & MINE) | (sent->flags & SENT)),
                            args->other,
                            sent->id,
                            printed(numbers[2], sent->deadline_us),
                            printed(numbers[3], sent->flags & SENT),
                            printed(numbers[4], request) };
    const char *argv[24];
    int argc = 0, plain = 5 + called.arg_count;
    for (int i = 0; i < plain; i++) {
        if (i == 5 && mark != NULL)
            argv[argc++] = mark->key;
        argv[argc++] = words[i];
    }
    if (mark != NULL)
        argv[argc++] = mark->mine;
    if (mark != NULL && mark->replace)
        argv[argc++] = "1";
    int length = redisFormatCommandArgv(&bytes, argc, argv, NULL);
    struct lk__wire wire;
    lk__wire_make(&wire, &command, pubsub, sent, request, as_text);
    assert_int_equal(length, wire.size);
    char *written = calloc(1, wire.size);
    lk__wire_write(&wire, written);
    assert_memory_equal(bytes, written, wire.size);
    free(written);
    redisFreeCommand(bytes);
    size_t key_length;
    assert_string_equal(keys->second, lk__command_key(&command, &key_length));
    assert_int_equal(strlen(keys->second), key_length);
}

static void a_call_has_the_bytes_of_hiredis(void)
{
    static char texts[7][1024];
    for (int i = 0; i < 20000; i++) {
        struct keys keys = { .first = any_text(texts[0], 1024), .second = any_text(texts[1], 1024) };
        struct args args = { .number = any_number(),
                             .text = any_text(texts[2], 1024),
                             .flags = (unsigned)drawn(64),
                             .other = any_text(texts[3], 1024) };
        const struct lk__settingsmark mark = { any_text(texts[5], 1024), any_text(texts[6], 1024), drawn(2) == 0 };
        struct lk__sent sent = { .settings = drawn(2) == 0 ? &mark : NULL,
                                 .id = any_text(texts[4], 1024),
                                 .deadline_us = any_number(),
                                 .flags = (unsigned)drawn(8) };
        expect(&keys, &args, &sent, any_number(), i % 2 == 0);
    }
}

enum { MANY = LK__BATCH_MAX + 10 };

static struct lk__items items;
static struct lk__lock_keys item_keys[MANY];
static struct lk__lock_renew_args item_args[MANY];
static char item_texts[MANY][3][1024];

static const char *any_text_below(char *text, size_t size)
{
    any_text(text, 1024);
    if (strlen(text) >= size)
        text[drawn(size)] = '\0';
    return text;
}

/* As many calls as fit in, of `count`. */
static void fill_items(int count, size_t name)
{
    items.count = 0;
    for (int i = 0; i < count; i++) {
        item_keys[i].mutex = any_text_below(item_texts[i][0], name);
        item_args[i].channel = any_text_below(item_texts[i][1], name);
        const struct lk__item item = { .keys = &item_keys[i],
                                       .args = &item_args[i],
                                       .id = any_text_below(item_texts[i][2], name),
                                       .lease_ms = any_number() };
        if (!lk__items_add(&items, &lk__lua_lock_renew, &item))
            break;
    }
}

static void expect_batch(bool as_text)
{
    const struct lk__script *batch = &lk__lua_lock_renew_batch;
    const struct lk__command command = { .script = &lk__lua_lock_renew };
    const struct lk__sent sent = { .deadline_us = any_number(), .items = &items };
    const char *argv[5 + 4 * LK__BATCH_MAX];
    char numbers[3 + LK__BATCH_MAX][24], *bytes;
    int64_t request = any_number();
    int argc = 0;
    argv[argc++] = as_text ? "EVAL" : "EVALSHA";
    char *text = text_of_script(batch);
    argv[argc++] = as_text ? text : batch->sha1[LK__PUBSUB_PLAIN];
    argv[argc++] = printed(numbers[0], items.count);
    for (unsigned i = 0; i < items.count; i++)
        argv[argc++] = item_keys[i].mutex;
    argv[argc++] = printed(numbers[1], sent.deadline_us);
    argv[argc++] = printed(numbers[2], request);
    for (unsigned i = 0; i < items.count; i++) {
        argv[argc++] = item_args[i].channel;
        argv[argc++] = items.each[i].id;
        argv[argc++] = printed(numbers[3 + i], items.each[i].lease_ms);
    }
    int length = redisFormatCommandArgv(&bytes, argc, argv, NULL);
    free(text);
    struct lk__wire wire;
    lk__wire_make(&wire, &command, LK__PUBSUB_PLAIN, &sent, request, as_text);
    assert_int_equal(length, wire.size);
    assert_true(wire.size <= LK__COMMAND_MAX);
    char *written = calloc(1, wire.size);
    lk__wire_write(&wire, written);
    assert_memory_equal(bytes, written, wire.size);
    free(written);
    redisFreeCommand(bytes);
}

/* Keys first, what is said once for all, then what each call has of its own. */
static void so_has_a_batch(void)
{
    unsigned most = 0;
    for (int i = 0; i < 500; i++) {
        int count = 2 + (int)drawn(MANY - 2);
        fill_items(count, i % 4 == 0 ? 1024 : 40);
        assert_between(items.count, 2, count < LK__BATCH_MAX ? count : LK__BATCH_MAX);
        most = items.count > most ? items.count : most;
        expect_batch(i % 2 == 0);
    }
    assert_int_equal(LK__BATCH_MAX, most);
}

/* --- answers ------------------------------------------------------------------------------------------------- */

#define US 1754000000123456

/* Of elements written as "n" for an integer, "t" for a text. */
static struct lk__reply *answer_of(int64_t verdict, int64_t server_us, const char *elements)
{
    static struct lk__reply reply;
    static struct lk__value values[LK__REPLY_MAX];
    static char nothing[1];
    lk__reply_in(&reply, values, LK__REPLY_MAX, nothing, sizeof nothing);
    reply.type = LK__ARRAY;
    reply.count = 3 + (unsigned)strlen(elements);
    const int64_t head[] = { verdict, server_us, 77 };
    for (unsigned i = 0; i < reply.count; i++) {
        bool text = i >= 3 && elements[i - 3] == 't';
        reply.values[i] = (struct lk__value){ .type = text ? LK__TEXT : LK__INTEGER, .number = i < 3 ? head[i] : 0 };
    }
    return &reply;
}

static bool is_read(const struct lk__reply *reply)
{
    struct lk__answer answer;
    if (!lk__answer_read(&script, reply, &answer))
        return false;
    assert_int_equal(reply->values[0].number, answer.verdict);
    assert_int_equal(reply->values[1].number, answer.server_us);
    return true;
}

static void an_answer_has_its_shape(void)
{
    static const struct {
        int64_t verdict;
        const char *elements;
        bool good;
    } answers[] = {
        { LK__GONE, "", true },
        { LK__GONE, "n", false },
        { LK__DONE, "n", true },
        { LK__DONE, "", false },
        { LK__DONE, "nn", true },
        { LK__DONE, "nnt", true },
        { LK__DONE, "nntn", false },
        { LK__DONE, "t", false },
        { LK__DONE, "nt", false },
        { LK__DONE, "nnn", false },
        { LK__QUEUED, "n", true },
        { LK__QUEUED, "nt", true },
        { LK__QUEUED, "", false },
        { LK__QUEUED, "nttt", true },
        { LK__QUEUED, "ntn", false },
        { LK__BUSY, "", false },
        { 99, "", false },
    };
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        assert_int_equal(answers[i].good, is_read(answer_of(answers[i].verdict, US, answers[i].elements)));
}

static void a_head_is_three_integers(void)
{
    assert_true(is_read(answer_of(LK__GONE, US, "")));
    assert_false(is_read(answer_of(LK__GONE, 0, "")));
    assert_false(is_read(answer_of(LK__GONE, -1, "")));
    assert_false(is_read(answer_of(LK__GONE, INT64_C(1) << 53, "")));
    struct lk__script undated = script;
    struct lk__answer answer;
    undated.undated = true;
    assert_true(lk__answer_read(&undated, answer_of(LK__GONE, 0, ""), &answer));
    assert_int_equal(0, answer.server_us);
    assert_true(lk__answer_read(&undated, answer_of(LK__GONE, US, ""), &answer));
    assert_false(lk__answer_read(&undated, answer_of(LK__GONE, -1, ""), &answer));
    for (int i = 0; i < 3; i++) {
        struct lk__reply *reply = answer_of(LK__GONE, US, "");
        reply->values[i].type = LK__TEXT;
        assert_false(is_read(reply));
        reply = answer_of(LK__GONE, US, "");
        reply->count = (unsigned)i;
        assert_false(is_read(reply));
    }
    struct lk__reply *reply = answer_of(LK__GONE, US, "");
    reply->type = LK__INTEGER;
    assert_false(is_read(reply));
}

int main(void)
{
    return plain_run(a_call_has_the_bytes_of_hiredis, so_has_a_batch, an_answer_has_its_shape,
                     a_head_is_three_integers);
}
