/* SPDX-License-Identifier: MIT */
/*
 * reply.c - one reply, flat: its memory, and what an error means
 *
 * Our scripts answer with a short array of integers and words, or a text of integers. A connection reads each reply into
 * the same memory and copies it from there to the request's owner; a hostile server's giant array is refused by its
 * header.
 */
#include "redis/reply.h"
#include "redis/server_clock.h"

#include <string.h>

enum { TEXT_ROOM = 256 }; /* enough for an error, which needs no memory then */

/* One for a parser. */
struct parsed {
    struct lk__reply reply;
    struct lk__value values[LK__REPLY_MAX];
};

struct lk__reply *lk__reply_new(void)
{
    struct parsed *parsed = lk__alloc(sizeof *parsed);
    char *text = parsed != NULL ? lk__alloc(TEXT_ROOM) : NULL;
    if (text == NULL) {
        lk__free(parsed);
        return NULL;
    }
    return lk__reply_in(&parsed->reply, parsed->values, LK__REPLY_MAX, text, TEXT_ROOM);
}

void lk__reply_free(struct lk__reply *reply)
{
    if (reply == NULL)
        return;
    lk__free(reply->text);
    lk__free(LK__CONTAINER(reply, struct parsed, reply));
}

/* The integer that `text` begins with, and where it ends; NULL: there is none, or none that fits. */
static const char *read_integer(const char *text, int64_t *number)
{
    bool negative = *text == '-';
    const char *digits = text + negative, *at = digits;
    int64_t value = 0;
    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *at - '0', &value))
            return NULL;
    *number = negative ? -value : value;
    return at > digits ? at : NULL;
}

void lk__reply_spread(struct lk__reply *reply)
{
    if (reply->type != LK__TEXT)
        return;
    const char *at = reply->text + reply->values[0].at, *end = at + reply->values[0].length;
    int64_t numbers[LK__REPLY_MAX];
    assert(reply->most == LK__REPLY_MAX);
    unsigned count = 0;
    while ((at = read_integer(at, &numbers[count++])) != end)
        if (at == NULL || *at++ != ' ' || count == LK__REPLY_MAX)
            return;
    for (unsigned i = 0; i < count; i++)
        reply->values[i] = (struct lk__value){ LK__INTEGER, 0, { .number = numbers[i] } };
    reply->type = LK__ARRAY;
    reply->count = count;
    reply->text_used = 0;
}

bool lk__reply_is(const struct lk__reply *reply, const char *error_code)
{
    size_t length = strlen(error_code);
    const char *text = lk__reply_text(reply, 0);
    return reply->type == LK__ERROR && strncmp(text, error_code, length) == 0 &&
           (text[length] == ' ' || text[length] == '\0');
}

bool lk__reply_ishalf(const struct lk__reply *reply)
{
    return lk__reply_is(reply, "ERR") && strstr(lk__reply_text(reply, 0), "non local key") != NULL;
}

/*
 * Errors are told apart by their codes, never by their texts, which differ between servers. The one exception is ERR,
 * which an access rule that stops a command inside a script, a node whose slot moves meanwhile, and a server at its limit
 * of clients say.
 */
int lk__reply_error(const struct lk__reply *reply)
{
    static const struct {
        const char *word;
        int code;
    } table[] = {
        { "LOADING", ENOTCONN },   { "BUSY", ENOTCONN },     { "MASTERDOWN", ENOTCONN },  { "READONLY", ENOTCONN },
        { "MISCONF", ENOTCONN },   { "TRYAGAIN", ENOTCONN }, { "CLUSTERDOWN", ENOTCONN }, { "NOREPLICAS", ENOTCONN },
        { "NOAUTH", EACCES },      { "NOPERM", EACCES },     { "WRONGPASS", EACCES },     { "OOM", ENOSPC },
        { "CROSSSLOT", ENOTSUP },  { "MOVED", ENOTSUP },     { "ASK", ENOTSUP },          { "WRONGTYPE", EPROTO },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (lk__reply_is(reply, table[i].word))
            return table[i].code;
    if (strstr(lk__reply_text(reply, 0), "user executing the script") != NULL ||
        lk__reply_is(reply, "ERR ACL failure in script:")) /* Redis 8 */
        return EACCES;
    bool full = strstr(lk__reply_text(reply, 0), "max number of clients") != NULL;
    return full || lk__reply_ishalf(reply) ? ENOTCONN : EPROTO;
}

/* --- what a script answers ---------------------------------------------------------------------------------------- */

/* Does the reply continue after its head as `elements` says? See struct lk__shape. */
static bool has_shape(const struct lk__reply *reply, const char *elements)
{
    bool may_end = false;
    unsigned i = LK__ANSWER_LEAST;
    for (; *elements != '\0'; elements++) {
        if (*elements == '?') {
            may_end = true;
            continue;
        }
        bool several = elements[1] == '*';
        enum lk__type type = *elements == 'n' ? LK__INTEGER : LK__TEXT;
        if (i == reply->count && (may_end || several))
            return true;
        do
            if (i >= reply->count || reply->values[i++].type != type)
                return false;
        while (several && i < reply->count);
        elements += several;
    }
    return i == reply->count;
}

bool lk__answer_read(const struct lk__script *script, const struct lk__reply *reply, struct lk__answer *answer)
{
    if (!lk__reply_integers(reply, LK__ANSWER_LEAST))
        return false;
    int64_t server_us = reply->values[1].number;
    if (!lk__is_servertime(server_us) && !(script->undated && server_us == 0))
        return false;
    for (int i = 0; i < script->shape_count; i++)
        if (script->shapes[i].verdict == reply->values[0].number) {
            int64_t number = lk__reply_number(reply, LK__ANSWER_LEAST);
            *answer = (struct lk__answer){ script->shapes[i].verdict, server_us, number };
            return has_shape(reply, script->shapes[i].elements);
        }
    return false;
}
