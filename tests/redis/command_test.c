/* SPDX-License-Identifier: MIT */
/*
 * command_test.c - a sealed command has the bytes that hiredis would format, whatever its holes are filled with.
 * So is called what has no typed header; wire_test.c has the others.
 *
 * labels: memory
 */
#include "assert_lk.h"
#include "redis/redis.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

enum { ARGS_MAX = 32 };

static const char sha1[] = "da39a3ee5e6b4b0d3255bfef95601890afd80709";
static const char source[] = "return redis.call('PING') -- any script will do\n";

static struct lk__script script_with(int keys)
{
    return (struct lk__script){
        .name = "test/any", .source = source, .length = strlen(source), .sha1 = sha1, .keys = keys
    };
}

/* A call with `keys` and `args`; NULL among args: a hole, filled with the next of `numbers`. */
struct call {
    const char *keys[8];
    const char *args[12];
    int arg_count;
    int64_t numbers[LK__HOLES_MAX];
};

static int key_count(const struct call *call)
{
    int count = 0;
    while (count < 8 && call->keys[count] != NULL)
        count++;
    return count;
}

/* What hiredis makes of `first_word`, `text`, the number of keys, keys and arguments. */
static size_t format_whole(const struct call *call, const char *first_word, const char *text, char **bytes)
{
    const char *words[ARGS_MAX] = { first_word, text };
    char count[8], numbers[LK__HOLES_MAX][24];
    int n = 2, hole = 0;
    snprintf(count, sizeof count, "%d", key_count(call));
    words[n++] = count;
    for (int i = 0; i < key_count(call); i++)
        words[n++] = call->keys[i];
    for (int i = 0; i < call->arg_count; i++) {
        words[n] = call->args[i];
        if (words[n] == NULL) {
            snprintf(numbers[hole], sizeof numbers[hole], "%020lld", (long long)call->numbers[hole]);
            words[n] = numbers[hole++];
        }
        n++;
    }
    int length = redisFormatCommandArgv(bytes, n, words, NULL);
    assert_true(length > 0);
    return (size_t)length;
}

static void expect_bytes(const struct call *call, const struct lk__command *command)
{
    char *bytes;
    size_t length = format_whole(call, "EVALSHA", sha1, &bytes);
    assert_int_equal(command->length, length);
    assert_memory_equal(command->bytes, bytes, length);
    redisFreeCommand(bytes);
    /* What follows the SHA1 is the end of the same call by EVAL, so that it need not be formatted again. */
    size_t tail = command->length - command->tail;
    length = format_whole(call, "EVAL", source, &bytes);
    assert_true(tail < length);
    assert_memory_equal(command->bytes + command->tail, bytes + length - tail, tail);
    size_t head = length - tail, first_line = strcspn(bytes, "\r");
    assert_memory_equal(command->bytes, bytes, first_line); /* as many words */
    assert_true(head > strlen(source) + 2 && memcmp(bytes + head - 2 - strlen(source), source, strlen(source)) == 0);
    redisFreeCommand(bytes);
}

static int holes_of(const struct call *call)
{
    int holes = 0;
    for (int i = 0; i < call->arg_count; i++)
        holes += call->args[i] == NULL;
    return holes;
}

static void seal(struct lk__command *command, const struct lk__script *script, const struct call *call)
{
    assert_lk(0, lk__command_seal(command, script, call->keys, call->args, call->arg_count));
    assert_ptr_equal(command->script, script);
}

static char long_words[4][1100];

static const struct call calls[] = {
    { { NULL }, { NULL }, 0, { 0 } },
    { { "orders" }, { NULL }, 0, { 0 } },
    { { NULL }, { "x" }, 1, { 0 } },
    { { "orders" }, { NULL }, 1, { 42 } },
    { { "a", "b", "c", "d", "e" }, { "id", "30000", "", "r-", NULL, NULL, NULL }, 7, { 1, 0, INT64_MAX } },
    { { "orders" }, { NULL, "between", NULL, "", NULL, NULL, "last" }, 7, { 1, 22, 333, 4444 } },
    { { "" }, { "", "", NULL }, 3, { 5 } },
    /* lengths around those where a digit more is needed to say them */
    { { "123456789", "1234567890" }, { NULL, "12345678901234567890" }, 2, { 7 } },
    { { long_words[0], long_words[1] }, { long_words[2], NULL, long_words[3], NULL }, 4, { 8, 9 } },
    /* more than nine words, and more than ten */
    { { "k" }, { "1", "2", "3", "4", "5", NULL }, 6, { 6 } },
    { { "k" }, { "1", "2", "3", "4", "5", "6", NULL }, 7, { 6 } },
    /* what looks like a hole, or like the protocol, is an argument like any other */
    { { "$3\r\nkey\r\n" }, { "00000000000000000000", NULL, "*1\r\n$4\r\nPING\r\n" }, 3, { 6 } },
};

static int fill_long_words(void **state)
{
    static const size_t lengths[4] = { 99, 100, 999, 1000 };
    (void)state;
    for (int i = 0; i < 4; i++)
        memset(long_words[i], 'a' + i, lengths[i]);
    return 0;
}

static void a_sealed_command_has_the_bytes_of_hiredis(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct lk__script script = script_with(key_count(&calls[i]));
        struct lk__command command;
        seal(&command, &script, &calls[i]);
        for (int hole = 0; hole < holes_of(&calls[i]); hole++)
            lk__command_fill(&command, hole, calls[i].numbers[hole]);
        expect_bytes(&calls[i], &command);
        lk__command_free(&command);
    }
}

static void holes_are_zero_at_first(void **state)
{
    struct call call = { { "orders" }, { "id", NULL, NULL }, 3, { 0, 0 } };
    struct lk__script script = script_with(1);
    struct lk__command command;
    (void)state;
    seal(&command, &script, &call);
    expect_bytes(&call, &command);
    lk__command_free(&command);
}

/* One command is sent again and again, each time with another deadline. */
static void a_hole_is_filled_as_often_as_needed(void **state)
{
    static const int64_t numbers[] = { 0, 1, 9, 10, INT64_MAX, 1234567890123456789, 99, 0, 5 };
    struct call call = { { "orders" }, { NULL, "id", NULL }, 3, { 0, 77 } };
    struct lk__script script = script_with(1);
    struct lk__command command;
    (void)state;
    seal(&command, &script, &call);
    lk__command_fill(&command, 1, 77);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        call.numbers[0] = numbers[i];
        lk__command_fill(&command, 0, numbers[i]);
        expect_bytes(&call, &command);
    }
    lk__command_free(&command);
}

/* Cleaning up need not know how far it came. */
static void a_command_may_be_freed_twice_or_unsealed(void **state)
{
    struct call call = { { "orders" }, { "id" }, 1, { 0 } };
    struct lk__script script = script_with(1);
    struct lk__command command = { 0 };
    (void)state;
    lk__command_free(&command);
    seal(&command, &script, &call);
    lk__command_free(&command);
    lk__command_free(&command);
    seal(&command, &script, &call);
    lk__command_free(&command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sealed_command_has_the_bytes_of_hiredis),
        cmocka_unit_test(holes_are_zero_at_first),
        cmocka_unit_test(a_hole_is_filled_as_often_as_needed),
        cmocka_unit_test(a_command_may_be_freed_twice_or_unsealed),
    };
    return cmocka_run_group_tests(tests, fill_long_words, NULL);
}
