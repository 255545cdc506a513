/* SPDX-License-Identifier: MIT */
/*
 * object.h - what a name is in this process: shared by all handles of it, with the holds of all its threads
 */
#ifndef LK__OBJECT_H
#define LK__OBJECT_H

#include "client/client.h"

/* --- object.c ------------------------------------------------------------------------------------------------ */

struct lk__object;

/* What a primitive brings. */
struct lk__kind {
    /* NULL, or nobody is to wake us any more: before the hub ends. Under client->mu. */
    void (*stop)(struct lk__object *object);
    /* NULL, or wake those who wait neither in Redis nor in the local queue: the client is closing. Under client->mu. */
    void (*cancel)(struct lk__object *object);
    void (*free)(struct lk__object *object);
};

struct lk__object {
    struct lk__member member; /* of its client */
    int refs;                 /* under client->mu: bindings */
    int fair;                 /* of the name, not of a handle; or whom it prefers */
    atomic_int waiting;       /* threads that want it now */
    bool robust;              /* as fair */
    bool quiet;               /* under client->mu: it was stopped, and has no holds left */
    lk_client_t *client;
    struct lk__block *block; /* where keys of its commands are, from make() on; its texts are in the one under it */
    const char *name;        /* as the user gave it */
    const char *what;        /* "mutex orders": for words */
    const struct lk__kind *kind;

    struct lk__mu mu;
    struct lk__link holds;       /* under mu: of all owners; lost ones until each unlock was made */
    struct lk__map owners;       /* under mu: the oldest hold of each owner, and each permit with an id */
    struct lk__link nobodys;     /* under dog->mu: lost ones that nobody can give back */
    struct lk__localqueue queue; /* threads that wait for their turn to wait in Redis */
    atomic_ullong acquisitions, contended, renewals, losses; /* of holds that ended */
};

/*
 * Makes the primitive's part of a new object; its `object` is filled in. `full` stays as long as its block. NULL: ENOMEM.
 */
typedef struct lk__object *(*lk__object_make_t)(lk_client_t *client, const char *full, int fair, bool robust);

/*
 * The object of that name, made if there is none, with one reference more. EINVAL for a refused name, or
 * one that is there with other attributes.
 */
int lk__object_get(lk_client_t *client, int kind, const char *name, int fair, bool robust, lk__object_make_t make,
                   struct lk__object **object);
void lk__object_unref(struct lk__object *object);
/* --- holds.c: its holds ---------------------------------------------------------------------------------------- */

/* A hold to be of `owner`, with its id: a fresh acquisition. NULL: ENOMEM. */
struct lk__hold *lk__object_newhold(struct lk__object *object, uint64_t owner);
/* The hold of `owner`, the oldest if it has several, or NULL; under object->mu or by the owner itself. */
struct lk__hold *lk__object_hold(struct lk__object *object, uint64_t owner);
/* A permit that has an id, or NULL. Under object->mu. */
struct lk__hold *lk__object_permit(struct lk__object *object, const char *id);
/* How many permits all holds of `owner` have; no more of them are looked at than it takes to have `enough`. */
unsigned lk__object_count(struct lk__object *object, uint64_t owner, unsigned enough);
void lk__object_addhold(struct lk__object *object, struct lk__hold *hold);
void lk__object_drophold(struct lk__object *object, struct lk__hold *hold); /* and its reference */
/* Under client->mu: it is to have no holds any more. `leftover`: NULL, or where they go for a close to release. */
void lk__object_dropholds(struct lk__object *object, struct lk__link *leftover);
/* Is it held, by a lease that is good and a thread that lives, or waited for, through this client? */
bool lk__object_isbusy(struct lk__object *object);
/* Adds what its holds did that have not ended. */
void lk__object_addlive(struct lk__object *object, struct lk__memberstats *stats);

#endif
