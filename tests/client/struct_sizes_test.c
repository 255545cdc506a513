/* SPDX-License-Identifier: MIT */
/*
 * struct_sizes_test.c - programs that were built with other versions' headers run: with the first layouts, and with larger
 * ones
 *
 * The layouts here are those of the first version and stay as they are. A struct may get fields behind them.
 *
 * labels: memory
 */
#include "world.h"

#include <poll.h>
#include <string.h>

struct first_event {
    size_t size;
    int type, reason, kind;
    int64_t remaining_ms;
    uint64_t token, owner, count;
    char name[513];
};

struct first_mutexinfo {
    size_t size;
    int held, recoverable;
    unsigned holds, waiters;
    int64_t remaining_ms;
    uint64_t token;
    char holder[160];
};

struct first_rwlockinfo {
    size_t size;
    int mode, recoverable;
    unsigned readers, waiters, waiting_writers;
    int64_t remaining_ms;
    uint64_t token;
    char writer[160];
};

struct first_seminfo {
    size_t size;
    int64_t available;
    unsigned held, total, waiters;
};

struct first_latchinfo {
    size_t size;
    int set, opened, deleted;
    unsigned count;
};

struct first_condinfo {
    size_t size;
    unsigned waiters, woken;
    char mutex[160];
};

struct first_barrierinfo {
    size_t size;
    unsigned parties, arrived;
    int broken;
    uint64_t generation;
    char missing[160];
};

struct first_onceinfo {
    size_t size;
    int done, running;
    int64_t remaining_ms;
    uint64_t token;
    char runner[160];
};

struct first_waiter {
    char id[160];
    int wants;
    unsigned n;
};

struct first_inspected {
    size_t size;
    int kind, state;
    unsigned server, holders, waiters;
    int64_t remaining_ms, held_ms, waited_ms, number, total;
    uint64_t token;
    char holder[160];
    char name[513];
};

struct first_inspectstats {
    size_t size;
    unsigned long long keys, hidden;
    unsigned servers, servers_away, slots_missing;
};

struct first_inspectattr {
    size_t size;
    const char *pattern;
    unsigned kinds;
};

struct first_holder {
    char id[160];
    int64_t remaining_ms;
};

#define SAME(now, first, member)                                                                                       \
    _Static_assert(offsetof(now, member) == offsetof(first, member) &&                                                 \
                       sizeof(((now *)0)->member) == sizeof(((first *)0)->member),                                     \
                   "a field moved: programs built before do not know")
