/* SPDX-License-Identifier: MIT */
/*
 * command.h - a call of a script: what it is made of, and its words when it is sent
 */
#ifndef LK__COMMAND_H
#define LK__COMMAND_H

#include "redis/script.h"

/*
 * What is to be called with what. Nothing of it is formatted until it is sent, so it has to stay until no copy can
 * be sent any more.
 */
struct lk__command {
    const struct lk__script *script;
    const void *keys; /* the module's struct of keys */
    const void *args; /* the script's struct of arguments; NULL if it takes none */
    unsigned place;   /* of a quorum: which of its nodes it is for, from 1 on; 0: the one that its first key says */
};

/*
 * Several calls of a script that has a batch go as one, with the command that names that script; the keys and arguments
 * of the command are not looked at then. Deadline and request number are those of all.
 */
struct lk__item {
    const void *keys, *args; /* as those of a command */
    const char *id;          /* the rest: what is sent with this one alone */
    int64_t lease_ms, parts;
};

/* So many that the server is held up for well below a millisecond, and so few bytes that it reads them at once. */
enum { LK__BATCH_MAX = 32, LK__BATCH_BYTES = 12 * 1024 };

struct lk__items {
    unsigned count;
    size_t size; /* of their words */
    struct lk__item each[LK__BATCH_MAX];
};

/* False: it does not fit in. An empty batch takes any. */
bool lk__items_add(struct lk__items *items, const struct lk__script *script, const struct lk__item *item);

/* Where keys and arguments of commands lie: of an object, which may go before the last of them is sent. */
struct lk__block {
    _Alignas(void *) atomic_int refs; /* the keys follow at once */
};

/* Accepts NULL. */
static inline struct lk__block *lk__block_ref(struct lk__block *block)
{
    if (block != NULL)
        atomic_fetch_add(&block->refs, 1);
    return block;
}

/* The last one frees it; accepts NULL. */
static inline void lk__block_unref(struct lk__block *block)
{
    if (block != NULL && atomic_fetch_sub(&block->refs, 1) == 1)
        lk__free(block);
}

/* The first key; there is one. `length` is its length. */
const char *lk__command_key(const struct lk__command *command, size_t *length);

/* --- send.c ----------------------------------------------------------------------------------------------- */

/* A call in words, as they are written into a connection: made anew each time it is sent, on the caller's stack. */
enum { LK__WIRE_WORDS = 32, LK__WIRE_DIGITS = 20, LK__WIRE_HEAD = 10, LK__WIRE_SCRIPT = 1, LK__WIRE_KEYS = 2 };

struct lk__wireword {
    const char *text;
    unsigned length;
    unsigned char head; /* "$<length>\r\n": `room` from there on */
    char room[LK__WIRE_HEAD];
};

struct lk__wire {
    int count;
    size_t size;                   /* of the whole */
    const struct lk__script *text; /* NULL, or that whose text is word LK__WIRE_SCRIPT ... */
    enum lk__pubsub_kind pubsub;   /* ... and what it publishes */
    const struct lk__script *each; /* of a batch: the script of one of its calls */
    const struct lk__items *items; /* NULL, or those calls: their keys and arguments stand behind word LK__WIRE_KEYS */
    unsigned char head; /* "*<number of words>\r\n": `room` from there on */
    char room[LK__WIRE_HEAD];
    struct lk__wireword words[LK__WIRE_WORDS];
    char numbers[LK__WIRE_WORDS][LK__WIRE_DIGITS]; /* those among the words */
};

/*
 * The words of a call, by its script's SHA1 or `as_text`. The script publishes as `pubsub` says. `request` is the number
 * that the answer has to say. The wire points into the command's structs, and into itself.
 */
void lk__wire_make(struct lk__wire *wire, const struct lk__command *command, enum lk__pubsub_kind pubsub,
                   const struct lk__sent *sent, int64_t request, bool as_text);
void lk__wire_write(const struct lk__wire *wire, char *out); /* wire->size bytes */

#endif
