/* SPDX-License-Identifier: MIT */
/*
 * overslept_test.c - a grant that came in time is held, though its thread looks only after its limit
 *
 * The thread is kept in a handler of its own signals until the limit has passed, as by a profiler, a debugger
 * or a busy machine. What was waited for is granted meanwhile. A call whose time is over by then sends nothing more.
 *
 * labels: threads memory
 * simulated: except tsan
 * seconds: 10
 */
#include "subject.h"

#include <signal.h>

enum { LIMIT_MS = 500, LIMIT_MAX_MS = 8 * LIMIT_MS };

struct sleeper {
    struct worker worker;
    struct subject *subject; /* or */
    lk_latch_t *latch;
    int64_t limit_ms;
    int64_t began_ms; /* 0: it did not; like `over` reached with atomic builtins */
    int over;
    int64_t took_ms;
};

static int asleep, awake; /* atomic builtins */

static void sleep_in_handler(int number)
{
    (void)number;
    __atomic_store_n(&asleep, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&awake, __ATOMIC_SEQ_CST))
        sleep_ms(1);
}

static void begin(struct sleeper *sleeper)
{
    __atomic_store_n(&sleeper->began_ms, now_ms(), __ATOMIC_SEQ_CST);
}

static void end(struct sleeper *sleeper)
{
    sleeper->took_ms = now_ms() - sleeper->began_ms;
    __atomic_store_n(&sleeper->over, 1, __ATOMIC_SEQ_CST);
}

static bool is_over(const struct sleeper *sleeper)
{
    return __atomic_load_n(&sleeper->over, __ATOMIC_SEQ_CST) != 0;
}

/* How long ago it began. */
static int64_t age_ms(const struct sleeper *sleeper)
{
    int64_t began_ms = __atomic_load_n(&sleeper->began_ms, __ATOMIC_SEQ_CST);
    return began_ms != 0 ? now_ms() - began_ms : 0;
}

static int take(void *arg)
{
    struct sleeper *sleeper = arg;
    begin(sleeper);
    int rc = sleeper->latch != NULL ? lk_latch_waitfor(sleeper->latch, sleeper->limit_ms)
                                    : subject_take(sleeper->subject, sleeper->limit_ms);
    end(sleeper);
    if (rc == 0 && sleeper->latch == NULL)
        rc = subject_give(sleeper->subject);
    return rc;
}

/* False: not before its limit. */
static bool falls_asleep(struct sleeper *sleeper)
{
    struct sigaction action = { .sa_handler = sleep_in_handler };
    sigaction(SIGUSR1, &action, NULL);
    __atomic_store_n(&asleep, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&awake, 0, __ATOMIC_SEQ_CST);
    sleep_ms(30);
    threads_rest(); /* its last answer is read, and it is parked */
    pthread_kill(sleeper->worker.thread, SIGUSR1);
    eventually(__atomic_load_n(&asleep, __ATOMIC_SEQ_CST) == 1 || is_over(sleeper), 3000);
    return !is_over(sleeper) && age_ms(sleeper) < sleeper->limit_ms;
}

static int wakes_up(struct sleeper *sleeper)
{
    __atomic_store_n(&awake, 1, __ATOMIC_SEQ_CST);
    int rc = worker_join(&sleeper->worker);
    signal(SIGUSR1, SIG_DFL);
    return rc;
}

/* It waits, and is asleep long before its limit: on a busy machine that is a later one. */
static void start_asleep(struct world *w, struct sleeper *sleeper, int (*work)(void *arg),
                         bool (*waits)(struct world *w, const struct sleeper *sleeper))
{
    for (sleeper->limit_ms = LIMIT_MS;; sleeper->limit_ms *= 2) {
        assert_true(sleeper->limit_ms <= LIMIT_MAX_MS);
        sleeper->began_ms = sleeper->over = 0;
        worker_start(&sleeper->worker, work, sleeper);
        eventually(waits(w, sleeper) || is_over(sleeper), 5000);
        if (falls_asleep(sleeper))
            return;
        wakes_up(sleeper);
    }
}

/* Step by step: if all of the process stands still meanwhile, some are left for who reads the messages. */
static void oversleep(const struct sleeper *sleeper)
{
    enum { STEPS = 20 };
    for (int i = 0; i < STEPS; i++)
        sleep_ms(sleeper->limit_ms / STEPS + 5);
}

