/* SPDX-License-Identifier: MIT */
/*
 * meet_test.c - parties of all threads and processes meet, round after round; what breaks a round, and what ends that
 *
 * labels: threads memory noise
 * simulated: yes
 * seconds: 36
 */
#include "log.h"
#include "proxy.h"

#include <string.h>

enum { PROCESSES = 4, PARTIES = 8, ROUNDS = SANITIZED ? 30 : 100, THREADS = SANITIZED ? 16 : 50 };

#define ARRIVAL "latchkey:past:{stage}" /* which no other script names, nor the subscription beside it */

static lk_barrier_t *mine, *theirs;

static void open_both(struct world *w, const char *options, unsigned parties)
{
    world_allow(w, "latchkey:barrier:*");
    world_allow(w, "latchkey:past:*");
    world_allow(w, "latchkey:parties:*");
    mine = world_barrier(w, world_client(w, options), "stage", parties, NULL);
    theirs = world_barrier(w, world_client(w, options), "stage", parties, NULL);
}

static int wait_at(void *barrier)
{
    return lk_barrier_waitfor(barrier, 20000);
}

struct patience {
    lk_barrier_t *barrier;
    int64_t ms;
};

static int wait_briefly(void *arg)
{
    const struct patience *patience = arg;
    return lk_barrier_waitfor(patience->barrier, patience->ms);
}

static int64_t arrived(struct world *w)
{
    return world_int(w, "ZCARD latchkey:parties:{stage}");
}

/* One meets another one in `worker`, which waits already. */
static void begin_round(struct world *w, struct worker *worker)
{
    worker_start(worker, wait_at, theirs);
    eventually(arrived(w) == 1, 5000);
}

static void two_meet_and_one_is_serial(struct world *w)
{
    struct worker other;
    lk_barrierinfo_t info = LK_BARRIERINFO_INIT;
    open_both(w, "lease=20s", 2);
    for (int i = 0; i < 3; i++) {
        begin_round(w, &other);
        assert_lk(0, lk_barrier_info(mine, &info));
        assert_true(info.parties == 2 && info.arrived == 1 && !info.broken && info.generation != 0);
        if (i > 0)
            assert_int_equal(32, strlen(info.missing));
        assert_int_equal(LK_BARRIER_SERIAL, lk_barrier_wait(mine));
        assert_int_equal(0, worker_join(&other));
    }
    assert_int_equal(0, world_lasting(w));
    assert_lk(0, lk_barrier_info(mine, &info));
    assert_int_equal(0, info.arrived);
}

static void one_party_waits_for_nobody(struct world *w)
{
    open_both(w, "", 1);
    assert_int_equal(LK_BARRIER_SERIAL, lk_barrier_wait(mine));
    assert_int_equal(LK_BARRIER_SERIAL, lk_barrier_waitfor(theirs, 0));
}

/* Too late on entry: only the last one passes, and nobody is the worse for it. */
static void who_does_not_wait_breaks_nothing(struct world *w)
{
    struct worker other;
    open_both(w, "", 2);
    assert_lk(ETIMEDOUT, lk_barrier_waitfor(mine, 0));
    begin_round(w, &other);
    assert_int_equal(LK_BARRIER_SERIAL, lk_barrier_waitfor(mine, 0));
    assert_int_equal(0, worker_join(&other));
}