SAME(lk_event_t, struct first_event, size);
SAME(lk_event_t, struct first_event, type);
SAME(lk_event_t, struct first_event, reason);
SAME(lk_event_t, struct first_event, kind);
SAME(lk_event_t, struct first_event, remaining_ms);
SAME(lk_event_t, struct first_event, token);
SAME(lk_event_t, struct first_event, owner);
SAME(lk_event_t, struct first_event, count);
SAME(lk_event_t, struct first_event, name);
SAME(lk_mutexinfo_t, struct first_mutexinfo, size);
SAME(lk_mutexinfo_t, struct first_mutexinfo, held);
SAME(lk_mutexinfo_t, struct first_mutexinfo, recoverable);
SAME(lk_mutexinfo_t, struct first_mutexinfo, holds);
SAME(lk_mutexinfo_t, struct first_mutexinfo, waiters);
SAME(lk_mutexinfo_t, struct first_mutexinfo, remaining_ms);
SAME(lk_mutexinfo_t, struct first_mutexinfo, token);
SAME(lk_mutexinfo_t, struct first_mutexinfo, holder);
SAME(lk_rwlockinfo_t, struct first_rwlockinfo, size);
SAME(lk_rwlockinfo_t, struct first_rwlockinfo, mode);
SAME(lk_rwlockinfo_t, struct first_rwlockinfo, recoverable);
SAME(lk_rwlockinfo_t, struct first_rwlockinfo, readers);
SAME(lk_rwlockinfo_t, struct first_rwlockinfo, waiters);
SAME(lk_rwlockinfo_t, struct first_rwlockinfo, waiting_writers);
SAME(lk_rwlockinfo_t, struct first_rwlockinfo, remaining_ms);
SAME(lk_rwlockinfo_t, struct first_rwlockinfo, token);
SAME(lk_rwlockinfo_t, struct first_rwlockinfo, writer);
SAME(lk_seminfo_t, struct first_seminfo, size);
SAME(lk_seminfo_t, struct first_seminfo, available);
SAME(lk_seminfo_t, struct first_seminfo, held);
SAME(lk_seminfo_t, struct first_seminfo, total);
SAME(lk_seminfo_t, struct first_seminfo, waiters);
SAME(lk_latchinfo_t, struct first_latchinfo, size);
SAME(lk_latchinfo_t, struct first_latchinfo, set);
SAME(lk_latchinfo_t, struct first_latchinfo, opened);
SAME(lk_latchinfo_t, struct first_latchinfo, deleted);
SAME(lk_latchinfo_t, struct first_latchinfo, count);
SAME(lk_condinfo_t, struct first_condinfo, size);
SAME(lk_condinfo_t, struct first_condinfo, waiters);
SAME(lk_condinfo_t, struct first_condinfo, woken);
SAME(lk_condinfo_t, struct first_condinfo, mutex);
SAME(lk_barrierinfo_t, struct first_barrierinfo, size);
SAME(lk_barrierinfo_t, struct first_barrierinfo, parties);
SAME(lk_barrierinfo_t, struct first_barrierinfo, arrived);
SAME(lk_barrierinfo_t, struct first_barrierinfo, broken);
SAME(lk_barrierinfo_t, struct first_barrierinfo, generation);
SAME(lk_barrierinfo_t, struct first_barrierinfo, missing);
SAME(lk_onceinfo_t, struct first_onceinfo, size);
SAME(lk_onceinfo_t, struct first_onceinfo, done);
SAME(lk_onceinfo_t, struct first_onceinfo, running);
SAME(lk_onceinfo_t, struct first_onceinfo, remaining_ms);
SAME(lk_onceinfo_t, struct first_onceinfo, token);
SAME(lk_onceinfo_t, struct first_onceinfo, runner);
SAME(lk_waiter_t, struct first_waiter, id);
SAME(lk_waiter_t, struct first_waiter, wants);
SAME(lk_waiter_t, struct first_waiter, n);
SAME(lk_inspected_t, struct first_inspected, size);
SAME(lk_inspected_t, struct first_inspected, kind);
SAME(lk_inspected_t, struct first_inspected, state);
SAME(lk_inspected_t, struct first_inspected, server);
SAME(lk_inspected_t, struct first_inspected, holders);
SAME(lk_inspected_t, struct first_inspected, waiters);
SAME(lk_inspected_t, struct first_inspected, remaining_ms);
SAME(lk_inspected_t, struct first_inspected, held_ms);
SAME(lk_inspected_t, struct first_inspected, waited_ms);
SAME(lk_inspected_t, struct first_inspected, number);
SAME(lk_inspected_t, struct first_inspected, total);
SAME(lk_inspected_t, struct first_inspected, token);
SAME(lk_inspected_t, struct first_inspected, holder);
SAME(lk_inspected_t, struct first_inspected, name);
SAME(lk_inspectstats_t, struct first_inspectstats, size);
SAME(lk_inspectstats_t, struct first_inspectstats, keys);
SAME(lk_inspectstats_t, struct first_inspectstats, hidden);
SAME(lk_inspectstats_t, struct first_inspectstats, servers);
SAME(lk_inspectstats_t, struct first_inspectstats, servers_away);
SAME(lk_inspectstats_t, struct first_inspectstats, slots_missing);
SAME(lk_inspectattr_t, struct first_inspectattr, size);
SAME(lk_inspectattr_t, struct first_inspectattr, pattern);
SAME(lk_inspectattr_t, struct first_inspectattr, kinds);
SAME(lk_holder_t, struct first_holder, id);
SAME(lk_holder_t, struct first_holder, remaining_ms);

