/* SPDX-License-Identifier: MIT */
/*
 * command.c - calls of scripts, written when they are sent
 *
 * A script comes with tables: where its keys are in the module's struct, where each ARGV is and in which form.
 * So one writer serves all. It allocates nothing, and prints no number through stdio, whose locale is the program's.
 */
#include "redis/command.h"

#include <string.h>

struct lk__block *lk__block_ref(struct lk__block *block)
{
    if (block != NULL)
        atomic_fetch_add(&block->refs, 1);
    return block;
}

void lk__block_unref(struct lk__block *block)
{
    while (block != NULL && atomic_fetch_sub(&block->refs, 1) == 1) {
        struct lk__block *under = block->under;
        lk__free(block);
        block = under;
    }
}

struct lk__block *lk__block_copy(const void *args, size_t size, struct lk__block *under, const void **copy)
{
    struct {
        struct lk__block block;
        max_align_t args[];
    } *own = lk__alloc(sizeof *own + size);
    if (own == NULL) {
        lk__fail(ENOMEM, "out of memory for the arguments of a request");
        return NULL;
    }
    own->block.refs = 1;
    own->block.under = lk__block_ref(under);
    memcpy(own->args, args, size);
    *copy = own->args;
    return &own->block;
}

static const char *text_at(const void *base, size_t offset)
{
    const char *text;
    memcpy(&text, (const char *)base + offset, sizeof text);
    return text;
}

static int64_t number_at(const void *base, size_t offset)
{
    int64_t number;
    memcpy(&number, (const char *)base + offset, sizeof number);
    return number;
}

static unsigned flags_at(const void *base, size_t offset)
{
    unsigned flags;
    memcpy(&flags, (const char *)base + offset, sizeof flags);
    return flags;
}

static size_t digits_of(size_t number)
{
    size_t digits = 1;
    while (number >= 10) {
        number /= 10;
        digits++;
    }
    return digits;
}

/* Bytes of an argument of that length: "$<length>\r\n<bytes>\r\n". */
static size_t bulk_size(size_t length)
{
    return 1 + digits_of(length) + 2 + length + 2;
}

/* Print `number` so that it ends at `end`; returns where it begins. */
static char *print_before(char *end, uint64_t number)
{
    do {
        *--end = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return end;
}

static void add_word(struct lk__wire *wire, const char *text, size_t length)
{
    assert(wire->count < LK__WIRE_WORDS);
    wire->words[wire->count].text = text;
    wire->words[wire->count].length = length;
    wire->count++;
    wire->size += bulk_size(length);
}

static void add_text(struct lk__wire *wire, const char *text)
{
    add_word(wire, text, strlen(text));
}

static void add_number(struct lk__wire *wire, int64_t number)
{
    char *end = wire->numbers[wire->count] + LK__WIRE_DIGITS;
    char *begin = print_before(end, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
    if (number < 0)
        *--begin = '-';
    add_word(wire, begin, (size_t)(end - begin));
}

static void add_argument(struct lk__wire *wire, const struct lk__argument *argument, const struct lk__command *command,
                         const struct lk__sent *sent, int64_t request)
{
    const struct lk__script *script = command->script;
    switch (argument->kind) {
    case LK__ARG_TEXT:
        add_text(wire, text_at(command->args, argument->at));
        break;
    case LK__ARG_NUMBER:
        add_number(wire, number_at(command->args, argument->at));
        break;
    case LK__ARG_FLAGS:
        add_number(wire, (flags_at(command->args, argument->at) & script->flags) | (sent->flags & script->sent_flags));
        break;
    case LK__ARG_SENT_TEXT:
        add_text(wire, text_at(sent, argument->at));
        break;
    case LK__ARG_SENT_NUMBER:
        add_number(wire, number_at(sent, argument->at));
        break;
    case LK__ARG_SENT_FLAGS:
        add_number(wire, sent->flags & script->sent_flags);
        break;
    default:
        add_number(wire, request);
        break;
    }
}

void lk__wire_make(struct lk__wire *wire, const struct lk__command *command, const struct lk__sent *sent,
                   int64_t request, bool as_text)
{
    const struct lk__script *script = command->script;
    wire->count = 0;
    wire->size = 0;
    add_text(wire, as_text ? "EVAL" : "EVALSHA");
    add_word(wire, as_text ? script->source : script->sha1, as_text ? script->length : strlen(script->sha1));
    add_number(wire, script->keys);
    for (int i = 0; i < script->keys; i++)
        add_text(wire, text_at(command->keys, script->key_at[i]));
    for (int i = 0; i < script->arg_count; i++)
        add_argument(wire, &script->args[i], command, sent, request);
    wire->size += 1 + digits_of((size_t)wire->count) + 2;
}

/* "<sign><number>\r\n"; returns where it ends. */
static char *write_head(char *out, char sign, size_t number)
{
    char digits[LK__WIRE_DIGITS], *end = digits + sizeof digits, *begin = print_before(end, number);
    *out++ = sign;
    memcpy(out, begin, (size_t)(end - begin));
    out += end - begin;
    *out++ = '\r';
    *out++ = '\n';
    return out;
}

void lk__wire_write(const struct lk__wire *wire, char *out)
{
    const char *begin = out;
    out = write_head(out, '*', (size_t)wire->count);
    for (int i = 0; i < wire->count; i++) {
        size_t length = wire->words[i].length;
        out = write_head(out, '$', length);
        memcpy(out, wire->words[i].text, length);
        out += length;
        *out++ = '\r';
        *out++ = '\n';
    }
    assert((size_t)(out - begin) == wire->size);
    (void)begin;
}

const char *lk__command_key(const struct lk__command *command, size_t *length)
{
    const char *key = text_at(command->keys, command->script->key_at[0]);
    *length = strlen(key);
    return key;
}
