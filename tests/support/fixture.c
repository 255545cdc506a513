/* SPDX-License-Identifier: MIT */
/* fixture.c - clients and objects that end with a test, and what threads do with them: see world.h */
#include "client/client.h"
#include "world.h"

#include <stdlib.h>
#include <string.h>

enum { OPEN_TRIES = 10 };

struct world_ending {
    const void *parent;
    void *object;
    void (*end)(void *object);
};

void world_at_end(struct world *w, const void *parent, void *object, void (*end)(void *object))
{
    if (w->ending_count == w->ending_room) {
        w->ending_room = 2 * w->ending_room + 8;
        w->endings = realloc(w->endings, w->ending_room * sizeof *w->endings);
        assert_that(w->endings != NULL);
    }
    w->endings[w->ending_count++] = (struct world_ending){ parent, object, end };
}

static struct world_ending take_out(struct world *w, size_t i)
{
    struct world_ending ending = w->endings[i];
    memmove(&w->endings[i], &w->endings[i + 1], (--w->ending_count - i) * sizeof ending);
    return ending;
}

void world_forget(struct world *w, const void *object)
{
    for (size_t i = w->ending_count; i-- > 0;)
        if (w->endings[i].object == object)
            take_out(w, i);
}

/* The children of what is ended are younger, so they come before it. */
void world_close(struct world *w, const void *object)
{
    for (size_t i = w->ending_count; i-- > 0;) {
        if (object != NULL && w->endings[i].object != object && w->endings[i].parent != object)
            continue;
        struct world_ending ending = take_out(w, i);
        if (ending.object != object)
            world_close(w, ending.object);
        ending.end(ending.object);
        i = i < w->ending_count ? i : w->ending_count;
    }
}

void assert_says_result(const char *words, const char *file, int line)
{
    if (strstr(lk_errortext(), words) == NULL)
        assert_failed(file, line, "\"%s\" does not say \"%s\"", lk_errortext(), words);
}

/* --- clients and objects ------------------------------------------------------------------------------- */

static void end_client(void *client)
{
    assert_lk(0, lk_client_close(client));
}

int open_patiently(lk_client_t **client, const char *url)
{
    int code, tries = 0;
    bool late;
    do {
        code = lk_client_open(client, url);
        late = strstr(lk_errortext(), "(connect_timeout)") != NULL || strstr(lk_errortext(), "in time") != NULL;
    } while (code == ENOTCONN && late && ++tries < OPEN_TRIES);
    return code;
}

static void end_second(void *other)
{
    world_end(other);
}

struct world *world_second(struct world *w)
{
    world_redis(w, "PING"); /* its connection is there before those of the other one are counted */
    struct world *other = world_begin(NULL);
    world_at_end(w, NULL, other, end_second);
    return other;
}

lk_client_t *world_client_at(struct world *w, const void *parent, const char *url)
{
    lk_client_t *client = NULL;
    assert_lk(0, open_patiently(&client, url));
    world_at_end(w, parent, client, end_client);
    return client;
}

lk_client_t *world_client(struct world *w, const char *options)
{
    return world_client_at(w, NULL, world_url(w, options));
}

lk_client_t *world_open(struct world *w, const char *options)
{
    lk_client_t *client = world_client(w, options);
    world_forget(w, client);
    return client;
}

bool client_settled(lk_client_t *client)
{
    lk__watchdog_lock(&client->dog);
    bool settled = client->dog.outbox.pending == 0;
    lk__mu_unlock(&client->dog.mu);
    return settled;
}

int close_by_hand(struct world *w, lk_client_t *client)
{
    world_forget(w, client);
    return lk_client_close(client);
}

static void end_mutex(void *mutex)
{
    assert_lk(0, lk_mutex_destroy(mutex));
    free(mutex);
}

