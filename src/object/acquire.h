/* SPDX-License-Identifier: MIT */
/*
 * acquire.h - acquiring something that has a lease, and giving it back
 */
#ifndef LK__OBJECT_ACQUIRE_H
#define LK__OBJECT_ACQUIRE_H

#include "object/op.h"
#include "object/redisson.h"

/* --- acquire.c: what a caller says of one acquire ----------------------------------------------------------------- */

struct lk__how {
    int64_t limit_us; /* of waiting for other holders */
    int64_t lease_ms; /* 0: the attribute's */
    int fixed;        /* 0: the attribute's; 1: yes; -1: no */
    lk_owner_t *by;   /* NULL: the calling thread */
    bool only_try;    /* a call without a limit that does not wait: EBUSY, where others are ETIMEDOUT or EDEADLK */
};

/* `given` NULL: waiting as long as it takes. 0 or EINVAL, with an error text. */
int lk__how_take(struct lk__how *how, const lk_how_t *given);

/* --- acquire.c ------------------------------------------------------------------------------------------------------ */

/*
 * One acquire, on the caller's stack. The primitive fills in the first part, plans, fills in the commands, and runs it.
 * Everything that may fail for want of memory comes before the first byte is sent.
 */
struct lk__acquire {
    struct lk__op *op;
    const struct lk__how *how;        /* what the caller says of this one acquire */
    bool ownerless;                   /* anybody may give it back */
    int holds, reads;                 /* levels, or permits, that it has first; who reads gets no token of its own */
    int64_t lease_ms;                 /* 0: the client's; like `fixed`, unless the caller says otherwise */
    int64_t min_hold_ms, max_hold_ms; /* 0: none */
    bool fixed;
    bool interruptible;           /* a signal handler that runs ends the wait: EINTR */
    struct lk__localqueue *queue; /* the first thread in it waits in Redis for all; NULL: each thread does */
    /*
     * NULL: that of the hold. Else what is taken has no lease: nothing is held, the server remembers the request, and
     * this gives it back; the primitive made it, and drops it.
     */
    struct lk__outboxentry *release;
    bool cancellable; /* the wait is a cancellation point, but not in the local queue */
    /*
     * Called instead of a return from lk__acquire_run() on a thread that was cancelled in the wait, or that a signal handler
     * ended there. Where nothing but the call is to be left, lk__acquire_leaveop().
     */
    void (*unwind)(struct lk__acquire *acquire);
    struct lk__redissonwake *redisson; /* NULL: none */

    /* set by lk__acquire_plan() */
    int64_t began_us;
    int64_t asked_ms; /* the lease to ask for */
    bool try_only;

    /* the commands */
    struct lk__command ask;
    void (*read)(const struct lk__reply *reply, struct lk__asked *asked); /* an answer to that */
    struct lk__command give_back;                                         /* of the hold, as what follows */
    const struct lk__script *renewal;
    const void *renewal_args;
    const char *suffix; /* NULL, or what its id ends with */

    /* Of a wait for a condition, which ends with its mutex, see src/cond/wait.c. */
    bool queues;                  /* an ask confirms a grant; the settings mark was looked at by an acquire before */
    struct lk__block *block;      /* NULL: the object's; else where the keys of `ask` and `give_back` are */
    struct lk__command held_back; /* with such a block: what gives it back once it is held */
    /* NULL, or called when nothing can fail any more for want of memory, before the first ask. Not 0: it ends so. */
    int (*begin)(struct lk__acquire *acquire);

    struct lk__hold *hold; /* told; NULL: not held, or what was taken has no lease */

    /* private */
    struct lk__waiter waiter;
    struct lk__qnode qnode; /* in `queue`; without a parker: not there */
    bool awaits_redisson;   /* a message of Redisson's wakes the waiter */
    struct lk__settingsmark *settings; /* NULL: not to be looked at */
    struct lk__settingstext *text;     /* what that points into, if it is to be freed */
    int64_t confirmed_us;              /* when what replicas acknowledged was sent; 0: they were not asked */
    bool unconfirmed;                  /* granted, but too few replicas acknowledged it */
    bool contended;
};

/* From now on its time counts. */
void lk__acquire_plan(struct lk__acquire *acquire);

/*
 * 0 or EOWNERDEAD: acquire->hold is good, known to the object and renewed. Otherwise not held, with an error text; a
 * request whose answer got lost is taken back in the background.
 */
int lk__acquire_run(struct lk__acquire *acquire);

/* What a settings mark points into. */
struct lk__settingstext {
    char key[LK__KEY_MAX];
    char words[64];
};

/* An acquire that was begun; private to it. */
struct lk__begun {
    struct lk__acquire *acquire;
    struct lk__attempt attempt;
    struct lk__settingstext text;
    struct lk__settingsmark settings;
    int code; /* not 0: it could not begin */
};