/* It has asked again since it listens: what it is granted from then on is kept for as long as it said. */
static bool is_queued(struct world *w, const struct sleeper *sleeper)
{
    static const char deaf[] = "local deaf = 0 for _, key in ipairs(redis.call('KEYS', 'latchkey:alive:*')) do "
                               "for _, life in ipairs(redis.call('HVALS', key)) do "
                               "deaf = deaf + (string.sub(life, -2) == ' 1' and 1 or 0) end end return deaf";
    return subject_queued(w, sleeper->subject) == 1 && world_int(w, "EVAL %s 0", deaf) == 0;
}

/* Another client holds the thing; `sleeper` is queued for it, and asleep. Returns what the other one holds it with. */
static struct subject *held_while_one_sleeps(struct world *w, const struct subject_kind *kind, struct sleeper *sleeper)
{
    lk_client_t *ours = world_client(w, "poll=5s"), *theirs = world_client(w, "");
    struct subject *keeper = world_subject(w, theirs, subject_keeper(kind), "thing");
    *sleeper = (struct sleeper){ .subject = world_subject(w, ours, kind, "thing") };
    assert_lk(0, subject_take(keeper, 0));
    start_asleep(w, sleeper, take, is_queued);
    return keeper;
}

static void what_was_granted_meanwhile_is_held(struct world *w, const struct subject_kind *kind)
{
    struct sleeper sleeper;
    struct subject *keeper = held_while_one_sleeps(w, kind, &sleeper), *mine = sleeper.subject;
    assert_lk(0, subject_give(keeper));
    assert_int_equal(0, subject_queued(w, mine));
    oversleep(&sleeper);
    assert_lk(0, wakes_up(&sleeper));
    assert_true(sleeper.took_ms > sleeper.limit_ms);
    assert_int_equal(0, subject_held(w, mine));
}

/* And what nobody granted is not: the limit ends the wait as soon as the thread looks. */
static void the_limit_ends_what_nobody_granted(struct world *w, const struct subject_kind *kind)
{
    struct sleeper sleeper;
    struct subject *keeper = held_while_one_sleeps(w, kind, &sleeper), *mine = sleeper.subject;
    oversleep(&sleeper);
    assert_lk(ETIMEDOUT, wakes_up(&sleeper));
    assert_int_equal(0, subject_queued(w, mine));
    assert_lk(0, subject_give(keeper));
}

/*
 * One that stood still for so long is passed over by whoever gives back, and what nobody else wants is free. It asks once
 * more, though its limit has passed. All kinds sleep side by side.
 */
static void what_is_free_after_a_long_sleep_is_taken(struct world *w)
{
    enum { KINDS = 6, LONG_MS = 4000 };
    struct sleeper sleepers[KINDS];
    struct subject *keepers[KINDS];
    lk_client_t *ours = world_client(w, ""), *theirs = world_client(w, "");
    for (int i = 0; i < KINDS; i++) {
        const struct subject_kind *kind = &subject_kinds[i];
        char name[] = { 'a' + (char)i, 0 };
        keepers[i] = world_subject(w, theirs, subject_keeper(kind), name);
        sleepers[i] = (struct sleeper){ .subject = world_subject(w, ours, kind, name), .limit_ms = LONG_MS };
        world_allow(w, name); /* a counting semaphore's */
        assert_lk(0, subject_take(keepers[i], 1000));
        worker_start(&sleepers[i].worker, take, &sleepers[i]);
        eventually(subject_queued(w, sleepers[i].subject) == 1 || is_over(&sleepers[i]), 5000);
        assert_true(falls_asleep(&sleepers[i]));
    }
    sleep_ms(LONG_MS + 300); /* with nothing heard of them for long before it is given back */
    for (int i = 0; i < KINDS; i++)
        assert_lk(0, subject_give(keepers[i]));
    for (int i = 0; i < KINDS; i++)
        assert_lk(0, wakes_up(&sleepers[i]));
}

static bool is_at_latch(struct world *w, const struct sleeper *sleeper)
{
    (void)sleeper;
    return world_elements(w, "PUBSUB CHANNELS redisson_countdownlatch*") == 1;
}