lk_mutex_t *world_mutex(struct world *w, lk_client_t *client, const char *name, const lk_mutexattr_t *attr)
{
    lk_mutex_t *mutex = calloc(1, sizeof *mutex);
    assert_lk(0, lk_mutex_init(mutex, client, name, attr));
    world_at_end(w, client, mutex, end_mutex);
    return mutex;
}

static void end_stripes(void *stripes)
{
    assert_lk(0, lk_stripes_destroy(stripes));
    free(stripes);
}

lk_stripes_t *world_stripes(struct world *w, lk_client_t *client, const char *name, unsigned n,
                            const lk_mutexattr_t *attr)
{
    lk_stripes_t *stripes = calloc(1, sizeof *stripes);
    assert_lk(0, lk_stripes_initattr(stripes, client, name, n, attr));
    world_at_end(w, client, stripes, end_stripes);
    return stripes;
}

static void end_multi(void *multi)
{
    assert_lk(0, lk_multi_destroy(multi));
    free(multi);
}

lk_multi_t *world_multi(struct world *w, lk_client_t *client)
{
    lk_multi_t *multi = calloc(1, sizeof *multi);
    assert_lk(0, lk_multi_init(multi));
    world_at_end(w, client, multi, end_multi);
    return multi;
}

static void end_rwlock(void *rwlock)
{
    assert_lk(0, lk_rwlock_destroy(rwlock));
    free(rwlock);
}

lk_rwlock_t *world_rwlock(struct world *w, lk_client_t *client, const char *name, const lk_rwlockattr_t *attr)
{
    lk_rwlock_t *rwlock = calloc(1, sizeof *rwlock);
    assert_lk(0, lk_rwlock_init(rwlock, client, name, attr));
    world_at_end(w, client, rwlock, end_rwlock);
    return rwlock;
}

static void end_sem(void *sem)
{
    assert_lk(0, lk_sem_destroy(sem));
    free(sem);
}

lk_sem_t *world_sem(struct world *w, lk_client_t *client, const char *name, unsigned value, const lk_semattr_t *attr)
{
    lk_sem_t *sem = calloc(1, sizeof *sem);
    assert_lk(0, lk_sem_init(sem, client, name, value, attr));
    world_at_end(w, client, sem, end_sem);
    return sem;
}

static void end_latch(void *latch)
{
    assert_lk(0, lk_latch_destroy(latch));
    free(latch);
}

lk_latch_t *world_latchwith(struct world *w, lk_client_t *client, const char *name, const lk_latchattr_t *attr)
{
    lk_latch_t *latch = calloc(1, sizeof *latch);
    assert_lk(0, lk_latch_init(latch, client, name, attr));
    world_at_end(w, client, latch, end_latch);
    return latch;
}

lk_latch_t *world_latch(struct world *w, lk_client_t *client, const char *name)
{
    return world_latchwith(w, client, name, NULL);
}

static void end_once(void *once)
{
    assert_lk(0, lk_once_destroy(once));
    free(once);
}

lk_once_t *world_once(struct world *w, lk_client_t *client, const char *name, const lk_onceattr_t *attr)
{
    lk_once_t *once = calloc(1, sizeof *once);
    assert_lk(0, lk_once_init(once, client, name, attr));
    world_at_end(w, client, once, end_once);
    return once;
}

static void end_barrier(void *barrier)
{
    assert_lk(0, lk_barrier_destroy(barrier));
    free(barrier);
}

lk_barrier_t *world_barrier(struct world *w, lk_client_t *client, const char *name, unsigned parties,
                            const lk_barrierattr_t *attr)
{
    lk_barrier_t *barrier = calloc(1, sizeof *barrier);
    assert_lk(0, lk_barrier_init(barrier, client, name, parties, attr));
    world_at_end(w, client, barrier, end_barrier);
    return barrier;
}

static void end_cond(void *cond)
{
    assert_lk(0, lk_cond_destroy(cond));
    free(cond);
}

