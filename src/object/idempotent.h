/* SPDX-License-Identifier: MIT */
/*
 * idempotent.h - requests that count once, however often they are sent
 */
#ifndef LK__OBJECT_IDEMPOTENT_H
#define LK__OBJECT_IDEMPOTENT_H

#include "object/acquire.h"

/* So many numbers does a call use up, if each is overtaken, before it fails. */
enum { LK__NUMBERS_MAX = 3 };

/* What the idempotency record of an object has an entry for. It stays, for one request after the other. */
struct lk__slotentry {
    struct lk__slotentry *next; /* under object->mu: in the list of those that are free */
    unsigned place;
    unsigned epoch; /* tells it from abandoned ones of that place, also those of an object that is gone */
};

/* Of each object that is a bare number. */
struct lk__slots {
    char letter;                /* tells the kinds that share a idempotency record apart */
    unsigned places;            /* under object->mu: as many as there were requests at once */
    struct lk__slotentry *free; /* under object->mu */
};

/* Who asks, as the idempotency record has it. One request at a time; after one without an answer, never again. */
struct lk__slot {
    struct lk__slotentry *entry;
    char owner[LK__ID_LENGTH + 32];
    int64_t nth;
};

int lk__slot_take(struct lk__object *object, struct lk__slots *slots, struct lk__slot *slot); /* 0 or ENOMEM */
void lk__slot_put(struct lk__object *object, struct lk__slots *slots, const struct lk__slot *slot, bool answered);
void lk__slots_destroy(struct lk__slots *slots); /* none is in use */

/* What is to be asked, of a script that is sent the id of who asks and the request's number. */
struct lk__idempotent {
    struct lk__command command; /* LK__LATE and LK__OVERTAKEN: it did nothing */
    size_t args_size;           /* of its arguments: copied if it is lasting */
    struct lk__block *block;    /* of its object: where its keys are, and what its arguments point to */
    bool lasting;               /* without a good answer the library goes on for half a minute */
    struct lk__command undone;  /* script NULL, or what undoes it without a good answer: arguments in the block */
    int64_t number;             /* told: what the answer begins with behind its head, 0 if that is no number */
};

/* No number that this client draws is new to the server: EPROTO, with an error text. */
int lk__idempotent_overtaken(const struct lk__object *object);

/* 0 and the verdict, or why there is none, with an error text. */
int lk__idempotent(const struct lk__op *op, struct lk__slots *slots, struct lk__idempotent *once,
                   enum lk__verdict *verdict);

#endif
