/* SPDX-License-Identifier: MIT */
/*
 * command.c - a script call, formatted once by hiredis, with holes for numbers that change
 *
 * An acquire formats what it and its release will send while "out of memory" is still an easy answer;
 * from then on nothing on the way of a hold allocates.
 */
#include "redis/redis.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

enum { ARGS_MAX = 32 };

static size_t digits_of(size_t number)
{
    size_t digits = 1;
    while (number >= 10) {
        number /= 10;
        digits++;
    }
    return digits;
}

/* Bytes that an argument of that length takes: "$<length>\r\n<bytes>\r\n". */
static size_t bulk_size(size_t length)
{
    return 1 + digits_of(length) + 2 + length + 2;
}

int lk__command_seal(struct lk__command *command, const struct lk__script *script, const char *const *keys,
                     const char *const *args, int arg_count)
{
    static const char hole[] = "00000000000000000000";
    const char *argv[ARGS_MAX];
    size_t lengths[ARGS_MAX];
    char key_count[8];
    int argc = 0, holes = 0;
    assert(3 + script->keys + arg_count <= ARGS_MAX);

    snprintf(key_count, sizeof key_count, "%d", script->keys);
    argv[argc++] = "EVALSHA";
    argv[argc++] = script->sha1;
    argv[argc++] = key_count;
    for (int i = 0; i < script->keys; i++)
        argv[argc++] = keys[i];
    for (int i = 0; i < arg_count; i++)
        argv[argc++] = args[i] != NULL ? args[i] : hole;

    *command = (struct lk__command){ .script = script, .least = 2 };
    size_t at = 1 + digits_of((size_t)argc) + 2;
    for (int i = 0; i < argc; i++) {
        lengths[i] = strlen(argv[i]);
        if (i == 2)
            command->tail = at;
        if (argv[i] == hole) {
            assert(holes < LK__HOLES_MAX);
            command->holes[holes++] = at + bulk_size(LK__HOLE_DIGITS) - 2 - LK__HOLE_DIGITS;
        }
        at += bulk_size(lengths[i]);
    }
    int length = redisFormatCommandArgv(&command->bytes, argc, argv, lengths);
    if (length < 0) {
        command->bytes = NULL;
        return lk__fail(ENOMEM, "out of memory for a command");
    }
    command->length = (size_t)length;
    assert(command->length == at);
    return 0;
}

void lk__command_fill(struct lk__command *command, int hole, int64_t number)
{
    assert(number >= 0 && command->holes[hole] != 0);
    for (int i = LK__HOLE_DIGITS - 1; i >= 0; i--) {
        command->bytes[command->holes[hole] + (size_t)i] = (char)('0' + number % 10);
        number /= 10;
    }
}

void lk__command_free(struct lk__command *command)
{
    if (command->bytes != NULL)
        redisFreeCommand(command->bytes);
    command->bytes = NULL;
}
