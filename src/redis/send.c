/* SPDX-License-Identifier: MIT */
/*
 * send.c - calls of scripts are written into a connection's buffer when they are sent, and from there to the server
 *
 * A script comes with tables: where its keys are in the module's struct, where each ARGV is and in which form.
 * So one writer serves all. It allocates nothing, and prints no number through stdio, whose locale is the program's.
 *
 * What was sent is remembered in a ring that was made with the connection, and waits for the socket in a buffer of
 * fixed size: sending needs no memory. A caller that finds either full waits until the server took something, as if
 * the connection were down; a quarter of both is the renewals' alone. Those who wait so are admitted in the order in which
 * they came, as many as there is room for, and nobody who comes later passes them.
 */
#include "redis/connection_inside.h"
#include "redis/command.h"

#include <stddef.h>
#include <string.h>

/* --- the text of a script ----------------------------------------------------------------------------------------- */

/* As cmake/scripts.py has it. */
static const char *const heads[LK__PUBSUB_KINDS] = { "local PUBLISH = 'PUBLISH'\n", "local PUBLISH = 'SPUBLISH'\n" };

size_t lk__script_length(const struct lk__script *script, enum lk__pubsub_kind pubsub)
{
    return (script->publishes ? strlen(heads[pubsub]) : 0) + script->length;
}

char *lk__script_write(const struct lk__script *script, enum lk__pubsub_kind pubsub, char *out)
{
    size_t length = script->publishes ? strlen(heads[pubsub]) : 0;
    memcpy(out, heads[pubsub], length);
    out += length;
    for (int i = 0; script->pieces[i] != NULL; i++) {
        length = strlen(script->pieces[i]);
        memcpy(out, script->pieces[i], length);
        out += length;
    }
    return out;
}

/* --- a call in words ---------------------------------------------------------------------------------------------- */

static const void *at(const void *base, size_t offset)
{
    return (const char *)base + offset;
}