/* A latch that opened meanwhile is open. */
static void a_latch_that_opened_meanwhile_is_open(struct world *w)
{
    lk_client_t *ours = world_client(w, "poll=5s"), *theirs = world_client(w, "");
    world_allow(w, "latchkey:*:{gate}");
    lk_latch_t *mine = world_latch(w, ours, "gate"), *keeper = world_latch(w, theirs, "gate");
    assert_lk(0, lk_latch_trysetcount(keeper, 1));
    struct sleeper sleeper = { .latch = mine };
    start_asleep(w, &sleeper, take, is_at_latch);
    assert_lk(0, lk_latch_countdown(keeper));
    oversleep(&sleeper);
    assert_lk(0, wakes_up(&sleeper));
}

/* --- threads of one process, one behind the other -------------------------------------------------------------- */

static lk_mutex_t *orders;

static int lock_orders(void *arg)
{
    struct sleeper *sleeper = arg;
    begin(sleeper);
    int rc = lk_mutex_lockfor(orders, sleeper->limit_ms);
    end(sleeper);
    return rc == 0 ? lk_mutex_unlock(orders) : rc;
}

static int hold_orders(void *arg)
{
    struct gate *gate = arg;
    int rc = lk_mutex_lock(orders);
    gate_pass(gate);
    return rc == 0 ? lk_mutex_unlock(orders) : rc;
}

static bool is_in_line(struct world *w, const struct sleeper *sleeper)
{
    (void)w;
    return age_ms(sleeper) >= 100;
}

/* Behind another thread of its process it waits here, not in Redis; its turn comes while it sleeps. */
static void a_turn_that_came_meanwhile_is_taken(struct world *w)
{
    lk_client_t *ours = world_client(w, "poll=5s"), *theirs = world_client(w, "");
    struct gate gate = { 0 };
    struct worker holder;
    struct sleeper sleeper = { 0 };
    orders = world_mutex(w, ours, "orders", NULL);
    lk_mutex_t *keeper = world_mutex(w, theirs, "orders", NULL);
    assert_lk(0, lk_mutex_lock(keeper));
    worker_start(&holder, hold_orders, &gate);
    eventually(world_queued(w, "orders") == 1, 3000);
    start_asleep(w, &sleeper, lock_orders, is_in_line);
    assert_int_equal(1, world_queued(w, "orders"));
    gate_open(&gate);
    assert_lk(0, lk_mutex_unlock(keeper));
    assert_int_equal(0, worker_join(&holder));
    oversleep(&sleeper);
    assert_lk(0, wakes_up(&sleeper));
    assert_true(sleeper.took_ms >= sleeper.limit_ms);
}

/* --- a call that waits for nobody ------------------------------------------------------------------------------- */

enum { COMMAND_MS = 900 };

static int count_down(void *arg)
{
    struct sleeper *sleeper = arg;
    begin(sleeper);
    int rc = lk_latch_countdown(sleeper->latch);
    end(sleeper);
    return rc;
}

/*
 * The server does not know the script; another thread reads that for the sleeper, whose time is over when it sees it.
 * Sent whole now, the script would lower the count, and nobody would await the answer.
 */
static void a_call_whose_time_is_over_sends_nothing_more(struct world *w)
{
    unsigned count;
    lk_client_t *client = world_client(w, "command_timeout=900ms");
    lk_latch_t *gate = world_latch(w, client, "gate");
    struct sleeper sleeper = { .latch = gate, .limit_ms = COMMAND_MS };
    world_allow(w, "latchkey:*:{gate}");
    assert_lk(0, lk_latch_trysetcount(gate, 2));
    world_redis(w, "SCRIPT FLUSH SYNC");
    world_stop_server(w);
    worker_start(&sleeper.worker, count_down, &sleeper);
    assert_true(falls_asleep(&sleeper)); /* its request was sent */
    world_cont_server(w);
    assert_lk(0, lk_latch_getcount(gate, &count)); /* reads for both */
    sleep_ms(COMMAND_MS);
    assert_lk(ENOTCONN, wakes_up(&sleeper));
    sleep_ms(100);
    assert_lk(0, lk_latch_getcount(gate, &count));
    assert_int_equal(2, count);
    assert_lk(0, lk_latch_delete(gate));
}

int main(void)
{
    int failed = subject_run(what_was_granted_meanwhile_is_held, the_limit_ends_what_nobody_granted);
    return failed + world_run(what_is_free_after_a_long_sleep_is_taken,
                              a_latch_that_opened_meanwhile_is_open, a_turn_that_came_meanwhile_is_taken,
                              a_call_whose_time_is_over_sends_nothing_more);
}