/*
 * lk__acquire_run() of one that only tries, in two parts, of one thread: up to its first ask, for which nothing waits, and
 * the rest. So several tries are under way at once.
 */
void lk__acquire_begin(struct lk__begun *begun, struct lk__acquire *acquire);
int lk__acquire_end(struct lk__begun *begun);

/* A release that was begun; private to it. */
struct lk__releasing {
    struct lk__object *object;
    struct lk__hold *hold;
    struct lk__outboxentry *release;
    int64_t end_us; /* of its lease */
    bool ended;     /* here, by this release; else the lease was lost before */
    struct lk__call call;
    struct lk__ongoing ongoing;
};

/* lk__op_givebackby() in two parts, of one thread, as lk__call_begin() has them. Then lk__object_drophold(). */
void lk__release_begin(struct lk__releasing *releasing, struct lk__object *object, struct lk__hold *hold,
                       struct lk__outboxentry *release);
int lk__release_end(struct lk__releasing *releasing);

/* --- op.c -------------------------------------------------------------------------------------------------------------- */

/* Begin a call that acquires. 0, and the hold that its owner has: a good one, or NULL. Or why not, and it is over. */
int lk__op_enterlock(struct lk__op *op, struct lk__handle handle, const struct lk__kind *kind,
                     const struct lk__how *how, struct lk__hold **hold);
/* End it, with its code. */
int lk__op_leavelock(struct lk__op *op, const struct lk__how *how, int code);
/* May a mutex be locked again by who has that hold? 0, or why not, with an error text. `errorcheck`: of that type. */
int lk__op_checkagain(const struct lk__op *op, const struct lk__hold *hold, const struct lk__how *how, bool errorcheck);

/* An `unwind`: the call ends, too. */
void lk__acquire_leaveop(struct lk__acquire *acquire);

/* An unlock that was begun. */
struct lk__unlocking {
    bool begun; /* else it is over, with that code */
    int code;
    struct lk__op op; /* private, as what follows */
    struct lk__releasing releasing;
};

/* lk__op_unlock() in two parts, of one thread: up to its request, and the rest. So several are under way at once. */
void lk__unlock_begin(struct lk__unlocking *unlocking, struct lk__handle handle, const struct lk__kind *kind,
                      lk_owner_t *owner);
/* In between: as lk__call_await(). */
bool lk__unlock_await(struct lk__unlocking *unlocking, int64_t until_us);
int lk__unlock_end(struct lk__unlocking *unlocking);

/* --- confirm.c ------------------------------------------------------------------------------------------------------ */

/*
 * It was granted, with that code, and counts only if so many replicas acknowledge it. `code`; or why it is not held, with an
 * error text: ESTALE somebody took it away before, so it is to be asked for again; but for a condition
 * that is ENOTCONN · ENOTCONN given back · EIO still being given back.
 */
int lk__acquire_confirm(struct lk__acquire *acquire, int code);
/* Release what an ask may have got, in the background: now, and once more when no copy of it can come any more. */
void lk__acquire_takeback(struct lk__acquire *acquire);

/* --- acquire.c, too --------------------------------------------------------------------------------------------------- */

/* Drop lost holds whose owners are gone: who becomes a holder does it, when it is told that there are some. */
void lk__object_droporphans(struct lk__object *object);

/* Returns ESTALE, with an error text. */
int lk__gone(const struct lk__object *object);

/* --- settings.c: settings that all who use a name should share --------------------------------------------------------- */

/* Is an acquire to look at the settings mark? The first one, and then now and then. */
bool lk__settings_isdue(const struct lk__object *object, int64_t now_us);
struct lk__settingsmark lk__settings_mark(const struct lk__object *object, struct lk__settingstext *text);
/*
 * Tell that others have other settings: the log and the listeners once. True: the caller is refused, with an error text, as it
 * is strict, or they speak another protocol.
 */
bool lk__settings_differ(struct lk__object *object, const char *mine, const char *found);
/* An acquire that was to look at the mark has ended. */
void lk__settings_note(struct lk__object *object, const struct lk__acquirefsm_result *result);

/* --- dated.c ------------------------------------------------------------------------------------------------------- */

/* What names no hold, such as taking it away from whoever holds it: a script that is sent its deadline and nothing else. */
int lk__force(struct lk__object *object, const struct lk__command *command, enum lk__verdict *verdict);

/*
 * Change a hold at the server, by a script that sets its lease, too. 0 and the verdict, DONE or GONE, when it is lost;
 * or why there is none, with an error text.
 */
int lk__update(struct lk__object *object, struct lk__hold *hold, const struct lk__command *command,
               enum lk__verdict *verdict);

/* Ask what changes nothing; `id` NULL: of no hold. 0 and the reply, or why there is none, with an error text. */
int lk__object_ask(const struct lk__object *object, const struct lk__command *command, const char *id,
                   struct lk__reply *reply);

/* ENOTCONN, with an error text: each request came too late. */
int lk__late(const struct lk__object *object);

#endif
