/* SPDX-License-Identifier: MIT */
/*
 * reply.c - one reply, flat
 *
 * Our scripts answer with a short array of integers and words. A connection reads each reply into the same memory and
 * copies it from there to the request's owner; a hostile server's giant array is refused by its header.
 */
#include "redis/reply.h"
#include "redis/server_clock.h"

#include <string.h>

enum { TEXT_ROOM = 256 }; /* enough for an error, which needs no memory then */

struct lk__reply *lk__reply_new(void)
{
    struct lk__reply *reply = lk__alloc(sizeof *reply);
    if (reply == NULL)
        return NULL;
    reply->text = lk__alloc(TEXT_ROOM);
    reply->text_capacity = TEXT_ROOM;
    if (reply->text == NULL) {
        lk__free(reply);
        return NULL;
    }
    return reply;
}

void lk__reply_free(struct lk__reply *reply)
{
    if (reply == NULL)
        return;
    lk__free(reply->text);
    lk__free(reply);
}

static bool is_text(const struct lk__value *value)
{
    return value->type == LK__TEXT || value->type == LK__ERROR;
}

/* Append a text, or as much of it as fits into `room` bytes with its NUL. */
static struct lk__value copied(struct lk__reply *copy, const struct lk__value *from, const char *text, size_t room)
{
    struct lk__value value = *from;
    value.at = copy->text_used;
    if (value.length >= room)
        value.length = (unsigned)room - 1;
    memcpy(copy->text + value.at, text, value.length);
    copy->text[value.at + value.length] = '\0';
    copy->text_used += value.length + 1;
    return value;
}

void lk__reply_copy(struct lk__reply *copy, const struct lk__reply *reply)
{
    copy->type = reply->type;
    copy->count = reply->count;
    copy->came_us = reply->came_us;
    copy->text_used = 0;
    assert(copy->text_capacity >= LK__REPLY_MAX); /* so that each text has its share */
    for (unsigned i = 0; i < reply->count; i++) {
        const struct lk__value *from = &reply->values[i];
        size_t share = (copy->text_capacity - copy->text_used) / (reply->count - i);
        copy->values[i] = is_text(from) ? copied(copy, from, reply->text + from->at, share) : *from;
    }
}

struct lk__reply *lk__replybuf_reply(struct lk__replybuf *buf)
{
    buf->reply.text = buf->text;
    buf->reply.text_capacity = sizeof buf->text;
    return &buf->reply;
}

const char *lk__reply_text(const struct lk__reply *reply, unsigned index)
{
    if (index >= reply->count || !is_text(&reply->values[index]))
        return "";
    return reply->text + reply->values[index].at;
}

int64_t lk__reply_number(const struct lk__reply *reply, unsigned index)
{
    return index < reply->count && reply->values[index].type == LK__INTEGER ? reply->values[index].number : 0;
}

bool lk__reply_integers(const struct lk__reply *reply, unsigned count)
{
    if (reply->type != LK__ARRAY || reply->count < count)
        return false;
    for (unsigned i = 0; i < count; i++)
        if (reply->values[i].type != LK__INTEGER)
            return false;
    return true;
}

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

bool lk__script_islimited(const struct lk__script *script)
{
    for (int i = 0; i < script->shape_count; i++)
        if (script->shapes[i].verdict == LK__LATE)
            return true;
    return false;
}

bool lk__answer_read(const struct lk__script *script, const struct lk__reply *reply, struct lk__answer *answer)
{
    if (!lk__reply_integers(reply, LK__ANSWER_LEAST) || !lk__is_servertime(reply->values[1].number))
        return false;
    for (int i = 0; i < script->shape_count; i++)
        if (script->shapes[i].verdict == reply->values[0].number) {
            *answer = (struct lk__answer){ script->shapes[i].verdict, reply->values[1].number };
            return has_shape(reply, script->shapes[i].elements);
        }
    return false;
}

bool lk__reply_is(const struct lk__reply *reply, const char *error_code)
{
    size_t length = strlen(error_code);
    const char *text = lk__reply_text(reply, 0);
    return reply->type == LK__ERROR && strncmp(text, error_code, length) == 0 &&
           (text[length] == ' ' || text[length] == '\0');
}

/*
 * Errors are told apart by their codes, never by their texts, which differ between servers. The one exception is ERR,
 * which both an access rule that stops a command inside a script and a server at its limit of clients say.
 */
int lk__reply_error(const struct lk__reply *reply, bool *retry)
{
    static const struct {
        const char *word;
        int code;
        bool retry;
    } table[] = {
        { "LOADING", ENOTCONN, true },  { "BUSY", ENOTCONN, true },        { "MASTERDOWN", ENOTCONN, true },
        { "READONLY", ENOTCONN, true }, { "MISCONF", ENOTCONN, true },     { "NOREPLICAS", ENOTCONN, true },
        { "TRYAGAIN", ENOTCONN, true }, { "CLUSTERDOWN", ENOTCONN, true }, { "OOM", ENOSPC, true },
        { "NOAUTH", EACCES, false },    { "WRONGPASS", EACCES, false },    { "NOPERM", EACCES, false },
        { "MOVED", ENOTSUP, false },    { "ASK", ENOTSUP, false },         { "CROSSSLOT", ENOTSUP, false },
        { "WRONGTYPE", EPROTO, false },
    };
    *retry = false;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (lk__reply_is(reply, table[i].word)) {
            *retry = table[i].retry;
            return table[i].code;
        }
    if (strstr(lk__reply_text(reply, 0), "user executing the script") != NULL)
        return EACCES;
    if (strstr(lk__reply_text(reply, 0), "max number of clients") != NULL) {
        *retry = true;
        return ENOTCONN;
    }
    return EPROTO;
}