enum { LATER = 96, FRESH = 0x5a };

/* Memory of a struct of a certain size: what is behind it stays as it is. */
union given {
    size_t size;
    struct first_event event;
    struct first_mutexinfo mutex;
    struct first_rwlockinfo rwlock;
    struct first_seminfo sem;
    struct first_latchinfo latch;
    struct first_condinfo cond;
    struct first_barrierinfo barrier;
    struct first_onceinfo once;
    struct first_inspected inspected;
    struct first_inspectstats inspectstats;
    unsigned char bytes[sizeof(lk_event_t) + sizeof(lk_inspected_t) + 2 * LATER];
};

static union given given;

/* Make room for a struct of `size` bytes; returns the memory as what `call` takes. */
static void *room(size_t size)
{
    memset(&given, FRESH, sizeof given);
    given.size = size;
    return &given;
}

static bool bytes_are(size_t from, size_t until, unsigned char value)
{
    for (size_t i = from; i < until; i++)
        if (given.bytes[i] != value)
            return false;
    return true;
}

/* The size is the program's still, nothing behind it was touched, and what the library does not know is zero. */
static void expect_size(size_t size, size_t known)
{
    assert_int_equal(size, given.size);
    assert_true(bytes_are(size, sizeof given, FRESH));
    assert_true(size <= known || bytes_are(known, size, 0));
}

#define FIRST_OF(first, last) (offsetof(struct first, last) + sizeof(((struct first *)0)->last))

struct user {
    lk_events_t *events;
    lk_mutex_t *mutex;
    lk_rwlock_t *rwlock;
    lk_sem_t *sem;
    lk_latch_t *latch;
};

static struct user begin(struct world *w)
{
    lk_client_t *client = world_client(w, "connect_timeout=10s");
    return (struct user){ world_events(w, client), world_mutex(w, client, "orders", NULL),
                          world_rwlock(w, client, "config", NULL), world_sem(w, client, "pool", 3, NULL),
                          world_latch(w, client, "gate") };
}

static void look_at_all(const struct user *user, size_t mutex, size_t rwlock, size_t sem, size_t latch)
{
    assert_lk(0, lk_mutex_info(user->mutex, room(mutex)));
    expect_size(mutex, sizeof(lk_mutexinfo_t));
    assert_true(given.mutex.held == 1 && given.mutex.holds == 1 && given.mutex.token > 0 && given.mutex.holder[0] != 0);
    assert_lk(0, lk_rwlock_info(user->rwlock, room(rwlock)));
    expect_size(rwlock, sizeof(lk_rwlockinfo_t));
    assert_true(given.rwlock.mode == LK_RWLOCK_READING && given.rwlock.readers == 1 && given.rwlock.writer[0] == 0);
    assert_lk(0, lk_sem_info(user->sem, room(sem)));
    expect_size(sem, sizeof(lk_seminfo_t));
    assert_true(given.sem.available == 3 && given.sem.waiters == 0);
    assert_lk(0, lk_latch_info(user->latch, room(latch)));
    expect_size(latch, sizeof(lk_latchinfo_t));
    assert_true(given.latch.set == 1 && given.latch.count == 4);
}

