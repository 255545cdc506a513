/* SPDX-License-Identifier: MIT */
/*
 * hour.c - an hour of 20 machines with 4 threads each that use all primitives about once a second, without a fault
 *
 * It is for measuring: how much virtual time a real second has room for. SIM_HOUR_S=60 makes the hour a minute.
 */
#include "workload.h"

#include <latchkey/latchkey.h>

#include <stdio.h>
#include <stdlib.h>

enum { MACHINES = 20, THREADS = 4, NAMES = 10, LEAST_MS = 500, MOST_MS = 1500, PARTIES = 2 };

struct shared {
    struct gate over;
    int64_t calls[MACHINES][THREADS];
};

struct machine {
    struct world *w;
    struct shared *shared;
    unsigned number;
    lk_client_t *client;
    lk_mutex_t plain[NAMES], fair[NAMES], jobs;
    lk_rwlock_t tables[NAMES];
    lk_sem_t counting, leased;
    lk_cond_t some;
    lk_latch_t latches[NAMES];
    lk_barrier_t barrier;
    lk_once_t onces[NAMES];
};

struct user {
    struct machine *machine;
    struct luck luck;
    unsigned number;
};

/* Nothing fails: others may have it, that is all. */
static bool succeeds(const char *what, int code, int busy)
{
    must(code == 0 || code == busy, "%s returned %s", what, code_name(code));
    return code == 0;
}

static void rest_short(struct user *user)
{
    rest_ms(1 + (int64_t)luck_below(&user->luck, 20));
}

static void use_mutex(struct user *user, lk_mutex_t *mutex)
{
    if (succeeds("a lock", lk_mutex_lockfor(mutex, 5000), ETIMEDOUT)) {
        rest_short(user);
        succeeds("an unlock", lk_mutex_unlock(mutex), 0);
    }
}

static void use_table(struct user *user, lk_rwlock_t *table)
{
    bool writes = luck_onein(&user->luck, 4);
    int code = writes ? lk_rwlock_wrlockfor(table, 5000) : lk_rwlock_rdlockfor(table, 5000);
    if (succeeds(writes ? "a write lock" : "a read lock", code, ETIMEDOUT)) {
        rest_short(user);
        succeeds("an unlock of a read-write lock", lk_rwlock_unlock(table), 0);
    }
}

static void use_permit(struct user *user, lk_sem_t *sem)
{
    if (succeeds("a wait for a permit", lk_sem_waitfor(sem, 5000), ETIMEDOUT)) {
        rest_short(user);
        succeeds("a post", lk_sem_post(sem), 0);
    }
}

static void use_condition(struct user *user)
{
    struct machine *machine = user->machine;
    if (!succeeds("a lock", lk_mutex_lockfor(&machine->jobs, 5000), ETIMEDOUT))
        return;
    if (luck_onein(&user->luck, 2))
        succeeds("a signal", lk_cond_signal(&machine->some), 0);
    else
        succeeds("a wait for a condition", lk_cond_waitfor(&machine->some, &machine->jobs, 1000), ETIMEDOUT);
    succeeds("an unlock", lk_mutex_unlock(&machine->jobs), 0);
}

static void use_latch(struct user *user, lk_latch_t *latch)
{
    if (succeeds("a count", lk_latch_trysetcount(latch, 1), EEXIST))
        rest_short(user);
    succeeds("a countdown", lk_latch_countdown(latch), ENOENT);
    succeeds("a wait for a latch", lk_latch_waitfor(latch, 1000), ETIMEDOUT);
}

static void use_once(struct user *user, lk_once_t *once)
{
    if (luck_onein(&user->luck, 4))
        succeeds("a reset", lk_once_reset(once), ENOENT);
    int code = lk_once_begin(once, 1000);
    if (code != ETIMEDOUT && succeeds("a run", code, EALREADY)) {
        rest_short(user);
        succeeds("the end of a run", lk_once_end(once, "done"), 0);
    }
}

static void meet(struct user *user)
{
    lk_barrier_t *barrier = &user->machine->barrier;
    int code = lk_barrier_waitfor(barrier, 1000);
    if (code == ECANCELED || code == ETIMEDOUT)
        lk_barrier_reset(barrier);
    else
        succeeds("a barrier", code, LK_BARRIER_SERIAL);
}

static void use_both(struct user *user, unsigned one)
{
    struct machine *machine = user->machine;
    lk_multi_t both;
    assert_lk(0, lk_multi_init(&both));
    assert_lk(0, lk_multi_addmutex(&both, &machine->plain[one]));
    assert_lk(0, lk_multi_addread(&both, &machine->tables[one]));
    if (succeeds("a lock of two", lk_multi_lockfor(&both, 5000), ETIMEDOUT)) {
        rest_short(user);
        succeeds("an unlock of two", lk_multi_unlock(&both), 0);
    }
    assert_lk(0, lk_multi_destroy(&both));
}