static void a_time_that_is_over_breaks_the_round(struct world *w)
{
    struct worker other;
    lk_barrierinfo_t info = LK_BARRIERINFO_INIT;
    struct timespec soon, wrong = { 1, 1000000000 };
    open_both(w, "lease=20s", 3);
    assert_lk(EINVAL, lk_barrier_timedwait(mine, &wrong));
    assert_lk(EINVAL, lk_barrier_clockwait(mine, 12345, &wrong));
    assert_lk(EINVAL, lk_barrier_waitfor(mine, -2));
    begin_round(w, &other);
    assert_lk(ETIMEDOUT, lk_barrier_waitfor(mine, 200));
    assert_int_equal(ECANCELED, worker_join(&other));
    assert_lk(ECANCELED, lk_barrier_wait(mine));
    assert_lk(0, lk_barrier_info(mine, &info));
    assert_true(info.broken && info.arrived == 0 && strlen(info.missing) == 32);
    assert_lk(0, lk_barrier_reset(theirs));
    assert_int_equal(0, clock_gettime(CLOCK_REALTIME, &soon));
    soon.tv_sec++;
    assert_lk(ETIMEDOUT, lk_barrier_timedwait(mine, &soon));
    assert_lk(0, lk_barrier_reset(theirs));
}

static void a_reset_sends_away_who_waits(struct world *w)
{
    struct worker other;
    open_both(w, "lease=20s&poll=10s", 2);
    assert_lk(0, lk_barrier_reset(mine));
    for (int i = 0; i < 3; i++) {
        begin_round(w, &other);
        assert_lk(0, lk_barrier_reset(mine));
        assert_int_equal(ECANCELED, worker_join(&other));
        begin_round(w, &other);
        assert_int_equal(LK_BARRIER_SERIAL, lk_barrier_wait(mine));
        assert_int_equal(0, worker_join(&other));
    }
}

static void parties_that_differ_are_refused(struct world *w)
{
    struct worker other;
    lk_barrier_t wrong;
    lk_barrierattr_t attr = LK_BARRIERATTR_INIT;
    open_both(w, "", 2);
    lk_client_t *client = world_client(w, "");
    lk_barrier_t *three = world_barrier(w, client, "stage", 3, NULL);
    begin_round(w, &other);
    assert_lk(EINVAL, lk_barrier_wait(three));
    assert_int_equal(LK_BARRIER_SERIAL, lk_barrier_wait(mine));
    assert_int_equal(0, worker_join(&other));
    assert_lk(ETIMEDOUT, lk_barrier_waitfor(three, 0)); /* nobody waits: the number is another one now */
    assert_lk(EINVAL, lk_barrier_init(&wrong, client, "stage", 0, NULL));
    assert_lk(EINVAL, lk_barrier_init(&wrong, client, "stage", LK_BARRIER_MAX + 1, NULL));
    assert_lk(EINVAL, lk_barrier_init(NULL, client, "stage", 2, NULL));
    attr.lease_ms = 99;
    assert_lk(EINVAL, lk_barrier_init(&wrong, client, "stage", 2, &attr));
    assert_lk(EINVAL, lk_barrier_wait(NULL));
    assert_lk(EINVAL, lk_barrier_info(mine, NULL));
}

/* --- many --------------------------------------------------------------------------------------------------------- */

struct stage {
    int arrived[ROUNDS], serial[ROUNDS]; /* reached with atomic builtins */
    lk_barrier_t *barrier;
};

static int meet_often(int index, void *arg)
{
    struct stage *stage = arg;
    (void)index;
    for (int round = 0; round < ROUNDS; round++) {
        __atomic_add_fetch(&stage->arrived[round], 1, __ATOMIC_SEQ_CST);
        int rc = lk_barrier_waitfor(stage->barrier, 60000);
        if (rc == LK_BARRIER_SERIAL)
            __atomic_add_fetch(&stage->serial[round], 1, __ATOMIC_SEQ_CST);
        else if (rc != 0)
            return rc;
        if (__atomic_load_n(&stage->arrived[round], __ATOMIC_SEQ_CST) != PARTIES)
            return 1;
    }
    return 0;
}