lk_cond_t *world_cond(struct world *w, lk_client_t *client, const char *name, const lk_condattr_t *attr)
{
    lk_cond_t *cond = calloc(1, sizeof *cond);
    assert_lk(0, lk_cond_init(cond, client, name, attr));
    world_at_end(w, client, cond, end_cond);
    return cond;
}

static void end_events(void *events)
{
    assert_lk(0, lk_events_close(events));
}

lk_events_t *world_events(struct world *w, lk_client_t *client)
{
    lk_events_t *events = NULL;
    assert_lk(0, lk_events_open(client, &events));
    world_at_end(w, client, events, end_events);
    return events;
}

static void end_owner(void *owner)
{
    assert_lk(0, lk_owner_free(owner));
}

lk_owner_t *world_newowner(struct world *w, lk_client_t *client)
{
    lk_owner_t *owner;
    assert_lk(0, lk_owner_new(client, &owner));
    world_at_end(w, client, owner, end_owner);
    return owner;
}

/* --- work for threads ------------------------------------------------------------------------------------ */

int lock_mutex(void *mutex)
{
    return lk_mutex_lock(mutex);
}

int lock_and_unlock(void *mutex)
{
    int rc = lk_mutex_lock(mutex);
    return rc != 0 ? rc : lk_mutex_unlock(mutex);
}

int lock_rounds(lk_mutex_t *mutex, int rounds)
{
    int rc = 0;
    for (int i = 0; i < rounds && rc == 0; i++)
        rc = lock_and_unlock(mutex);
    return rc;
}

struct two {
    lk_mutex_t *const *mutexes;
    int rounds;
    int here; /* atomic builtins */
};

static int lock_one_of_two(int index, void *arg)
{
    struct two *two = arg;
    __atomic_add_fetch(&two->here, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&two->here, __ATOMIC_SEQ_CST) < 2) /* else one may be done before the other comes */
        sleep_ms(1);
    return lock_rounds(two->mutexes[index], two->rounds);
}

void hand_to_and_fro(lk_mutex_t *const mutexes[2], int rounds)
{
    assert_int_equal(0, run_threads(2, lock_one_of_two, &(struct two){ mutexes, rounds, 0 }));
}

int read_once(void *rwlock)
{
    int rc = lk_rwlock_rdlock(rwlock);
    return rc != 0 ? rc : lk_rwlock_unlock(rwlock);
}

int write_once(void *rwlock)
{
    int rc = lk_rwlock_wrlock(rwlock);
    return rc != 0 ? rc : lk_rwlock_unlock(rwlock);
}

int await_latch(void *latch)
{
    return lk_latch_wait(latch);
}

int lock_and_unlock_all(void *multi)
{
    int rc = lk_multi_lockfor(multi, 20000);
    return rc != 0 ? rc : lk_multi_unlock(multi);
}

void use_default(const char *url)
{
    assert_that(setenv("LATCHKEY_URL", url, 1) == 0);
}

void close_default(void)
{
    lk_client_t *client;
    assert_lk(0, lk_client_default(&client));
    assert_lk(0, lk_client_close(client));
}

/* --- blows ------------------------------------------------------------------------------------------------- */

void world_blow(struct world *w, int which)
{
    if (which == 0)
        world_redis(w, "SCRIPT FLUSH");
    if (which >= 2)
        world_killsubscriptions(w);
    if (which % 2 == 1)
        world_killcommands(w);
}

static int run_eight(void *work)
{
    int (*const *visit)(int index, void *arg) = work;
    return run_threads(8, *visit, NULL);
}

int world_hail(struct world *w, int (*work)(int index, void *arg), struct gate *stop)
{
    struct worker all;
    worker_start(&all, run_eight, &work);
    for (int i = 0; i < 100; i++) {
        world_blow(w, i % WORLD_BLOWS);
        sleep_ms(20);
    }
    gate_open(stop);
    return worker_join(&all);
}