static void infos_of_any_version_are_filled(struct world *w)
{
    struct user user = begin(w);
    world_allow(w, "*");
    assert_lk(0, lk_mutex_lock(user.mutex));
    assert_lk(0, lk_rwlock_rdlock(user.rwlock));
    assert_lk(0, lk_latch_trysetcount(user.latch, 4));
    look_at_all(&user, sizeof(struct first_mutexinfo), sizeof(struct first_rwlockinfo), sizeof(struct first_seminfo),
                sizeof(struct first_latchinfo));
    look_at_all(&user, sizeof(lk_mutexinfo_t), sizeof(lk_rwlockinfo_t), sizeof(lk_seminfo_t), sizeof(lk_latchinfo_t));
    look_at_all(&user, sizeof(lk_mutexinfo_t) + LATER, sizeof(lk_rwlockinfo_t) + LATER, sizeof(lk_seminfo_t) + LATER,
                sizeof(lk_latchinfo_t) + LATER);
    assert_lk(0, lk_mutex_unlock(user.mutex));
    assert_lk(0, lk_rwlock_unlock(user.rwlock));
}

/* Nobody waits, nobody came, nothing ran: then most of it is zero. */
static void look_at_the_rest(lk_cond_t *c, lk_barrier_t *b, lk_once_t *o, size_t cond, size_t barrier, size_t once)
{
    assert_lk(0, lk_cond_info(c, room(cond)));
    expect_size(cond, sizeof(lk_condinfo_t));
    assert_true(given.cond.waiters == 0 && given.cond.woken == 0);
    assert_lk(0, lk_barrier_info(b, room(barrier)));
    expect_size(barrier, sizeof(lk_barrierinfo_t));
    assert_true(given.barrier.parties == 0 && given.barrier.arrived == 0 && given.barrier.missing[0] == 0);
    assert_lk(0, lk_once_info(o, room(once)));
    expect_size(once, sizeof(lk_onceinfo_t));
    assert_true(given.once.running == 1 && given.once.token > 0 && given.once.runner[0] != 0);
}

static void so_are_those_that_came_later(struct world *w)
{
    lk_client_t *client = world_client(w, "connect_timeout=10s");
    lk_cond_t *cond = world_cond(w, client, "orders", NULL);
    lk_barrier_t *barrier = world_barrier(w, client, "orders", 2, NULL);
    lk_once_t *once = world_once(w, client, "orders", NULL);
    assert_lk(0, lk_once_begin(once, 0));
    look_at_the_rest(cond, barrier, once, sizeof(struct first_condinfo), sizeof(struct first_barrierinfo),
                     sizeof(struct first_onceinfo));
    look_at_the_rest(cond, barrier, once, sizeof(lk_condinfo_t) + LATER, sizeof(lk_barrierinfo_t) + LATER,
                     sizeof(lk_onceinfo_t) + LATER);
    assert_lk(EINVAL, lk_cond_info(cond, room(FIRST_OF(first_condinfo, mutex) - 1)));
    assert_lk(EINVAL, lk_barrier_info(barrier, room(FIRST_OF(first_barrierinfo, missing) - 1)));
    assert_lk(EINVAL, lk_once_info(once, room(FIRST_OF(first_onceinfo, runner) - 1)));
    assert_true(bytes_are(sizeof(size_t), sizeof given, FRESH));
    assert_lk(0, lk_once_fail(once));
}

static void expect_refused(const struct user *user, size_t mutex, size_t rwlock, size_t sem, size_t latch, size_t event)
{
    assert_lk(EINVAL, lk_mutex_info(user->mutex, room(mutex)));
    assert_lk(EINVAL, lk_rwlock_info(user->rwlock, room(rwlock)));
    assert_lk(EINVAL, lk_sem_info(user->sem, room(sem)));
    assert_lk(EINVAL, lk_latch_info(user->latch, room(latch)));
    assert_lk(EINVAL, lk_events_next(user->events, room(event)));
    assert_true(bytes_are(sizeof(size_t), sizeof given, FRESH));
}