static int take_part(struct world *w, void *arg)
{
    struct stage *shared = arg;
    open_both(w, "poll=5s&command_timeout=5s", PARTIES);
    __atomic_store_n(&shared->barrier, NULL, __ATOMIC_SEQ_CST);
    world_ready(w);
    for (int round = 0; round < ROUNDS; round++) {
        __atomic_add_fetch(&shared->arrived[round], 1, __ATOMIC_SEQ_CST);
        int rc = lk_barrier_waitfor(mine, 60000);
        if (rc == LK_BARRIER_SERIAL)
            __atomic_add_fetch(&shared->serial[round], 1, __ATOMIC_SEQ_CST);
        else if (rc != 0)
            return rc;
        if (__atomic_load_n(&shared->arrived[round], __ATOMIC_SEQ_CST) != PARTIES)
            return 1;
    }
    return 0;
}

/* Nobody passes early, and each round has one serial party: half of the parties are threads, half are processes. */
static void all_pass_when_all_have_come(struct world *w)
{
    struct stage *stage = world_shared(w, sizeof *stage);
    pid_t processes[PROCESSES];
    for (int i = 0; i < PROCESSES; i++)
        processes[i] = world_fork(w, take_part, stage);
    open_both(w, "poll=5s&command_timeout=5s", PARTIES);
    stage->barrier = mine;
    assert_int_equal(0, run_threads(PARTIES - PROCESSES, meet_often, stage));
    for (int i = 0; i < PROCESSES; i++)
        assert_int_equal(0, world_wait(w, processes[i]));
    for (int round = 0; round < ROUNDS; round++)
        assert_int_equal(1, stage->serial[round]);
}

static bool no_more_looks(struct world *w)
{
    int64_t before = world_commands(w, "evalsha");
    sleep_ms(100);
    return world_commands(w, "evalsha") == before;
}

/* However many wait it is one look for all threads of a client. */
static void they_look_as_one(struct world *w)
{
    struct worker workers[THREADS];
    open_both(w, "poll=10s", THREADS + 1);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < THREADS; i++)
            worker_start(&workers[i], wait_at, mine);
        eventually(arrived(w) == THREADS, 20000);
        eventually(no_more_looks(w), 20000);
        int64_t before = world_commands(w, "evalsha");
        assert_int_equal(LK_BARRIER_SERIAL, lk_barrier_wait(theirs));
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(0, worker_join(&workers[i]));
        assert_between(world_commands(w, "evalsha") - before, 2, 10);
    }
}

/* As POSIX has it: while the others are still on their way out. */
static int wait_and_destroy(int index, void *arg)
{
    (void)index;
    int rc = lk_barrier_wait(arg);
    return rc == LK_BARRIER_SERIAL ? lk_barrier_destroy(arg) : rc;
}

static int64_t clock_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* What a message tells is new, so the next one need not wait: the fastest rounds have no pause in between. */
static int meet_soon(void *barrier)
{
    enum { WINDOW = 4 };
    int64_t met_us[WINDOW] = { 0 }, fastest_us = INT64_MAX;
    for (int i = 0; i < 4 * ROUNDS; i++) {
        int rc = wait_at(barrier);
        if (rc != 0 && rc != LK_BARRIER_SERIAL)
            return -rc - 1;
        int64_t now = clock_us(), took_us = now - met_us[i % WINDOW];
        met_us[i % WINDOW] = now;
        if (i >= WINDOW && took_us < fastest_us)
            fastest_us = took_us;
    }
    return (int)fastest_us;
}

/* A round takes two round trips of each, and a pause would be 5 ms. */
static void rounds_follow_without_a_pause(struct world *w)
{
    struct worker other;
    lk_barrierinfo_t info = LK_BARRIERINFO_INIT;
    open_both(w, "lease=20s&command_timeout=4s", 2);
    worker_start(&other, meet_soon, theirs);
    int fastest_us = meet_soon(mine), their_fastest_us = worker_join(&other);
    int64_t began_us = clock_us();
    assert_lk(0, lk_barrier_info(mine, &info));
    int64_t most_us = 10000 + 16 * (clock_us() - began_us);
    print_message("             4 rounds took %d us, %d us\n", fastest_us, their_fastest_us);
    assert_in_range(fastest_us, 1, most_us);
    assert_in_range(their_fastest_us, 1, most_us);
}

