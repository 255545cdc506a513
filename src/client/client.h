/* SPDX-License-Identifier: MIT */
/*
 * client.h - a client, the objects it knows, what happens to their holds
 */
#ifndef LK__CLIENT_H
#define LK__CLIENT_H

#include "acquire/acquire.h"

#include <latchkey/client.h>

/* --- events.c --------------------------------------------------------------------------------------------- */

enum { LK__LISTENER, LK__EVENTFD };

struct lk__events {
    struct lk__mu mu;                      /* innermost but for a parker's: taken under dog->mu */
    pthread_cond_t news;                   /* with mu: something for the listener, or stop */
    pthread_cond_t quiet;                  /* with mu: the listener returned */
    struct lk__link queues[LK__AUDIENCES]; /* under mu: notices not fetched yet */
    bool wanted[LK__AUDIENCES];            /* under mu */
    lk_listener_t listener;                /* under mu */
    void *arg;                             /* under mu */
    bool running;                          /* under mu: the listener is being called */
    unsigned calls;                        /* under mu: from which it returned */
    bool started, stopping;                /* under mu */
    pthread_t thread;
    int fd; /* -1: not asked for */
};

void lk__events_init(struct lk__events *events);
void lk__events_notify(void *events, struct lk__hold *hold, int type); /* under dog->mu */
bool lk__events_ishere(struct lk__events *events);                     /* is this the listener's thread? */
void lk__events_stop(struct lk__events *events);
void lk__events_destroy(struct lk__events *events);

/* --- stats.c ---------------------------------------------------------------------------------------------- */

enum { LK__BUCKETS = 13, LK__KINDS = LK_KIND_LATCH + 1 };

struct lk__histogram {
    atomic_ullong count, sum_us, buckets[LK__BUCKETS];
};

void lk__histogram_add(struct lk__histogram *histogram, int64_t us);

struct lk__kindstats {
    struct lk__histogram wait, hold;
};

/* --- object.c: what a name is in this process --------------------------------------------------------------- */

struct lk__object {
    struct lk__entry entry; /* under client->mu; kind, and the name with the client's prefix: what Redis sees */
    int refs;               /* under client->mu: bindings */
    int fair;               /* of the name, not of a handle; or whom it prefers */
    atomic_int waiting;     /* threads that want it now */
    bool robust;            /* as fair */
    bool quiet;             /* under client->mu: it was stopped, and has no holds left */
    lk_client_t *client;
    struct lk__block *block; /* where keys of its commands are, from make() on; its texts are in the one under it */
    const char *name;        /* as the user gave it */
    const char *what;        /* "mutex orders": for words */
    /* Nobody is to wake us any more: before the hub ends. Under client->mu. */
    void (*stop)(struct lk__object *object);
    /* NULL, or wake those who wait neither in the room nor in line: the client is closing. Under client->mu. */
    void (*cancel)(struct lk__object *object);
    void (*free)(struct lk__object *object);

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
/*
 * Under client->mu: the hub hears of it for the last time, and it has no holds any more. `leftover`: NULL, or where
 * they go for a close to release.
 */
void lk__object_quiet(struct lk__object *object, struct lk__link *leftover);

const char *lk__kind_name(int kind); /* "mutex"; NULL for a number that no kind has */

/* The hold of `owner`, the oldest if it has several, or NULL; under object->mu or by the owner itself. */
struct lk__hold *lk__object_hold(struct lk__object *object, uint64_t owner);
/* A permit that has an id, or NULL. Under object->mu. */
struct lk__hold *lk__object_permit(struct lk__object *object, const char *id);
/* How many permits all holds of `owner` have; no more of them are looked at than it takes to have `enough`. */
unsigned lk__object_count(struct lk__object *object, uint64_t owner, unsigned enough);
void lk__object_addhold(struct lk__object *object, struct lk__hold *hold);
void lk__object_drophold(struct lk__object *object, struct lk__hold *hold); /* and its reference */
/* Is it held, by a lease that is good and a thread that lives, or waited for, through this client? */
bool lk__object_isbusy(struct lk__object *object);

/* --- client.c -------------------------------------------------------------------------------------------------- */

struct lk_client {
    struct lk__link link; /* under the process' mu: in its clients */
    uintptr_t process;    /* a fork's child only ever reads this */
    atomic_int refs;      /* the opener's, and one for each object */
    char id[LK__ID_LENGTH + 1];
    struct lk__connector *connector;
    const struct lk__options *options;
    struct lk__conn conn;
    struct lk__hub hub;
    struct lk__watchdog dog;
    struct lk__waiters waiters;
    struct lk__events events;

