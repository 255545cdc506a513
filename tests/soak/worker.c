/* SPDX-License-Identifier: MIT */
/*
 * worker.c - a thread of a client process: see actor.h
 */
#include "actor.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CALM_PATIENCE_MS 10000
#define BURST 24 /* cycles on an object that hardly anybody else wants */
#define MEETINGS 6

/* What an episode does with an object that is taken and given back. */
struct cycle {
    struct grip grip;
    bool share, repairs;
    bool sleeps;   /* of a GUARD: waits for the condition; else signals it */
    bool complete; /* a run; else it is given up */
    int limit_ms, hold_ms;
};

static enum phase phase_of(struct worker *worker)
{
    return __atomic_load_n(&worker->table->phase, __ATOMIC_ACQUIRE);
}

static unsigned lot(struct worker *worker, unsigned limit)
{
    return draw_below(&worker->luck, limit);
}

/* A wish that comes too late is not granted in the calm: permits would be missing there. */
static bool wished(struct worker *worker, enum wish wish)
{
    enum wish *word = &worker->table->wishes[worker->process][worker->thread];
    if (phase_of(worker) != STORM || __atomic_load_n(word, __ATOMIC_ACQUIRE) != wish)
        return false;
    __atomic_store_n(word, WISH_NONE, __ATOMIC_RELEASE);
    return true;
}

/* Longer than anybody waits where nothing is wrong, mostly. */
static int patient_ms(const struct worker *worker)
{
    return 3 * (int)worker->table->lease_ms;
}

static int patience_ms(struct worker *worker)
{
    unsigned kind = lot(worker, 10), ms = lot(worker, 2500);
    if (kind == 0)
        return 0;
    if (phase_of(worker) == CALM)
        return CALM_PATIENCE_MS;
    if (kind == 9)
        return patient_ms(worker);
    return 20 + (int)(kind < 7 ? ms / 5 : ms);
}

static int at_most(int ms, int most_ms)
{
    return ms < most_ms ? ms : most_ms;
}

static struct record *begin(struct worker *worker, enum op op, uint32_t object, uint32_t instance)
{
    __atomic_add_fetch(&worker->table->operations, 1, __ATOMIC_RELAXED);
    struct record *record = tape_begin(&worker->tape, op, object, instance);
    if (record == NULL)
        abort(); /* the tape is full: a round lasts for a minute at most */
    record->hold = worker->holds;
    return record;
}

static struct record *begin_of(struct worker *worker, enum op op, const struct grip *grip)
{
    struct record *record = begin(worker, op, grip->object, grip->instance);
    record->permits = (uint16_t)grip->permits;
    return record;
}

/* From one instance to the next: true, if this one did. */
static bool move_on(uint32_t *current, uint32_t instance)
{
    return __atomic_compare_exchange_n(current, &instance, instance + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static void cancelled(void *record)
{
    tape_end(record, ECANCELED);
}

/* A call that is a point of cancellation, so that a cancelled thread is recorded as such. */
#define CANCELABLE(record, call)                                                                                       \
    do {                                                                                                               \
        pthread_cleanup_push(cancelled, (record));                                                                     \
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);                                                           \
        (call);                                                                                                        \
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);                                                          \
        pthread_cleanup_pop(0);                                                                                        \
    } while (0)

/* --- what is taken and given back --------------------------------------------------------------------------------- */

/* Until when is it good? One millisecond less than said, which may have been rounded up. */
static int look(const struct grip *grip, struct record *record)
{
    int64_t ms = 0, asked_ns = now_ns();
    int code = grip_remaining(grip, &ms);
    record->valid_ns = code == ENOTSUP ? INT64_MAX : code == 0 ? asked_ns + (ms - 1) * NS_PER_MS : 0;
    return code;
}

static void check(struct worker *worker, const struct grip *grip)
{
    if (kind_of(grip->object) == COUNTING)
        return;
    struct record *record = begin_of(worker, OP_CHECK, grip);
    tape_end(record, look(grip, record));
}

static void note_grant(const struct cycle *cycle, struct record *record)
{
    look(&cycle->grip, record);
    if (!cycle->share && grip_token(&cycle->grip, &record->token) != 0)
        record->token = 0;
}

static int take(struct worker *worker, const struct cycle *cycle)
{
    const struct grip *grip = &cycle->grip;
    struct record *record = begin_of(worker, cycle->share ? OP_SHARE : OP_TAKE, grip);
    int code = 0;
    record->limit_ms = cycle->limit_ms;
    if (is_semaphore(grip->object) || kind_of(grip->object) == ONCE)
        CANCELABLE(record, code = grip_take(grip, cycle->share, cycle->limit_ms));
    else
        code = grip_take(grip, cycle->share, cycle->limit_ms);
    if (code == 0 || code == EOWNERDEAD)
        note_grant(cycle, record);
    tape_end(record, code);
    return code;
}