static void the_serial_party_may_destroy_it(struct world *w)
{
    lk_barrier_t once;
    world_allow(w, "latchkey:*:{brief}");
    lk_client_t *client = world_client(w, "");
    for (int i = 0; i < 20; i++) {
        assert_lk(0, lk_barrier_init(&once, client, "brief", 6, NULL));
        assert_int_equal(0, run_threads(6, wait_and_destroy, &once));
    }
}

/* --- who dies, is cancelled, or loses the server --------------------------------------------------------------------- */

static int wait_and_die(struct world *w, void *arg)
{
    (void)arg;
    static const lk_barrierattr_t brief = { .size = sizeof brief, .lease_ms = 1000 };
    struct worker worker;
    mine = world_barrier(w, world_client(w, ""), "stage", 2, &brief);
    worker_start(&worker, wait_at, mine);
    eventually(arrived(w) == 1, 5000);
    world_ready(w);
    return worker_join(&worker);
}

static void a_party_that_dies_breaks_the_round(struct world *w)
{
    lk_barrierinfo_t info = LK_BARRIERINFO_INIT;
    pid_t party = world_fork(w, wait_and_die, NULL);
    open_both(w, "poll=300ms", 3);
    mine = world_barrier(w, world_client(w, "lease=20s&poll=300ms"), "stage", 2, NULL);
    lk_barrier_t *third = world_barrier(w, world_client(w, "lease=20s&poll=300ms"), "late", 2, NULL);
    world_allow(w, "latchkey:*:{late}");
    world_kill(w, party);
    sleep_ms(1200);
    assert_lk(ECANCELED, lk_barrier_waitfor(mine, 20000)); /* it would have been the second of two */
    assert_lk(0, lk_barrier_info(mine, &info));
    assert_true(info.broken);
    assert_lk(ETIMEDOUT, lk_barrier_waitfor(third, 0));
}

enum { LEASE_MS = 3000, POLL_MS = 200 };

static int wait_long(struct world *w, void *arg)
{
    (void)arg;
    static const lk_barrierattr_t brief = { .size = sizeof brief, .lease_ms = LEASE_MS };
    struct worker worker;
    mine = world_barrier(w, world_client(w, "poll=200ms"), "stage", 3, &brief);
    worker_start(&worker, wait_at, mine);
    eventually(arrived(w) >= 1, 5000);
    world_ready(w);
    return worker_join(&worker) == ECANCELED ? 0 : 1;
}

/* When the lease of a party ends: 0 the first one of them, -1 the last one. */
static int64_t ends_ms(struct world *w, int nth)
{
    return world_int(w, "EVAL %s 1 latchkey:parties:{stage} %d",
                     "return tonumber(redis.call('ZRANGE', KEYS[1], ARGV[1], ARGV[1], 'WITHSCORES')[2])", nth);
}

/* Those that wait find out by the next poll after the lease; they themselves are renewed. */
static void who_waits_hears_of_a_death(struct world *w)
{
    world_allow(w, "latchkey:*:{stage}");
    pid_t dies = world_fork(w, wait_long, NULL), lives = world_fork(w, wait_long, NULL);
    eventually(arrived(w) == 2, 5000);
    int64_t last_ms = ends_ms(w, -1);
    eventually(ends_ms(w, 0) > last_ms, LEASE_MS);
    assert_int_equal(2, arrived(w));
    world_kill(w, dies);
    int64_t began_ms = now_ms();
    assert_int_equal(0, world_wait(w, lives));
    assert_between(now_ms() - began_ms, 0, LEASE_MS + 2 * POLL_MS + 2 * SLACK_MS);
}

static void *wait_for_ever(void *barrier)
{
    return (void *)(intptr_t)lk_barrier_wait(barrier);
}