static void no_size_or_one_below_the_first_is_refused(struct world *w)
{
    static const size_t garbage[] = { 0, sizeof(size_t), (size_t)1 << 32, (size_t)-1 };
    struct user user = begin(w);
    for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++)
        expect_refused(&user, garbage[i], garbage[i], garbage[i], garbage[i], garbage[i]);
    expect_refused(&user, FIRST_OF(first_mutexinfo, holder) - 1, FIRST_OF(first_rwlockinfo, writer) - 1,
                   FIRST_OF(first_seminfo, waiters) - 1, FIRST_OF(first_latchinfo, count) - 1,
                   FIRST_OF(first_event, name) - 1);
    assert_lk(EINVAL, lk_mutex_info(user.mutex, NULL));
    assert_lk(EINVAL, lk_rwlock_info(user.rwlock, NULL));
    assert_lk(EINVAL, lk_sem_info(user.sem, NULL));
    assert_lk(EINVAL, lk_latch_info(user.latch, NULL));
    assert_lk(EINVAL, lk_events_next(user.events, NULL));
}

static void expect_loss(const struct user *user, size_t size)
{
    struct pollfd polled = { .events = POLLIN };
    assert_lk(0, lk_events_fd(user->events, &polled.fd));
    assert_lk(0, lk_mutex_lock(user->mutex));
    assert_lk(0, lk_mutex_forceunlock(user->mutex));
    assert_lk(ESTALE, lk_mutex_check(user->mutex));
    assert_int_equal(1, poll(&polled, 1, 5000));
    assert_lk(0, lk_events_next(user->events, room(size)));
    expect_size(size, sizeof(lk_event_t));
    assert_true(given.event.type == LK_EVENT_LOST && given.event.kind == LK_KIND_MUTEX && given.event.token > 0);
    assert_string_equal("orders", given.event.name);
    assert_lk(ESTALE, lk_mutex_unlock(user->mutex));
}

static void events_of_any_version_are_filled(struct world *w)
{
    struct user user = begin(w);
    world_allow(w, "*");
    expect_loss(&user, sizeof(struct first_event));
    expect_loss(&user, sizeof(lk_event_t));
    expect_loss(&user, sizeof(lk_event_t) + LATER);
}

enum { WAITERS = 3 };

static void expect_queue(lk_mutex_t *mutex, size_t stride)
{
    unsigned char array[(WAITERS + 1) * (sizeof(lk_waiter_t) + LATER)];
    unsigned count;
    memset(array, FRESH, sizeof array);
    assert_lk(0, lk_mutex_queue(mutex, (lk_waiter_t *)(void *)array, stride, WAITERS, &count));
    assert_int_equal(WAITERS, count);
    for (unsigned i = 0; i < WAITERS; i++) {
        struct first_waiter waiter;
        memcpy(&waiter, array + i * stride, sizeof waiter);
        assert_true(strchr(waiter.id, ':') != NULL && waiter.wants == LK_WANTS_LOCK && waiter.n == 1);
        for (size_t at = sizeof(lk_waiter_t); at < stride; at++)
            assert_int_equal(0, array[i * stride + at]);
    }
    assert_int_equal(FRESH, array[WAITERS * stride]);
}

/* An array has one size for all its elements, that of the program that made it. */
static void queues_of_any_version_are_filled(struct world *w)
{
    static const lk_mutexattr_t fair = { .size = sizeof fair, .fair = 1 };
    lk_mutex_t *orders = world_mutex(w, world_client(w, "connect_timeout=10s"), "orders", &fair);
    struct worker waiters[WAITERS];
    unsigned count;
    assert_lk(0, lk_mutex_lock(orders));
    for (int i = 0; i < WAITERS; i++)
        worker_start(&waiters[i], lock_and_unlock, orders);
    eventually(world_queued(w, "orders") == WAITERS, 5000);
    expect_queue(orders, sizeof(struct first_waiter));
    expect_queue(orders, sizeof(lk_waiter_t));
    expect_queue(orders, sizeof(lk_waiter_t) + LATER);
    assert_lk(EINVAL, lk_mutex_queue(orders, room(0), FIRST_OF(first_waiter, n) - 1, WAITERS, &count));
    assert_lk(EINVAL, lk_mutex_queue(orders, NULL, sizeof(lk_waiter_t), WAITERS, &count));
    assert_lk(0, lk_mutex_unlock(orders));
    for (int i = 0; i < WAITERS; i++)
        assert_int_equal(0, worker_join(&waiters[i]));
}