    struct lk__mu mu;
    pthread_cond_t idle;      /* with mu: no call is under way */
    struct lk__map objects;   /* under mu */
    struct lk__link leftover; /* under mu: holds of objects that were destroyed while the client is closing */
    bool released;            /* under mu: the close is through with all holds */
    atomic_uint calls;        /* under way, and LK__CLOSING */
    atomic_ullong acquisitions;
    atomic_uint abandoned; /* slots whose last request got no answer */
    struct lk__kindstats stats[LK__KINDS];
};

#define LK__CLOSING (1u << 31)

/* Requests of a client that may be under way at once; more wait. */
enum { LK__CALLS_MAX = 1024 };

/*
 * Every public call on an object runs between these two. ECANCELED: the client is closed. After it left, a call
 * does not touch the client any more: it may be freed.
 */
int lk__client_enter(lk_client_t *client);
bool lk__client_tryenter(lk_client_t *client); /* without an error text, of a client of this process */
void lk__client_leave(lk_client_t *client);
/* As lk_client_open(). */
int lk__client_openurl(lk_client_t **client, const char *url);
bool lk__client_isclosed(const lk_client_t *client);
void lk__client_unref(lk_client_t *client);

/* A hold to be of `owner`, with its id: a fresh acquisition. NULL: ENOMEM. */
struct lk__hold *lk__client_newhold(lk_client_t *client, struct lk__object *object, uint64_t owner);

/* --- default.c: the client of static objects --------------------------------------------------------------------- */

/*
 * The default client, opened if there is none, entered: without that another thread may close it at once. Until
 * `limit_us` one slow attempt of another thread is no reason to fail.
 */
int lk__client_enterdefault(lk_client_t **client, int64_t limit_us);

/* --- redisson.c: waiters that Redisson's messages wake --------------------------------------------------------- */

/* With redisson=yes an object hears Redisson's channel of its name, and hints at those who wait here. */
struct lk__redissonwake {
    lk_client_t *client;
    struct lk__subscription subscription;
    struct lk__subscription beside; /* tells scripts that it is not Redisson who listens */
    bool everybody;                 /* a message is for all that wait, not for one of each process */
    struct lk__mu mu;               /* after hub->mu, before waiters->mu */
    struct lk__link waiters;        /* under mu */
    bool listening;                 /* under mu */
};

/* `channel`, and the one `beside` it, live as long. */
void lk__redissonwake_init(struct lk__redissonwake *redisson, lk_client_t *client, const char *channel,
                           const char *beside, bool everybody);
void lk__redissonwake_destroy(struct lk__redissonwake *redisson);
void lk__redissonwake_stop(struct lk__redissonwake *redisson); /* hears nothing any more; before the hub ends */
void lk__redissonwake_join(struct lk__redissonwake *redisson,
                           struct lk__waiter *waiter); /* harmless without redisson=yes */
void lk__redissonwake_leave(struct lk__redissonwake *redisson, struct lk__waiter *waiter);

/* --- process.c: what there is once in a process ------------------------------------------------------------------ */

/* Of the default client; by one thread for all. */
struct lk__opening {
    pthread_cond_t over; /* with the process state's mu: an attempt is */
    bool under_way;      /* under it, as all of this */
    unsigned attempts;   /* that are over */
    int code;            /* of the last one, and its words */
    bool slow;           /* it failed, and took its time */
    char errmsg[384];
};

struct lk__processstate {
    uintptr_t process;
    struct lk__mu mu;
    struct lk__link clients;          /* under mu */
    lk_client_t *default_client;      /* under mu */
    struct lk__opening opening;       /* under mu */
    struct lk__binding *retired;      /* under mu: of handles bound anew after the default client was closed */
    struct lk__map inherited;         /* under mu: bindings of handles that belong to another process */
    struct lk__processstate *parents; /* of a fork: left alone */
    uint64_t born;                    /* after how many forks this one came from them */
};

struct lk__processstate *lk__process_state(void); /* NULL: ENOMEM */

/* --- handle.c: from the user's struct to the object behind it ---------------------------------------------------- */

/* The fields of a handle, whatever its primitive. */
struct lk__handle {
    const char **name;
    const void **attr;
    void **impl;
    uintptr_t *process;
    uintptr_t *spare;
};

/*
 * What a handle's impl points at: one for each handle, so that two of one name may differ. Whoever is let in by a
 * call may destroy the handle before that call returns, so each call has a reference of its own.
 */
struct lk__binding {
    atomic_int refs; /* the handle's, and one for each call under way */
    struct lk__object *object;
    const struct lk__handletype *type; /* as it was bound; not the variant */
    struct lk__binding *older;         /* under the process state's mu: in its retired */
    const void *attr;                  /* the primitive's attributes, behind this; or nothing but zeroes */
};

/* How a primitive is bound. */
struct lk__handletype {
    int kind;
    size_t attr_size;
    const char *commands; /* the server's that its scripts use */
    lk__object_make_t make;
    /* Check the user's attributes (NULL: defaults) and complete them into `attr`, which is zeroed. */
    int (*check)(void *attr, const void *given);
    void (*traits)(const void *attr, int *fair, bool *robust);
    /* NULL, or which type it is with these attributes, checked, and of the same size */
    const struct lk__handletype *(*variant)(const void *attr);
};

int lk__handle_init(struct lk__handle handle, const struct lk__handletype *type, lk_client_t *client, const char *name,
                    const void *attr);
/* The binding of a handle, made on its first use, with a reference; its client is entered. The limit is the call's. */
int lk__handle_enter(struct lk__handle handle, const struct lk__handletype *type, int64_t limit_us,
                     struct lk__binding **binding);
void lk__handle_leave(struct lk__binding *binding);
int lk__handle_destroy(struct lk__handle handle);
void lk__binding_unref(struct lk__binding *binding);
/* Is it bound to a client of another process, such as the parent of a fork? */
bool lk__handle_isinherited(struct lk__handle handle);
/* Where name and attributes point to is in this process, too. */
bool lk__handle_isreadable(struct lk__handle handle);
const char *lk__handle_name(struct lk__handle handle); /* for words */

/* --- inherited.c: handles that belong to another process ---------------------------------------------------------------- */

/* All under the process state's mu; what this process has for the handle, NULL: none of that name and, if given, that type. */
struct lk__binding *lk__inherited_find(struct lk__processstate *here, struct lk__handle handle,
                                       const struct lk__handletype *type);
/* Takes the binding, in place of one that there may be. 0 or ENOMEM, with an error text. */
int lk__inherited_set(struct lk__processstate *here, struct lk__handle handle, struct lk__binding *binding);
void lk__inherited_forget(struct lk__processstate *here, struct lk__handle handle); /* its binding is the caller's */

/* --- attr.c: attributes ------------------------------------------------------------------------------------------- */

/*
 * Copy the user's attributes, which begin with their size, into `attr` of `known` bytes, zeroed. An older header's are
 * shorter, and the rest is default; a newer one's may say nothing more. `given` NULL: defaults. 0 or EINVAL.
 */
int lk__attr_take(void *attr, size_t known, const void *given, size_t least, const char *what);
/* Leases that a hold can have, 0 for the default: 0 or EINVAL. */
int lk__attr_leases(int64_t lease_ms, int64_t max_hold_ms);

/* --- op.c: one public call on an object ---------------------------------------------------------------------- */

struct lk__op {
    struct lk__binding *binding;
    struct lk__object *object;
    const void *attr;        /* as this handle has them: the primitive's type */
    struct lk__thread *self; /* who calls */
    struct lk__apistate api;
};

/*
 * Begin a call; after 0 object, attributes and client stay until the call ends, also when the handle is destroyed
 * or the client closed meanwhile. To be ended with lk__op_leave(), which returns its code; nothing of them may
 * be touched afterwards. `limit_us`: how long the call is to wait, LK__NEVER if that is no question.
 */
int lk__op_enterby(struct lk__op *op, struct lk__handle handle, const struct lk__handletype *type, int64_t limit_us);
int lk__op_leave(const struct lk__op *op, int code);

/* The caller's hold: 0 it is good · EPERM there is none · ESTALE it was lost; with an error text. */
int lk__op_hold(const struct lk__op *op, struct lk__hold **hold);

/* --- force.c: taking it away ----------------------------------------------------------------------------------------- */

/* Run a script that is sent its deadline and nothing else. 0, or why not, with an error text. */
int lk__force(struct lk__object *object, const struct lk__command *command);

/* --- idempotent.c: requests that count once ------------------------------------------------------------------------------ */

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

/* --- acquire.c: becoming the holder of something that has a lease ---------------------------------------------------- */

/*
 * One acquire, on the caller's stack. The primitive fills in the first part and calls lk__acquire_run().
 * Everything that may fail for want of memory comes before the first byte is sent.
 */
struct lk__acquire {
    const struct lk__op *op;
    uint64_t owner;
    bool tied;                        /* the hold ends with the owner's thread */
    int64_t lease_ms;                 /* 0: the client's */
    int64_t min_hold_ms, max_hold_ms; /* 0: none */
    bool fixed;
    bool tokenless;     /* one of several holders: the token that came is not its own */
    bool queue_locally; /* of the owner's process one waits in Redis, the others in line */
    bool unleased;      /* what is taken has no lease: nothing is held, the server remembers the request */
    /*
     * Not NULL: the wait is a cancellation point, but not in line. Called on a cancelled thread instead of a
     * return from lk__acquire_run().
     */
    void (*unwind)(struct lk__acquire *acquire);
    /* Fill in acquire->waiter.ask and read, and the commands of acquire->hold: renew, release. */
    void (*set_commands)(struct lk__acquire *acquire);
    void *arg;                         /* for set_commands */
    struct lk__redissonwake *redisson; /* NULL: none */

    /* what set_commands() may use; waiter.machine.lease_ms is what the ask should ask for */
    struct lk__waiter waiter;
    struct lk__hold *hold;
    bool try_only;

    /* private */
    int64_t began_us;
    bool contended;
};

/*
 * 0 or EOWNERDEAD: acquire->hold is good, known to the object and renewed. Otherwise not held, with an error text; a
 * request whose answer got lost is taken back in the background.
 */
int lk__acquire_run(struct lk__acquire *acquire, int64_t limit_us);

/* --- release.c: giving it back ---------------------------------------------------------------------------------------- */

/*
 * Give all of `hold` back. 0 · ESTALE it had been lost · else the outcome is open, and the release goes on in
 * the background; with an error text. Then lk__object_drophold().
 */
int lk__object_release(struct lk__object *object, struct lk__hold *hold);

/* ESTALE, with an error text. */
int lk__gone(const struct lk__object *object);

#endif
