/* SPDX-License-Identifier: MIT */
/*
 * outbox.h - commands that are resent until they are answered or past their end, with no caller waiting
 *
 * Each is an entry, made before the request that it may have to undo is sent: by then it has its memory, its timer and
 * a running thread, so that nothing can fail when it is needed.
 */
#ifndef LK__OUTBOX_H
#define LK__OUTBOX_H

#include "redis/redis.h"

struct lk__watchdog;
struct lk__inflight;

/* What the command says of a date. */
enum lk__dating {
    LK__UNDATED,
    LK__DEADLINE, /* past it the command does nothing */
    LK__KEEP      /* before it what is given back is free for nobody */
};

struct lk__outboxentry {
    atomic_int refs;                             /* its owner's, and the outbox's while it is pending */
    unsigned char flags;                         /* sent with the command, as are the next ones */
    unsigned char dating;                        /* enum lk__dating */
    bool placed;                                 /* its subject has a place in a queue, which outlasts its end_us */
    /* these five under dog->mu */
    bool pending : 1;
    bool inflight : 1;
    bool unawaited : 1; /* nothing is held by what it gives back: it only serves those who wait, and no close waits for it */
    unsigned char manner : 2; /* enum lk__manner, of the next request */
    void (*free)(struct lk__outboxentry *entry); /* frees the memory that it is part of */

    /* set before it is sent for the first time */
    struct lk__command command; /* script NULL: none, it is never sent */
    struct lk__block *block;    /* a reference: where keys and arguments of the command lie */
    const char *id;             /* in the same memory as the entry */
    int64_t nth;
    struct lk__until until; /* what `dating` says */
    /* Until then a copy of what the command undoes may take effect, so only a later answer ends the resending. */
    struct lk__until past;

    /* under dog->mu */
    int64_t end_us;         /* by then nothing is held by the command's subject: the entry is given up */
    struct lk__timer timer; /* when it is sent next */
};

struct lk__outbox {
    struct lk__heap heap;    /* under dog->mu: entries that are pending and not in flight */
    size_t pending;          /* under dog->mu: how many entries are pending that somebody may wait for */
    pthread_cond_t answered; /* with dog->mu: an entry is not pending any more */
};

/* The most bytes that the arguments of a command may have whose entry is alone in its memory. */
enum { LK__OUTBOX_ARGS = 48 };

/* A new entry, alone in its memory, with a copy of `id` and a reference to `block`. NULL: ENOMEM or ECANCELED, with an error text. */
struct lk__outboxentry *lk__outboxentry_new(struct lk__watchdog *dog, const char *id, struct lk__block *block);
/* What such an entry sends. The arguments are copied; keys, and texts that they point to, are in the entry's block. */
void lk__outboxentry_set(struct lk__outboxentry *entry, const struct lk__command *command, size_t args_size);

static inline void lk__outboxentry_ref(struct lk__outboxentry *entry)
{
    atomic_fetch_add(&entry->refs, 1);
}

/* Accepts NULL; not under dog->mu. */
static inline void lk__outboxentry_unref(struct lk__outboxentry *entry)
{
    if (entry != NULL && atomic_fetch_sub(&entry->refs, 1) == 1)
        entry->free(entry);
}

/* What the entry's command is sent with. */
struct lk__sent lk__outboxentry_sent(const struct lk__outboxentry *entry);

/* Send the entry from now on until it is answered, or `end_us`. */
void lk__outbox_send(struct lk__watchdog *dog, struct lk__outboxentry *entry, int64_t end_us);
/* Likewise of what was given back already, so that who waits for it is served; unless the entry is sent anyway. */
void lk__outbox_handon(struct lk__watchdog *dog, struct lk__outboxentry *entry, int64_t end_us);
/* Wait until no entry is pending but for those that only hand on, or `until_us`. */
void lk__outbox_settle(struct lk__watchdog *dog, int64_t until_us);

void lk__outbox_init(struct lk__outbox *outbox);
void lk__outbox_destroy(struct lk__outbox *outbox);

/* --- for the watchdog's own files; all under dog->mu ------------------------------------------------------------- */

/* lk__outbox_send() and lk__outbox_handon() under dog->mu; nothing once the watchdog is stopping. */
void lk__outbox_add(struct lk__watchdog *dog, struct lk__outboxentry *entry, int64_t end_us);
void lk__outbox_addunawaited(struct lk__watchdog *dog, struct lk__outboxentry *entry, int64_t end_us);
/* Is the first entry one that waits for others to be answered? */
bool lk__outbox_isheldup(struct lk__watchdog *dog);
/* Send entries that are due, as many as may be under way. Leaves dog->mu and takes it again. */
void lk__outbox_serve(struct lk__watchdog *dog, int64_t now_us);
/* The request of an entry is over. Leaves dog->mu and takes it again. */
void lk__outbox_over(struct lk__watchdog *dog, const struct lk__inflight *inflight, int64_t now_us);
/* Give up all pending entries; none is in flight. True: there were none that anybody waits for. Leaves dog->mu and takes it again. */
bool lk__outbox_stop(struct lk__watchdog *dog);

#endif
