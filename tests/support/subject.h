/* SPDX-License-Identifier: MIT */
/*
 * subject.h - everything that can be held, behind one face: a fault is then tried on each
 *
 * A subject is an object of one kind with room for one holder at a time (a reader is kept out by a
 * writer). The latch is not among them: nobody holds it. Nor is the barrier, of which many parties hold one lease each.
 */
#ifndef TESTS_SUBJECT_H
#define TESTS_SUBJECT_H

#include "world.h"

struct subject;

struct subject_kind {
    const char *name; /* "fair mutex" */
    bool leased;      /* a hold ends with its lease; else it stays until it is given back */
    bool fenced;      /* holds have tokens */
    int (*init)(struct subject *s, lk_client_t *client, int64_t lease_ms);
    int (*take)(struct subject *s, int64_t timeout_ms); /* 0 tries once, and waits for nobody */
    int (*give)(struct subject *s);
    int (*remaining)(struct subject *s, int64_t *ms); /* NULL unless leased */
    int (*check)(struct subject *s);                  /* NULL unless leased */
    int (*extend)(struct subject *s, int64_t ms);     /* likewise */
    int (*token)(struct subject *s, uint64_t *token); /* NULL unless fenced */
    int (*queue)(struct subject *s, lk_waiter_t *waiters, unsigned capacity, unsigned *count); /* NULL: none */
    int wants;  /* what a waiter for it is said to want */
    int number; /* LK_KIND_... */
    int (*destroy)(struct subject *s);
    const char *held;   /* scripts that count, with the name as KEYS[1]: holders at the server ... */
    const char *queued; /* ... and those who wait there; NULL: nobody queues */
};

struct subject {
    const struct subject_kind *kind;
    char name[32];
    union {
        lk_mutex_t mutex;
        lk_rwlock_t rwlock;
        lk_sem_t sem;
        lk_once_t once;
    };
};

/* All kinds, ended by one without a name. */
extern const struct subject_kind subject_kinds[];

/*
 * What is done once, as a lock: to give a run back is to give it up. Nobody queues for it.
 */
extern const struct subject_kind subject_run_kind;

/* A subject named `name` of `client`; lease_ms 0: the client's. Its lasting keys may be left at the end. */
void subject_init(struct world *w, struct subject *s, const struct subject_kind *kind, lk_client_t *client,
                  const char *name, int64_t lease_ms);

/* Likewise, with the client's lease, and destroyed at the end of the test: see world.h. */
struct subject *world_subject(struct world *w, lk_client_t *client, const struct subject_kind *kind, const char *name);
struct subject *world_subjectwith(struct world *w, lk_client_t *client, const struct subject_kind *kind,
                                  const char *name, int64_t lease_ms);

/* The kind that keeps this one out: a writer for a reader, else its own. */
const struct subject_kind *subject_keeper(const struct subject_kind *kind);

/* The calls of its kind; the codes are the library's. */
int subject_take(struct subject *s, int64_t timeout_ms);
int subject_give(struct subject *s);
int subject_remaining(struct subject *s, int64_t *ms); /* of one without leases: 0, and LK_FOREVER */
int subject_check(struct subject *s);
int subject_extend(struct subject *s, int64_t lease_ms);
uint64_t subject_token(struct subject *s); /* 0 unless it is fenced */
int subject_queue(struct subject *s, lk_waiter_t *waiters, unsigned capacity, unsigned *count);
int subject_destroy(struct subject *s);

/* An errand takes a subject in a thread of its own, and gives it back at once. */
struct errand {
    struct worker worker;
    struct subject *subject;
    int64_t timeout_ms;
    int64_t began_ms, took_ms; /* took_ms: when the take returned; both: atomic builtins until it is joined */
    int64_t gave_ms;           /* when it was back */
    int took, gave;            /* codes; gave only if it took */
};
void errand_start(struct errand *errand, struct subject *subject, int64_t timeout_ms);
void errand_join(struct errand *errand);

/* Does it wait, as the server sees it? Of a kind without a queue: it asked a while ago. */
bool errand_waits(struct world *w, const struct errand *errand);
bool errand_took(const struct errand *errand); /* has the take returned? */

/* Work for threads, which waits PATIENT_MS at most. */
enum { PATIENT_MS = 20000 };
int subject_visit(void *subject); /* takes it and gives it back */
int give_subject(void *subject);
int await_latch_patiently(void *latch);

/* As the server sees it. */
int64_t subject_held(struct world *w, const struct subject *s);
int64_t subject_queued(struct world *w, const struct subject *s);
bool subject_listening(struct world *w, const struct subject *s);  /* all who wait for it receive messages */

/* Delete the queues, where some stand who died or were refused: each has an end. */
void subject_forget_queues(struct world *w);

/*
 * Run `body` for each kind, in a world of its own, begun with `server_args`. Prints the kind first, so
 * that a failure names it.
 */
void for_each_subject(const char *server_args, void (*body)(struct world *w, const struct subject_kind *kind));

/* Likewise all at once, each in a process of its own: only asserts for children may be used in `body`. */
void for_subjects_at_once(const char *server_args, void (*body)(struct world *w, const struct subject_kind *kind));

/* Such bodies, `NULL` for `server_args`, as the tests of a program: `return subject_run(this, that);` in main(). */
typedef void subject_test_fn(struct world *w, const struct subject_kind *kind);
typedef bool subject_filter_fn(const struct subject_kind *kind);
#define subject_run(...) subject_run_for(NULL, __VA_ARGS__)
#define leased_run(...) subject_run_for(subject_isleased, __VA_ARGS__)

/* Likewise for those kinds of which `of` says so, just before each test. */
#define subject_run_for(of, ...) subject_run_tests(of, #__VA_ARGS__, (subject_test_fn *const[]){ __VA_ARGS__ })
int subject_run_tests(subject_filter_fn *of, const char *names, subject_test_fn *const tests[]);
bool subject_isleased(const struct subject_kind *kind);

#endif