/* Permits that could not be given back are still taken, says semaphore.h; so it is tried until it can be known. */
static void give(struct worker *worker, const struct cycle *cycle)
{
    int code;
    do {
        struct record *record = begin_of(worker, OP_GIVE, &cycle->grip);
        code = grip_give(&cycle->grip, cycle->complete);
        tape_end(record, code);
        if (code == ENOTCONN)
            nap();
    } while (code == ENOTCONN && kind_of(cycle->grip.object) == COUNTING && phase_of(worker) != STOP);
}

/* A child must be told that it holds nothing. It says so by its exit status. */
static void fork_child(struct worker *worker, const struct grip *grip)
{
    struct record *record = begin_of(worker, OP_FORK, grip);
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(grip_give(grip, false));
    if (child > 0 && waitpid(child, &status, 0) == child)
        tape_end(record, WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}

/* Wait for the condition, or signal it. False: the mutex is not held any more. */
static bool sleep_or_signal(struct worker *worker, const struct cycle *cycle)
{
    struct record *record = begin_of(worker, cycle->sleeps ? OP_SLEEP : OP_SIGNAL, &cycle->grip);
    if (!cycle->sleeps) {
        tape_end(record, grip_signal(&cycle->grip, lot(worker, 4) == 0));
        return true;
    }
    int code = grip_sleep(&cycle->grip, record->limit_ms = at_most(cycle->limit_ms, 300));
    if (code == 0 || code == ETIMEDOUT)
        note_grant(cycle, record);
    tape_end(record, code);
    return code == 0 || code == ETIMEDOUT;
}

/* For a while, and look at it meanwhile. False: a wait for a condition did not bring the mutex back. */
static bool hold(struct worker *worker, const struct cycle *cycle)
{
    const struct grip *grip = &cycle->grip;
    int64_t until_ns = now_ns() + cycle->hold_ms * NS_PER_MS, step_ms = worker->table->lease_ms / 20 + 1;
    for (int64_t left_ms = cycle->hold_ms; left_ms > 0; left_ms = (until_ns - now_ns()) / NS_PER_MS) {
        int64_t ms = left_ms < step_ms ? left_ms : step_ms;
        nanosleep(&(struct timespec){ (time_t)(ms / 1000), (long)(ms % 1000) * NS_PER_MS }, NULL);
        check(worker, grip);
    }
    if (kind_of(grip->object) == GUARD && !sleep_or_signal(worker, cycle))
        return false;
    if (grip->owner == NULL && wished(worker, WISH_EXIT)) { /* what an owner has outlives the thread */
        tape_end(begin_of(worker, OP_EXIT, grip), 0);
        pthread_exit(NULL);
    }
    if (wished(worker, WISH_FORK))
        fork_child(worker, grip);
    return true;
}

/* Take, hold, give. What the take said. */
static int run(struct worker *worker, const struct cycle *cycle)
{
    worker->holds++;
    int code = take(worker, cycle);
    if (code == EOWNERDEAD && cycle->repairs) { /* else nobody gets it any more, until somebody forces it */
        struct record *record = begin_of(worker, OP_REPAIR, &cycle->grip);
        tape_end(record, grip_repair(&cycle->grip));
    }
    if ((code == 0 || code == EOWNERDEAD) && hold(worker, cycle))
        give(worker, cycle);
    else
        check(worker, &cycle->grip); /* after a failure this thread must have nothing */
    if (code == ENOTRECOVERABLE && lot(worker, 2) == 0) {
        struct record *record = begin_of(worker, OP_FORCE, &cycle->grip);
        tape_end(record, grip_force(&cycle->grip));
    }
    return code;
}

static struct cycle cycle_of(struct worker *worker, enum kind kind, unsigned index)
{
    struct cycle cycle = { .grip = { .things = worker->things, .object = object_of(kind, index), .permits = 1 } };
    if (kind == COUNTING)
        cycle.grip.instance = __atomic_load_n(&worker->table->epoch, __ATOMIC_ACQUIRE);
    cycle.share = kind == RWLOCK && lot(worker, 3) != 0;
    cycle.sleeps = lot(worker, 2) == 0;
    cycle.repairs = lot(worker, 4) != 0;
    return cycle;
}

/* Something that only one thread of another process may want as well. */
static void cold_episode(struct worker *worker)
{
    enum kind kind = (enum kind)lot(worker, LATCH);
    unsigned index = HOT + (unsigned)(worker->process / 2 * worker->table->threads + worker->thread);
    int limit_ms = lot(worker, 2) == 0 ? 1000 : patient_ms(worker);
    if (kind == ONCE)
        kind = MUTEX;
    if (kind == STRIPED)
        index = HOT + index % (STRIPES - HOT);
    for (int i = 0; i < BURST && phase_of(worker) != STOP; i++) {
        struct cycle cycle = cycle_of(worker, kind, index);
        cycle.limit_ms = limit_ms;
        cycle.sleeps = false;
        run(worker, &cycle);
    }
}

/* Something that everybody wants; now and then for longer than a lease. */
static void hot_episode(struct worker *worker, enum kind kind)
{
    struct cycle cycle = cycle_of(worker, kind, lot(worker, HOT));
    unsigned permits = 1 + lot(worker, HOT_PERMITS);
    if (is_semaphore(cycle.grip.object))
        cycle.grip.permits = permits;
    cycle.hold_ms = (int)lot(worker, lot(worker, 40) == 0 ? (unsigned)worker->table->lease_ms * 5 / 4 : 8);
    cycle.limit_ms = patience_ms(worker);
    cycle.complete = lot(worker, 3) != 0;
    if (kind == ONCE)
        cycle.grip.instance = __atomic_load_n(&worker->table->runs[index_of(cycle.grip.object)], __ATOMIC_ACQUIRE);
    if (lot(worker, 4) == 0 && kind != COUNTING && kind != GUARD)
        cycle.grip.owner = worker->owner;
    if (run(worker, &cycle) == EALREADY) /* there is another thing to do */
        move_on(&worker->table->runs[index_of(cycle.grip.object)], cycle.grip.instance);
}

/* --- latches ------------------------------------------------------------------------------------------------------ */

static void set_latch(struct worker *worker, uint32_t object, uint32_t instance)
{
    struct record *record = begin(worker, OP_SET, object, instance);
    lk_latch_t *latch = &thing_of(worker->things, object, instance)->latch;
    record->permits = LATCH_COUNT;
    tape_end(record, instance % 2 != 0 ? lk_latch_setcount(latch, LATCH_COUNT)
                                       : lk_latch_trysetcount(latch, LATCH_COUNT));
}

/*
 * A latch is used for one count: who is the first to see it open goes on to the next name, and sets the count of that.
 * Others may come before it is set, and go on, too.
 */
static void latch_episode(struct worker *worker)
{
    uint32_t object = object_of(LATCH, lot(worker, HOT)), *current = &worker->table->latches[index_of(object)];
    uint32_t instance = __atomic_load_n(current, __ATOMIC_ACQUIRE);
    bool waits = lot(worker, 3) == 0;
    int code = 0;
    struct record *record = begin(worker, waits ? OP_WAIT : OP_COUNTDOWN, object, instance);
    lk_latch_t *latch = &thing_of(worker->things, object, instance)->latch;
    if (waits) {
        record->limit_ms = at_most(patience_ms(worker), 400); /* there may be nobody left to count down */
        CANCELABLE(record, code = lk_latch_waitfor(latch, record->limit_ms));
    } else {
        code = lk_latch_countdown(latch);
    }
    tape_end(record, code);
    if ((code == ENOENT || (waits && code == 0)) && move_on(current, instance))
        set_latch(worker, object, instance + 1);
}

/* --- barriers ----------------------------------------------------------------------------------------------------- */

/* Where not enough come the first one's time ends, which breaks the round, until one that is told so resets it. */
static void barrier_episode(struct worker *worker)
{
    uint32_t object = object_of(BARRIER, lot(worker, HOT));
    lk_barrier_t *barrier = &thing_of(worker->things, object, 0)->barrier;
    unsigned meetings = 1 + lot(worker, MEETINGS);
    for (unsigned i = 0; i < meetings && phase_of(worker) != STOP; i++) {
        struct record *record = begin(worker, OP_MEET, object, 0);
        int code = lk_barrier_waitfor(barrier, record->limit_ms = at_most(patience_ms(worker), patient_ms(worker)));
        record->token = code == LK_BARRIER_SERIAL;
        tape_end(record, code == LK_BARRIER_SERIAL ? 0 : code);
        if (record->code == ECANCELED && lot(worker, 2) == 0) {
            record = begin(worker, OP_RESET, object, 0);
            tape_end(record, lk_barrier_reset(barrier));
        } else if (record->code != 0) {
            return;
        }
    }
}

static void episode(struct worker *worker)
{
    worker->luck = worker->table->seed ^ ((uint64_t)worker->process << 56) ^ ((uint64_t)worker->incarnation << 48) ^
                   ((uint64_t)worker->thread << 40) ^ worker->episodes++;
    draw(&worker->luck);
    unsigned pick = lot(worker, 100), kind = lot(worker, KINDS);
    if (pick < 25)
        cold_episode(worker);
    else if (kind == LATCH)
        latch_episode(worker);
    else if (kind == BARRIER)
        barrier_episode(worker);
    else
        hot_episode(worker, (enum kind)kind);
}

static void ended(void *arg)
{
    struct worker *worker = arg;
    __atomic_store_n(&worker->ended, 1, __ATOMIC_RELEASE);
}

void *worker_run(void *arg)
{
    struct worker *worker = arg;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_cleanup_push(ended, worker);
    while (phase_of(worker) != STOP)
        episode(worker);
    pthread_cleanup_pop(1);
    return NULL;
}