static void who_is_cancelled_breaks_the_round(struct world *w)
{
    pthread_t thread;
    void *result;
    struct worker other;
    if (SANITIZED && !THREAD_SANITIZED)
        skip(); /* AddressSanitizer takes the frames that a cancelled thread left for live ones */
    open_both(w, "lease=20s&poll=10s", 3);
    begin_round(w, &other);
    assert_int_equal(0, pthread_create(&thread, NULL, wait_for_ever, mine));
    eventually(arrived(w) == 2, 5000);
    sleep_ms(100);
    assert_int_equal(0, pthread_cancel(thread));
    assert_int_equal(0, pthread_join(thread, &result));
    assert_ptr_equal(PTHREAD_CANCELED, result);
    assert_int_equal(ECANCELED, worker_join(&other));
    assert_lk(0, lk_barrier_reset(mine));
}

static void a_client_that_closes_breaks_the_round(struct world *w)
{
    struct worker other, closing;
    open_both(w, "lease=20s&poll=10s", 3);
    begin_round(w, &other);
    lk_client_t *client = world_open(w, "lease=20s&poll=10s");
    lk_barrier_t third;
    assert_lk(0, lk_barrier_init(&third, client, "stage", 3, NULL));
    worker_start(&closing, wait_at, &third);
    eventually(arrived(w) == 2, 5000);
    assert_lk(0, lk_client_close(client));
    assert_int_equal(ECANCELED, worker_join(&closing));
    assert_int_equal(ECANCELED, worker_join(&other));
    assert_lk(0, lk_barrier_destroy(&third));
}

static const enum proxy_fault cuts[] = { PROXY_CUT_REQUEST, PROXY_CUT_REPLY, PROXY_PARK_REQUEST, PROXY_COPY_REQUEST };

/* An arrival that is sent again counts once, as the last one, too. */
static void a_cut_arrival_counts_once(struct world *w)
{
    struct worker other;
    struct proxy *p = proxy_begin(w);
    open_both(w, "lease=20s", 2);
    mine = world_barrier(w, proxy_client(p, "lease=5s&command_timeout=1s&poll=200ms"), "stage", 2, NULL);
    for (int i = -1; i < 4; i++) {
        begin_round(w, &other);
        if (i >= 0)
            proxy_once(p, cuts[i], 1, ARRIVAL);
        assert_int_equal(LK_BARRIER_SERIAL, lk_barrier_waitfor(mine, 10000));
        assert_int_equal(0, worker_join(&other));
        proxy_release(p);
        sleep_ms(50);
        assert_int_equal(0, arrived(w));
        if (i >= 0)
            proxy_once(p, cuts[i], 1, "wanted by nobody");
        worker_start(&other, wait_at, mine);
        eventually(arrived(w) == 1, 5000);
        sleep_ms(50);
        assert_int_equal(LK_BARRIER_SERIAL, lk_barrier_wait(theirs));
        assert_int_equal(0, worker_join(&other));
    }
}

/* Without an answer nobody knows; what came unseen breaks the round, and soon. */
static void an_arrival_without_an_answer_breaks_the_round(struct world *w)
{
    struct worker other;
    struct proxy *p = proxy_begin(w);
    open_both(w, "lease=20s", 3);
    mine = world_barrier(w, proxy_client(p, "lease=5s&command_timeout=1s&poll=200ms"), "stage", 3, NULL);
    assert_lk(ETIMEDOUT, lk_barrier_waitfor(mine, 0)); /* the server knows the script */
    begin_round(w, &other);
    proxy_once(p, PROXY_DROP_REPLY, 1, ARRIVAL);
    assert_lk(EIO, lk_barrier_waitfor(mine, 10000));
    assert_int_equal(ECANCELED, worker_join(&other));
    assert_lk(0, lk_barrier_reset(theirs));
}