/* A walk with attributes, an object and statistics of these sizes. */
static void walk_with(lk_client_t *client, size_t attr, size_t inspected, size_t stats)
{
    lk_inspect_t *walk;
    struct {
        struct first_inspectattr first;
        unsigned char later[LATER];
    } asked = { .first = { attr, "ord*", 1U << LK_KIND_MUTEX } };
    assert_lk(0, lk_inspect_open(&walk, client, (const lk_inspectattr_t *)(const void *)&asked));
    assert_lk(0, lk_inspect_next(walk, room(inspected)));
    expect_size(inspected, sizeof(lk_inspected_t));
    assert_true(given.inspected.holders == 1 && given.inspected.token > 0);
    assert_string_equal("orders", given.inspected.name);
    assert_lk(0, lk_inspect_stats(walk, room(stats)));
    expect_size(stats, sizeof(lk_inspectstats_t));
    assert_true(given.inspectstats.keys > 0 && given.inspectstats.servers == 1);
    assert_lk(EINVAL, lk_inspect_next(walk, room(FIRST_OF(first_inspected, name) - 1)));
    assert_lk(EINVAL, lk_inspect_stats(walk, room(FIRST_OF(first_inspectstats, slots_missing) - 1)));
    assert_true(bytes_are(sizeof(size_t), sizeof given, FRESH));
    lk_inspect_close(walk);
    walk = NULL;
    asked.first.size = FIRST_OF(first_inspectattr, kinds) - 1;
    assert_lk(EINVAL, lk_inspect_open(&walk, client, (const lk_inspectattr_t *)(const void *)&asked));
    asked.first.size = sizeof asked;
    asked.later[LATER - 1] = 1; /* a field that this version does not know, and that is set */
    assert_lk(EINVAL, lk_inspect_open(&walk, client, (const lk_inspectattr_t *)(const void *)&asked));
    assert_null(walk);
}

static void expect_holder(lk_client_t *client, size_t stride)
{
    unsigned char array[sizeof(lk_holder_t) + LATER + 1];
    struct first_holder holder;
    unsigned count;
    memset(array, FRESH, sizeof array);
    assert_lk(0, lk_inspect_holders(client, LK_KIND_MUTEX, "orders", (lk_holder_t *)(void *)array, stride, 1, &count));
    assert_int_equal(1, count);
    memcpy(&holder, array, sizeof holder);
    assert_true(strchr(holder.id, ':') != NULL && holder.remaining_ms > 0);
    for (size_t at = sizeof(lk_holder_t); at < stride; at++)
        assert_int_equal(0, array[at]);
    assert_int_equal(FRESH, array[stride]);
}

static void walks_of_any_version_are_filled(struct world *w)
{
    lk_client_t *client = world_client(w, "connect_timeout=10s");
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    walk_with(client, sizeof(struct first_inspectattr), sizeof(struct first_inspected),
              sizeof(struct first_inspectstats));
    walk_with(client, sizeof(lk_inspectattr_t) + LATER, sizeof(lk_inspected_t) + LATER,
              sizeof(lk_inspectstats_t) + LATER);
    expect_holder(client, sizeof(struct first_holder));
    expect_holder(client, sizeof(lk_holder_t) + LATER);
    assert_lk(0, lk_mutex_unlock(orders));
}

int main(void)
{
    return world_run(infos_of_any_version_are_filled, so_are_those_that_came_later, no_size_or_one_below_the_first_is_refused,
                     events_of_any_version_are_filled, queues_of_any_version_are_filled,
                     walks_of_any_version_are_filled);
}