static const char *text_at(const void *base, size_t offset)
{
    return *(const char *const *)at(base, offset);
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

/* "<sign><number>\r\n", so that it ends with its room; returns where in that it begins. */
static unsigned char print_head(char room[LK__WIRE_HEAD], char sign, size_t number)
{
    assert(number <= LK__COMMAND_MAX);
    char *end = room + LK__WIRE_HEAD - 2, *begin = print_before(end, number);
    memcpy(end, "\r\n", 2);
    *--begin = sign;
    return (unsigned char)(begin - room);
}

/* An argument: "$<length>\r\n<bytes>\r\n". */
static void add_word(struct lk__wire *wire, const char *text, size_t length)
{
    assert(wire->count < LK__WIRE_WORDS);
    struct lk__wireword *word = &wire->words[wire->count++];
    word->text = text;
    word->length = (unsigned)length;
    word->head = print_head(word->room, '$', length);
    wire->size += LK__WIRE_HEAD - word->head + length + 2;
}

/* All words are known: "*<count>\r\n" stands before them. */
static void add_count(struct lk__wire *wire, size_t count)
{
    wire->head = print_head(wire->room, '*', count);
    wire->size += LK__WIRE_HEAD - wire->head;
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

/* What a number among the arguments is; not of the last one, the number of the request. */
static int64_t value_of(const struct lk__argument *argument, const struct lk__command *command,
                        const struct lk__sent *sent)
{
    const struct lk__script *script = command->script;
    switch (argument->kind) {
    case LK__ARG_NUMBER:
        return *(const int64_t *)at(command->args, argument->at);
    case LK__ARG_FLAGS:
        return (*(const unsigned *)at(command->args, argument->at) & script->flags) | (sent->flags & script->sent_flags);
    case LK__ARG_SENT_NUMBER:
        return *(const int64_t *)at(sent, argument->at);
    default:
        return sent->flags & script->sent_flags;
    }
}

static void add_argument(struct lk__wire *wire, const struct lk__argument *argument, const struct lk__command *command,
                         const struct lk__sent *sent, int64_t request)
{
    if (argument->kind == LK__ARG_TEXT)
        add_text(wire, text_at(command->args, argument->at));
    else if (argument->kind == LK__ARG_SENT_TEXT)
        add_text(wire, text_at(sent, argument->at));
    else if (argument->kind == LK__ARG_REQUEST)
        add_number(wire, request);
    else
        add_number(wire, value_of(argument, command, sent));
}

/* A wire that begins with the name of a script, or its text. */
static void begin_wire(struct lk__wire *wire, const struct lk__script *script, enum lk__pubsub_kind pubsub,
                       bool as_text)
{
    wire->count = 0;
    wire->size = 0;
    wire->text = as_text ? script : NULL;
    wire->pubsub = pubsub;
    wire->items = NULL;
    add_text(wire, as_text ? "EVAL" : "EVALSHA");
    if (as_text)
        add_word(wire, NULL, lk__script_length(script, pubsub));
    else
        add_word(wire, script->sha1[pubsub], LK__SHA1_LENGTH);
}

/* Does a batch say it once for all? */
static bool is_shared(const struct lk__argument *argument)
{
    return argument->kind == LK__ARG_REQUEST ||
           (argument->kind == LK__ARG_SENT_NUMBER && argument->at == offsetof(struct lk__sent, deadline_us));
}

/* The words of one call of a batch: its key, and its arguments. They are the wire's until the next one. */
static void make_item(struct lk__wire *wire, const struct lk__script *script, const struct lk__item *item)
{
    const struct lk__command command = { .script = script, .keys = item->keys, .args = item->args };
    const struct lk__sent sent = { .id = item->id, .lease_ms = item->lease_ms, .parts = item->parts };
    wire->count = 0;
    wire->size = 0;
    wire->text = NULL;
    wire->items = NULL;
    add_text(wire, text_at(item->keys, script->key_at[0]));
    for (int i = 0; i < script->arg_count; i++)
        if (!is_shared(&script->args[i]))
            add_argument(wire, &script->args[i], &command, &sent, 0);
}

bool lk__items_add(struct lk__items *items, const struct lk__script *script, const struct lk__item *item)
{
    struct lk__wire wire;
    assert(script->batch != NULL);
    if (items->count == 0)
        items->size = 0;
    make_item(&wire, script, item);
    if (items->count == LK__BATCH_MAX || (items->count > 0 && items->size + wire.size > LK__BATCH_BYTES))
        return false;
    items->each[items->count++] = *item;
    items->size += wire.size;
    return true;
}

/* How many words those of a batch are, each. */
static int words_each(const struct lk__script *script)
{
    return script->keys + script->arg_count - 2; /* without what is shared */
}

/* Number of keys, keys of all, what is shared, arguments of all. */
static void make_batch(struct lk__wire *wire, const struct lk__script *script, enum lk__pubsub_kind pubsub,
                       const struct lk__sent *sent, int64_t request, bool as_text)
{
    begin_wire(wire, script->batch, pubsub, as_text);
    wire->items = sent->items;
    wire->each = script;
    add_number(wire, sent->items->count);
    add_number(wire, sent->deadline_us);
    add_number(wire, request);
    wire->size += sent->items->size;
    add_count(wire, (size_t)wire->count + sent->items->count * (size_t)words_each(script));
}

void lk__wire_make(struct lk__wire *wire, const struct lk__command *command, enum lk__pubsub_kind pubsub,
                   const struct lk__sent *sent, int64_t request, bool as_text)
{
    const struct lk__script *script = command->script;
    if (sent->items != NULL) {
        make_batch(wire, script, pubsub, sent, request, as_text);
        return;
    }
    begin_wire(wire, script, pubsub, as_text);
    const struct lk__settingsmark *mark = script->takes_settings ? sent->settings : NULL;
    add_number(wire, script->keys + (mark != NULL));
    for (int i = 0; i < script->keys; i++)
        add_text(wire, text_at(command->keys, script->key_at[i]));
    if (mark != NULL)
        add_text(wire, mark->key);
    for (int i = 0; i < script->arg_count; i++)
        add_argument(wire, &script->args[i], command, sent, request);
    if (mark != NULL)
        add_text(wire, mark->mine);
    if (mark != NULL && mark->replace)
        add_text(wire, "1");
    add_count(wire, (size_t)wire->count);
}

/* Some of the words, from one on up to another one; returns where they end. */
static char *write_words(char *out, const struct lk__wire *wire, int from, int to)
{
    for (int i = from; i < to; i++) {
        const struct lk__wireword *word = &wire->words[i];
        out = mempcpy(out, word->room + word->head, LK__WIRE_HEAD - word->head);
        if (i == LK__WIRE_SCRIPT && wire->text != NULL)
            lk__script_write(wire->text, wire->pubsub, out);
        else
            memcpy(out, word->text, word->length);
        out = mempcpy(out + word->length, "\r\n", 2);
    }
    return out;
}

/* Of all calls of a batch some of their words. */
static char *write_items(char *out, const struct lk__wire *batch, int from, int to)
{
    struct lk__wire wire;
    for (unsigned i = 0; i < batch->items->count; i++) {
        make_item(&wire, batch->each, &batch->items->each[i]);
        out = write_words(out, &wire, from, to);
    }
    return out;
}

static char *write_batch(char *out, const struct lk__wire *wire)
{
    out = write_words(out, wire, 0, LK__WIRE_KEYS + 1);
    out = write_items(out, wire, 0, wire->each->keys);
    out = write_words(out, wire, LK__WIRE_KEYS + 1, wire->count);
    return write_items(out, wire, wire->each->keys, words_each(wire->each));
}

void lk__wire_write(const struct lk__wire *wire, char *out)
{
    const char *begin = out;
    out = mempcpy(out, wire->room + wire->head, LK__WIRE_HEAD - wire->head);
    out = wire->items != NULL ? write_batch(out, wire) : write_words(out, wire, 0, wire->count);
    assert((size_t)(out - begin) == wire->size);
    (void)begin;
}

/* --- into the buffer, and out of it ------------------------------------------------------------------------------- */

/* When the oldest request has been unanswered for too long. */
int64_t lk__conn_deadat(const struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    if (conn->unanswered == conn->end)
        return LK__NEVER;
    int64_t sent_us = lk__conn_pendingat(conn, conn->unanswered)->sent_us;
    return (sent_us > conn->flushed_us ? sent_us : conn->flushed_us) + conn->server->options.command_timeout_ms * 1000;
}

/*
 * End the stream if it is dead: silent while the oldest request waited for longer than the command timeout. Nobody
 * may have read for a while: what lies there is not unanswered, nor is what the reader is handing out.
 */
void lk__conn_endifdead(struct lk__conn *conn, int64_t now_us)
{
    assert(lk__mu_held(&conn->mu));
    if (conn->stream != NULL && !conn->dispatching && now_us >= lk__conn_deadat(conn) &&
        !lk__stream_readable(conn->stream))
        lk__conn_replacestream(conn, conn->stream, LK__CUT, "the server did not answer within the command timeout");
}

/* What was appended goes out now, or with what the reader writes when it has read. */
void lk__conn_flush(struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    struct lk__stream *stream = conn->stream;
    if (stream == NULL || conn->dispatching || (conn->replicas > 0 && lk__conn_gather(conn)))
        return;
    if (lk__stream_give(stream) != 0)
        lk__conn_replacestream(conn, stream, LK__CUT, lk__stream_why(stream, NULL));
    else if (lk__stream_waiting(stream) > 0 && conn->reader != NULL)
        lk__eventfd_set(conn->wake_fd); /* let it wait for room, too */
}

enum {
    WAITS_MOST = 4, /* that are pending, with the ECHOs between them */
    TOLD_MOST = 16  /* of room, between two times that the lock is left */
};
static const char asking[] = "*1\r\n$6\r\nASKING\r\n";

/* With a stream: is there room for so many commands of `size` bytes together? */
static bool has_room(const struct lk__conn *conn, unsigned count, size_t size, bool urgent)
{
    assert(lk__mu_held(&conn->mu));
    size_t bytes = LK__OUT_BYTES - LK__ECHO_LENGTH, limit = conn->capacity - 1; /* an ECHO always goes */
    if (conn->replicas > 0) {                                                   /* and so does a WAIT */
        bytes -= LK__WAIT_LENGTH;
        limit -= WAITS_MOST;
    }
    if (!urgent) {
        bytes -= LK__OUT_BYTES / 4;
        limit -= conn->capacity / 4;
    }
    return conn->end - conn->oldest + count <= limit && lk__stream_waiting(conn->stream) + size <= bytes;
}

/* May a command of `size` bytes be appended? Not before those who wait, and not in the room of those who were admitted. */
static bool may_send(const struct lk__conn *conn, const struct lk__request *request, size_t size)
{
    assert(lk__mu_held(&conn->mu));
    if (request->urgent || request->admitted)
        return has_room(conn, 1, size, request->urgent);
    return !conn->full && has_room(conn, conn->admitted + 1, conn->admitted_bytes + size, false);
}

/* The first of those who wait, if there is room for its request, too; NULL: there is none, or nobody waits any more. */
static struct lk__expecting *admit_next(struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    struct lk__link *first = conn->full && conn->stream != NULL ? lk__list_first(&conn->expecting) : NULL;
    if (first == NULL)
        return NULL;
    struct lk__expecting *next = LK__CONTAINER(first, struct lk__expecting, link);
    if (!has_room(conn, conn->admitted + 1, conn->admitted_bytes + next->request->size, false))
        return NULL;
    lk__list_remove(first);
    next->admitted = true;
    conn->admitted++;
    conn->admitted_bytes += next->request->size;
    return next;
}

void lk__conn_tellofroom(struct lk__conn *conn)
{
    if (!conn->full)
        return;
    sem_t *told[TOLD_MOST];
    struct lk__expecting *next;
    int count;
    do {
        for (count = 0; count < TOLD_MOST && (next = admit_next(conn)) != NULL; count++)
            told[count] = lk__parker_note(next->request->waiting.parker, LK__NUDGED);
        if (count > 0) {
            lk__mu_unlock(&conn->mu);
            for (int i = 0; i < count; i++)
                lk__parker_wake(told[i]);
            lk__mu_lock(&conn->mu);
        }
    } while (count == TOLD_MOST);
    if (conn->full && lk__list_empty(&conn->expecting)) {
        conn->full = false;
        if (conn->owner_wake_fd >= 0)
            lk__eventfd_set(conn->owner_wake_fd);
    }
}

/* What comes next is taken by a server that the slot does not belong to yet. Should it find no room, this is in vain. */
static void append_asking(struct lk__conn *conn, int64_t now_us)
{
    assert(lk__mu_held(&conn->mu));
    struct lk__stream *stream = conn->stream;
    memcpy(lk__stream_reserve(stream, sizeof asking - 1), asking, sizeof asking - 1);
    lk__stream_commit(stream, sizeof asking - 1);
    *lk__conn_addpending(conn) = (struct lk__pending){ .asking = true, .sent_us = now_us, .end = stream->queued };
}

/* `request` goes; there is room. */
static void append_request(struct lk__conn *conn, struct lk__request *request, const struct lk__wire *wire,
                           int64_t number)
{
    assert(lk__mu_held(&conn->mu));
    struct lk__stream *stream = conn->stream;
    lk__wire_write(wire, lk__stream_reserve(stream, wire->size));
    lk__stream_commit(stream, wire->size);
    request->connects = atomic_load(&conn->connects);
    request->epoch = conn->epoch;
    request->place = conn->end;
    *lk__conn_addpending(conn) = (struct lk__pending){
        .request = request, .number = number, .sent_us = request->sent_us, .end = stream->queued
    };
    atomic_store(&request->state, LK__INFLIGHT);
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

/*
 * Nearly all answers tell the server's time. Its request was sent before the server read its clock, so what is derived from
 * the moment of sending is an upper bound of the time there.
 */
struct lk__until lk__conn_until(struct lk__conn *conn, int64_t now_us, int64_t lasts_us)
{
    lk__mu_lock(&conn->mu);
    int64_t there_us = conn->clock_server_us + (now_us - conn->clock_before_us);
    struct lk__until until = {
        { there_us + lasts_us, conn->epoch }, now_us + lasts_us + conn->clock_slack_us + lasts_us / 100
    }; /* rates may differ by as much */
    lk__mu_unlock(&conn->mu);
    return until;
}

/*
 * Append a call, if that can be. ESTALE: what is sent has dates of another epoch. conn->mu is held afterwards, for what
 * is appended to go out. The words that it was
 * written from are off the stack by then: a transport may need a lot of that.
 */
static int __attribute__((noinline))
append_call(struct lk__conn *conn, struct lk__request *request, const struct lk__command *command,
            const struct lk__sent *sent)
{
    struct lk__wire wire;
    int64_t number = (int64_t)atomic_fetch_add(&conn->numbers, 1) + 1;
    lk__wire_make(&wire, command, conn->server->pubsub, sent, number, request->manner != LK__BY_SHA1);
    assert(wire.size <= LK__COMMAND_MAX);
    request->size = (unsigned)wire.size;
    lk__mu_lock(&conn->mu);
    request->sent_us = lk__now_us();
    lk__conn_endifdead(conn, request->sent_us); /* what is asked now must not get a late answer of somebody else's */
    if (conn->closed)
        return ECANCELED;
    if (conn->stream == NULL) {
        lk__conn_wantlocked(conn);
        return ENOTCONN;
    }
    if (sent->epoch != 0 && sent->epoch != conn->epoch)
        return ESTALE;
    if (request->manner == LK__BY_ASKING && may_send(conn, request, wire.size + sizeof asking))
        append_asking(conn, request->sent_us);
    if (!may_send(conn, request, wire.size)) {
        conn->full = true;
        return ENOTCONN;
    }
    request->admitted = true; /* should it have to be sent again, as text say, others still wait for their first turn */
    append_request(conn, request, &wire, number);
    return 0;
}

int lk__conn_send(struct lk__conn *conn, struct lk__request *request, const struct lk__command *command,
                  const struct lk__sent *sent)
{
    assert(atomic_load(&request->state) != LK__INFLIGHT);
    atomic_store(&request->state, LK__IDLE);
    request->acknowledged = false;
    request->conn = conn;
    request->script = sent->items != NULL ? command->script->batch : command->script;
    if (request->manner != LK__BY_SHA1)
        atomic_fetch_add(&conn->reloads, 1);
    int rc = append_call(conn, request, command, sent);
    if (rc == ESTALE) {
        lk__mu_unlock(&conn->mu);
        struct lk__sent redated = *sent;
        int64_t now_us = lk__now_us();
        if (!lk__sent_redate(&redated, lk__conn_until(conn, now_us, 0).date, now_us))
            return ENOTCONN;
        rc = append_call(conn, request, command, &redated);
    }
    if (rc == 0)
        lk__conn_flush(conn);
    lk__mu_unlock(&conn->mu);
    return rc == ESTALE ? ENOTCONN : rc;
}

int lk__conn_post(struct lk__conn *conn, unsigned long long connects, const char *bytes, size_t length)
{
    int rc = ENOTCONN;
    lk__mu_lock(&conn->mu);
    if (conn->stream != NULL && atomic_load(&conn->connects) == connects)
        rc = lk__stream_append(conn->stream, bytes, length);
    if (rc == 0) {
        conn->expects = true;
        lk__conn_flush(conn);
    }
    lk__mu_unlock(&conn->mu);
    return rc;
}

void lk__request_abandon(struct lk__request *request)
{
    struct lk__conn *conn = request->conn;
    if (atomic_load(&request->state) != LK__INFLIGHT)
        return;
    lk__mu_lock(&conn->mu);
    if (atomic_load(&request->state) == LK__INFLIGHT) {
        lk__conn_pendingat(conn, request->place)->request = NULL;
        atomic_store(&request->state, LK__IDLE);
    }
    lk__mu_unlock(&conn->mu);
}

/* --- what a call of a script is made of, before it is sent; send.c writes it -------------------------------------- */

const char *lk__command_key(const struct lk__command *command, size_t *length)
{
    const char *key;
    memcpy(&key, (const char *)command->keys + command->script->key_at[0], sizeof key);
    *length = strlen(key);
    return key;
}
