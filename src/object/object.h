/* SPDX-License-Identifier: MIT */
/*
 * object.h - what a name is in this process: shared by all handles of it, with the holds of all its threads
 */
#ifndef LK__OBJECT_H
#define LK__OBJECT_H

#include "client/client.h"
#include "object/keys.h"

/* --- object.c ------------------------------------------------------------------------------------------------ */

struct lk__object;
struct lk__op;

/* What attributes say of the name, not of a handle: all handles of it in a client agree. */
struct lk__traits {
    short order; /* fair, or whom it prefers */
    bool robust;
};

/* What a primitive brings: a table. */
struct lk__kind {
    int number;           /* LK_KIND_... */
    const char *name;     /* in the names of its objects, and in statistics: "rwlock" */
    const char *noun;     /* for words: "read-write lock" */
    const char *commands; /* the server's that its scripts use */
    bool counted;         /* what is taken has no lease */
    bool long_ids;        /* those of its holds end with a number, and may with an id of their own */

    size_t size;       /* of its object, which begins with a struct lk__object */
    size_t block_size; /* of its block, which begins with a struct lk__block and the keys of its scripts */
    const struct lk__keyspec *keys;
    int key_count;

    size_t attr_size;
    /* Check the user's attributes (NULL: defaults) and complete them into `attr`, which is zeroed. */
    int (*check)(void *attr, const void *given);
    /* Of a kind that has a holder. */
    const char *holder;                    /* for words: who may die holding it */
    const struct lk__script *check_script; /* does the server know this hold? */
    /* Give back one level that is not the last. The caller holds one less, whatever comes of it. */
    int (*unlock_inner)(const struct lk__op *op, struct lk__hold *hold);

    /* NULL: none, or what these attributes, checked, say of the name. */
    struct lk__traits (*traits)(const void *attr);
    /* NULL, or which kind it is with these attributes, checked, and of the same size. */
    const struct lk__kind *(*variant)(const void *attr);

    /* Completes a new object, zeroed but for what all have, keys included. False: ENOMEM, and nothing of it is left. */
    bool (*init)(struct lk__object *object);
    /* NULL, or nobody is to wake us any more: before the hub ends. Under client->mu. */
    void (*stop)(struct lk__object *object);
    /* NULL, or wake those who wait neither in Redis nor in the local queue: the client is closing. Under client->mu. */
    void (*cancel)(struct lk__object *object);
    void (*destroy)(struct lk__object *object); /* NULL, or undoes init() */
};

struct lk__object {
    struct lk__member member; /* of its client */
    int refs;                 /* under client->mu: bindings */
    atomic_int waiting;       /* threads that want it now */
    struct lk__traits traits;
    bool quiet; /* under client->mu: it was stopped, and has no holds left */
    lk_client_t *client;
    struct lk__block *block; /* where keys of its commands are; its texts are in the one under it */
    const char *name;        /* as the user gave it */
    const char *what;        /* "mutex orders": for words */
    const struct lk__kind *kind;

    struct lk__mu mu;
    struct lk__link holds;       /* under mu: of all owners; lost ones until each unlock was made */
    struct lk__map owners;       /* under mu: the oldest hold of each owner, and each permit with an id */
    struct lk__link nobodys;     /* under dog->mu: leases of lost ones that nobody can give back */
    struct lk__localqueue queue; /* threads that wait for their turn to wait in Redis */
    atomic_ullong acquisitions, contended, renewals, losses; /* of holds that ended */
};

/*
 * The object of that name, made if there is none, with one reference more. EINVAL for a refused name, or
 * one that is there with other attributes.
 */
int lk__object_get(lk_client_t *client, const struct lk__kind *kind, const char *name, struct lk__traits traits,
                   struct lk__object **object);
void lk__object_unref(struct lk__object *object);

/* The server where the keys of an object are. */
static inline struct lk__node *lk__object_node(const struct lk__object *object)
{
    return &object->client->node;
}

/* What its asks tell those who hand something over to it. */
static inline const struct lk__handover *lk__object_terms(const struct lk__object *object)
{
    return &object->client->terms[object->kind->counted];
}

/* A command of one of its scripts. */
static inline struct lk__command lk__object_command(const struct lk__object *object, const struct lk__script *script,
                                                    const void *args)
{
    return (struct lk__command){ .script = script, .keys = object->block + 1, .args = args };
}

/* --- holds.c: its holds ---------------------------------------------------------------------------------------- */

/* A hold to be of `owner`, with its id: a fresh acquisition, and `suffix` if that is not NULL. NULL: ENOMEM. */
struct lk__hold *lk__object_newhold(struct lk__object *object, uint64_t owner, const char *suffix);
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