/* The answer to the last look, behind that to the leave, which says that the round is over: was it passed, or broken? */
static void a_time_that_is_over_unseen_leaves_it_open(struct world *w)
{
    enum { COMMAND_MS = 1000, LIMIT_MS = 3000 };
    struct worker other;
    struct proxy *p = proxy_begin(w);
    open_both(w, "lease=20s", 2);
    mine = world_barrier(w, proxy_client(p, "lease=20s&command_timeout=1s&poll=10s"), "stage", 2, NULL);
    worker_start(&other, wait_at, mine);
    eventually(arrived(w) == 1, 5000);
    assert_int_equal(LK_BARRIER_SERIAL, wait_at(theirs));
    assert_int_equal(0, worker_join(&other)); /* from now on it listens */
    for (int lost = 0; lost < 2; lost++) {
        int64_t before = proxy_faults(p);
        struct patience patience = { mine, LIMIT_MS };
        worker_start(&other, wait_briefly, &patience);
        eventually(arrived(w) == 1 && no_more_looks(w), LIMIT_MS);
        proxy_once(p, PROXY_DROP_MESSAGE, 1, "message");
        assert_int_equal(LK_BARRIER_SERIAL, wait_at(theirs));
        eventually(proxy_faults(p) == before + 1, LIMIT_MS);
        proxy_once(p, PROXY_DROP_REPLY, 1, "stage"); /* the look at the limit */
        eventually(proxy_faults(p) == before + 2, LIMIT_MS + COMMAND_MS);
        if (lost)
            proxy_once(p, PROXY_DROP_REPLY, 2, "stage"); /* behind the leave */
        assert_int_equal(lost ? EIO : 0, worker_join(&other));
        assert_int_equal(before + 2 + lost, proxy_faults(p));
    }
    begin_round(w, &other); /* it broke nothing */
    assert_int_equal(LK_BARRIER_SERIAL, wait_at(mine));
    assert_int_equal(0, worker_join(&other));
}

/* In `other` one waits that has nothing to ask before its limit. */
static void wait_quietly(struct world *w, struct worker *other, int (*wait)(void *), struct patience *patience)
{
    worker_start(other, wait, patience);
    eventually(arrived(w) == 1 && no_more_looks(w), patience->ms);
}

/* It comes behind the look at the limit, and is sent again: was it too late the first time, or did it break the round? */
static void a_leave_without_an_answer_is_told_what_it_did(struct world *w)
{
    struct worker other;
    struct proxy *p = proxy_begin(w);
    open_both(w, "lease=20s", 2);
    mine = world_barrier(w, proxy_client(p, "lease=20s&command_timeout=5s&poll=10s&retry_max=50ms"), "stage", 2, NULL);
    struct patience patience = { mine, 3000 };
    worker_start(&other, wait_at, mine);
    eventually(arrived(w) == 1, 5000);
    assert_int_equal(LK_BARRIER_SERIAL, wait_at(theirs));
    assert_int_equal(0, worker_join(&other)); /* from now on it listens */

    wait_quietly(w, &other, wait_briefly, &patience);
    int64_t before = proxy_faults(p);
    proxy_once(p, PROXY_CUT_REQUEST, 2, "stage");
    proxy_refuse(p, true);
    eventually(proxy_faults(p) == before + 1, patience.ms + 5000);
    assert_int_equal(LK_BARRIER_SERIAL, wait_at(theirs));
    proxy_refuse(p, false);
    assert_int_equal(0, worker_join(&other));

    wait_quietly(w, &other, wait_briefly, &patience);
    proxy_once(p, PROXY_CUT_REPLY, 2, "stage");
    assert_int_equal(ETIMEDOUT, worker_join(&other));
    assert_int_equal(before + 2, proxy_faults(p));
    assert_lk(ECANCELED, wait_at(theirs));
    assert_lk(0, lk_barrier_reset(theirs));
}

static int wait_unseen(void *patience)
{
    int rc = wait_briefly(patience);
    return rc == EIO && lk_errorsettles() == 0 ? ERANGE : rc;
}