static void act(struct user *user)
{
    struct machine *machine = user->machine;
    unsigned one = (unsigned)luck_below(&user->luck, NAMES);
    switch (luck_below(&user->luck, 10)) {
    case 0:
        use_mutex(user, &machine->fair[one]);
        break;
    case 1:
        use_table(user, &machine->tables[one]);
        break;
    case 2:
        use_permit(user, &machine->counting);
        break;
    case 3:
        use_permit(user, &machine->leased);
        break;
    case 4:
        use_condition(user);
        break;
    case 5:
        use_latch(user, &machine->latches[one]);
        break;
    case 6:
        use_once(user, &machine->onces[one]);
        break;
    case 7:
        meet(user);
        break;
    case 8:
        use_both(user, one);
        break;
    default:
        use_mutex(user, &machine->plain[one]);
        break;
    }
    machine->shared->calls[machine->number][user->number]++;
}

static int live(void *arg)
{
    struct user *user = arg;
    while (!gate_is_open(&user->machine->shared->over)) {
        act(user);
        rest_ms(LEAST_MS + (int64_t)luck_below(&user->luck, MOST_MS - LEAST_MS));
    }
    return 0;
}

static const char *numbered(const char *name, unsigned number)
{
    static char text[64];
    snprintf(text, sizeof text, "%s%u", name, number);
    return text;
}

static void open_objects(struct machine *machine)
{
    const lk_mutexattr_t fair = { .size = sizeof fair, .fair = 1 };
    const lk_semattr_t leased = { .size = sizeof leased, .leased = 1 };
    lk_client_t *client = machine->client;
    for (unsigned i = 0; i < NAMES; i++) {
        assert_lk(0, lk_mutex_init(&machine->plain[i], client, numbered("plain", i), NULL));
        assert_lk(0, lk_mutex_init(&machine->fair[i], client, numbered("fair", i), &fair));
        assert_lk(0, lk_rwlock_init(&machine->tables[i], client, numbered("table", i), NULL));
        assert_lk(0, lk_latch_init(&machine->latches[i], client, numbered("latch", i), NULL));
        assert_lk(0, lk_once_init(&machine->onces[i], client, numbered("once", i), NULL));
    }
    assert_lk(0, lk_mutex_init(&machine->jobs, client, "{jobs}", NULL));
    assert_lk(0, lk_cond_init(&machine->some, client, "{jobs}some", NULL));
    assert_lk(0, lk_sem_init(&machine->counting, client, "counting", 20, NULL));
    assert_lk(0, lk_sem_init(&machine->leased, client, "leased", 20, &leased));
    assert_lk(0, lk_barrier_init(&machine->barrier, client, numbered("barrier", machine->number / 4), PARTIES, NULL));
}

static int run_machine(struct world *w, void *arg)
{
    struct machine *machine = arg;
    struct user users[THREADS];
    struct worker workers[THREADS];
    machine_begins(machine->number);
    assert_lk(0, lk_client_open(&machine->client, world_url(w, "lease=30s")));
    open_objects(machine);
    world_ready(w);
    for (unsigned i = 0; i < THREADS; i++) {
        users[i] = (struct user){ .machine = machine, .luck = luck_begin(), .number = i };
        worker_start(&workers[i], live, &users[i]);
    }
    for (unsigned i = 0; i < THREADS; i++)
        worker_join(&workers[i]);
    lk_client_close(machine->client);
    return 0;
}

static void workload(struct world *w)
{
    static struct machine machines[MACHINES];
    struct shared *shared = world_shared(w, sizeof *shared);
    const char *said = getenv("SIM_HOUR_S");
    int64_t calls = 0;
    pid_t pids[MACHINES];
    for (unsigned i = 0; i < MACHINES; i++) {
        machines[i] = (struct machine){ .w = w, .shared = shared, .number = i };
        pids[i] = world_fork(w, run_machine, &machines[i]);
    }
    rest_ms((said != NULL ? atoll(said) : 3600) * 1000);
    gate_open(&shared->over);
    for (unsigned i = 0; i < MACHINES; i++)
        assert_int_equal(0, world_wait(w, pids[i]));
    for (unsigned i = 0; i < MACHINES; i++)
        for (unsigned n = 0; n < THREADS; n++)
            calls += shared->calls[i][n];
    fprintf(stderr, "%lld uses of a primitive\n", (long long)calls);
}

int main(void)
{
    return workload_run(NULL, workload);
}
