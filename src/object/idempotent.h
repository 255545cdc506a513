/* SPDX-License-Identifier: MIT */
/*
 * idempotent.h - requests that count once, however often they are sent
 */
#ifndef LK__OBJECT_IDEMPOTENT_H
#define LK__OBJECT_IDEMPOTENT_H

#include "object/acquire.h"

/* Numbers that a call tries, if each is overtaken, before it fails. */
enum { LK__NUMBERS_MAX = 3 };

/* A slot: what the idempotency record has an entry for. It is used by one request after the other. */
struct lk__slotentry {
    struct lk__slotentry *next; /* under object->mu: in the list of free slots */
    unsigned index;
    unsigned generation; /* tells it from retired slots of that index, also those of an object that is gone */
};

/* Per object: its slots. For objects whose value is a plain number (semaphore, latch). */
struct lk__slots {
    char tag;                   /* tells the kinds that share an idempotency record apart */
    unsigned count;             /* under object->mu: how many slots there are */
    struct lk__slotentry *free; /* under object->mu */
    struct lk__slotentry first; /* most objects need no other one */
};

/* Identity of one request in the idempotency record. A slot whose request was never answered is retired. */
struct lk__slot {
    struct lk__slotentry *entry;
    char owner[LK__ID_LENGTH + 32];
    int64_t nth;
};

int lk__slot_take(struct lk__object *object, struct lk__slots *slots, struct lk__slot *slot); /* 0 or ENOMEM */
void lk__slot_put(struct lk__object *object, struct lk__slots *slots, const struct lk__slot *slot, bool answered);
void lk__slots_destroy(struct lk__slots *slots); /* none is in use */

/* A request: a script that is sent the name of its slot and a number. */
struct lk__idempotent {
    struct lk__command command; /* LK__LATE and LK__OVERTAKEN: it did nothing */
    bool lasting;               /* without a good answer the library goes on for half a minute */
    struct lk__command undone;  /* script NULL, or the command that undoes it without a good answer */
    size_t args_size; /* of the arguments that are kept for that: its own if it is lasting, or those of `undone` */
    struct lk__until until; /* result: by then no copy takes effect any more */
    int64_t number;         /* result: the first element after the answer's head, 0 if that is no number */
};

/* Returns EPROTO, with an error text: no number that this client draws is new to the server. */
int lk__idempotent_overtaken(const struct lk__object *object);

/* 0 and the verdict, or why there is none, with an error text. */
int lk__idempotent(const struct lk__op *op, struct lk__slots *slots, struct lk__idempotent *once,
                   enum lk__verdict *verdict);

#endif