/* Nobody answers at the limit: by when the party is gone at the latest is told. */
static void a_leave_is_settled_some_time(struct world *w)
{
    struct worker other;
    open_both(w, "lease=20s&command_timeout=1s&poll=10s", 2);
    struct patience patience = { mine, 3000 };
    wait_quietly(w, &other, wait_unseen, &patience);
    world_stop_server(w);
    assert_int_equal(EIO, worker_join(&other));
    world_cont_server(w);
    eventually(arrived(w) == 0, 5000);
    assert_lk(0, lk_barrier_reset(theirs));
}

/* A party that is told late hears by its renewal that it waits no more: as for all others, the round is over. */
static void a_round_that_is_over_is_no_loss(struct world *w)
{
    static const lk_barrierattr_t brief = { .size = sizeof brief, .lease_ms = 3000 };
    struct worker other;
    struct proxy *p = proxy_begin(w);
    open_both(w, "lease=20s", 2);
    mine = world_barrier(w, proxy_client(p, "lease=20s&poll=10s"), "stage", 2, &brief);
    struct patience patience = { mine, 4000 };
    worker_start(&other, wait_at, mine);
    eventually(arrived(w) == 1, 5000);
    assert_int_equal(LK_BARRIER_SERIAL, wait_at(theirs));
    assert_int_equal(0, worker_join(&other)); /* from now on it listens */
    assert_lk(0, log_keep(LK_LOG_WARNING));
    wait_quietly(w, &other, wait_briefly, &patience);
    proxy_once(p, PROXY_DROP_MESSAGE, 1, "message");
    assert_int_equal(LK_BARRIER_SERIAL, wait_at(theirs));
    assert_int_equal(0, worker_join(&other));
    assert_null(strstr(log_kept(), "lease was lost"));
    assert_lk(0, log_to(NULL, LK_LOG_WARNING, NULL));
}

static void the_server_that_forgets_leaves_it_open(struct world *w)
{
    struct worker other;
    open_both(w, "lease=20s&poll=200ms", 2);
    begin_round(w, &other);
    world_redis(w, "FLUSHALL");
    assert_int_equal(ESTALE, worker_join(&other));
}

/* --- static ------------------------------------------------------------------------------------------------------- */

static lk_barrier_t stage = LK_BARRIER_INITIALIZER("static", 2);

static int wait_at_static(int index, void *arg)
{
    (void)index, (void)arg;
    int rc = lk_barrier_wait(&stage);
    return rc == LK_BARRIER_SERIAL ? 0 : rc;
}

static void a_static_one_uses_the_default_client(struct world *w)
{
    world_allow(w, "latchkey:*:{static}");
    use_default(world_url(w, ""));
    assert_int_equal(0, run_threads(2, wait_at_static, NULL));
    assert_lk(0, lk_barrier_destroy(&stage));
    close_default();
}

int main(void)
{
    return world_run(all_pass_when_all_have_come, two_meet_and_one_is_serial, one_party_waits_for_nobody,
                     who_does_not_wait_breaks_nothing, a_time_that_is_over_breaks_the_round,
                     a_reset_sends_away_who_waits, parties_that_differ_are_refused, they_look_as_one,
                     rounds_follow_without_a_pause, the_serial_party_may_destroy_it, a_party_that_dies_breaks_the_round,
                     who_waits_hears_of_a_death, who_is_cancelled_breaks_the_round,
                     a_client_that_closes_breaks_the_round, a_cut_arrival_counts_once,
                     an_arrival_without_an_answer_breaks_the_round, a_time_that_is_over_unseen_leaves_it_open,
                     a_leave_without_an_answer_is_told_what_it_did, a_leave_is_settled_some_time,
                     a_round_that_is_over_is_no_loss, the_server_that_forgets_leaves_it_open,
                     a_static_one_uses_the_default_client);
}
