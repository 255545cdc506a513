/* SPDX-License-Identifier: MIT */
/*
 * worker.c - see worker.h
 */
#include "worker.h"

#include <errno.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CALM_PATIENCE_MS 10000
#define BURST 24 /* cycles on an object that hardly anybody else wants */

static enum phase phase_of(struct table *table)
{
    return __atomic_load_n(&table->phase, __ATOMIC_ACQUIRE);
}

/* What comes too late, as the machine does much else, is not done in the calm: permits would be missing there. */
static bool wished(struct worker_thread *worker, enum wish wish)
{
    enum wish *word = &worker->table->wishes[worker->process][worker->thread];
    if (phase_of(worker->table) != STORM || __atomic_load_n(word, __ATOMIC_ACQUIRE) != wish)
        return false;
    __atomic_store_n(word, WISH_NONE, __ATOMIC_RELEASE);
    return true;
}

static void rest_ms(int64_t ms)
{
    struct timespec time = { (time_t)(ms / 1000), (long)(ms % 1000) * NS_PER_MS };
    nanosleep(&time, NULL);
}

void cancelled(void *record)
{
    tape_end(record, ECANCELED);
}

int patient_ms(const struct worker_thread *worker)
{
    return 3 * (int)worker->table->lease_ms;
}

int patience_ms(struct worker_thread *worker)
{
    unsigned kind = draw_below(&worker->luck, 10), ms = draw_below(&worker->luck, 2500);
    if (kind == 0)
        return 0;
    if (phase_of(worker->table) == CALM)
        return CALM_PATIENCE_MS;
    if (kind == 9)
        return patient_ms(worker);
    return 20 + (int)(kind < 7 ? ms / 5 : ms);
}

/* Until when is it good? One millisecond less than said, which may have been rounded up. */
int cycle_look(struct worker_thread *worker, const struct cycle *cycle, struct record *record)
{
    int64_t ms = 0, asked_ns = now_ns();
    int code = kind_of(cycle->object) == BYID ? shell_remainingid(worker->shells, cycle->object, worker->id, &ms)
                                              : shell_remaining(worker->shells, cycle->object, cycle->instance, &ms);
    if (code == ENOTSUP)
        record->valid_ns = INT64_MAX;
    else
        record->valid_ns = code == 0 ? asked_ns + (ms - 1) * NS_PER_MS : 0;
    return code;
}

struct record *cycle_begin(struct worker_thread *worker, enum op op, const struct cycle *cycle)
{
    struct record *record = tape_begin(&worker->tape, op, cycle->object, cycle->instance);
    if (record != NULL) {
        record->hold = worker->holds;
        record->permits = (uint16_t)cycle->permits;
        record->fixed = (int8_t)cycle->fixed;
        __atomic_add_fetch(&worker->table->operations, 1, __ATOMIC_RELAXED);
    }
    return record;
}

static bool has_lease(const struct cycle *cycle)
{
    return !is_counting(cycle->object);
}

/* Is it somebody's, and not of whoever knows its number? */
static bool has_owner(const struct cycle *cycle)
{
    return has_lease(cycle) && kind_of(cycle->object) != BYID;
}

static int call_take(struct worker_thread *worker, const struct cycle *cycle)
{
    if (kind_of(cycle->object) == BYID)
        return shell_takeid(worker->shells, cycle->object, cycle->limit_ms, worker->id);
    return shell_take(worker->shells, cycle->object, cycle->instance, cycle->share, cycle->permits, cycle->limit_ms);
}

static int call_give(struct worker_thread *worker, const struct cycle *cycle)
{
    if (kind_of(cycle->object) == BYID)
        return shell_giveid(worker->shells, cycle->object, worker->id);
    if (cycle->number != 0)
        return shell_complete(worker->shells, cycle->object, cycle->instance, cycle->number);
    return shell_give(worker->shells, cycle->object, cycle->instance, cycle->permits);
}

static int token_of(struct worker_thread *worker, const struct cycle *cycle, uint64_t *token)
{
    return kind_of(cycle->object) == BYID ? shell_tokenid(worker->shells, cycle->object, worker->id, token)
                                          : shell_token(worker->shells, cycle->object, cycle->instance, token);
}

int cycle_granted(struct worker_thread *worker, const struct cycle *cycle, struct record *record)
{
    int code = cycle_look(worker, cycle, record);
    if (!cycle->share)
        (void)!token_of(worker, cycle, &record->token);
    return code;
}

static int take_cancelably(struct worker_thread *worker, const struct cycle *cycle, struct record *record)
{
    int code = 0;
    CANCELABLE(record, code = call_take(worker, cycle));
    return code;
}

int cycle_take(struct worker_thread *worker, struct cycle *cycle)
{
    struct record *record = cycle_begin(worker, cycle->share ? OP_SHARE : OP_TAKE, cycle);
    int code = 0;
    if (record == NULL)
        return ENOMEM;
    record->limit_ms = cycle->any ? 0 : cycle->limit_ms; /* any of them is a try of each */
    if (cycle->any)
        code = shell_takeany(worker->shells, &cycle->object);
    else if (is_semaphore(cycle->object) || kind_of(cycle->object) == ONCE)
        code = take_cancelably(worker, cycle, record);
    else
        code = call_take(worker, cycle);
    record->object = cycle->object;
    if (code == 0 || code == EOWNERDEAD)
        cycle_granted(worker, cycle, record);
    else
        record->token = (uint64_t)(lk_errorleft() + 1);
    tape_end(record, code);
    return code;
}

/* After a failure this thread must have nothing. */
void cycle_failed(struct worker_thread *worker, const struct cycle *cycle)
{
    struct record *record = cycle_begin(worker, OP_CHECK, cycle);
    if (record != NULL)
        tape_end(record, cycle_look(worker, cycle, record));
}

/* Permits that could not be given back are still taken, says semaphore.h; so it is tried until it can be known. */
void cycle_give(struct worker_thread *worker, const struct cycle *cycle)
{
    int code;
    do {
        struct record *record = cycle_begin(worker, OP_GIVE, cycle);
        if (record == NULL)
            return;
        record->token = cycle->number;
        code = call_give(worker, cycle);
        tape_end(record, code);
        if (code == ENOTCONN)
            rest_ms(5);
    } while (code == ENOTCONN && is_counting(cycle->object) && phase_of(worker->table) != STOP);
}

/*
 * Write to the resource with the token of this hold: it refuses tokens below the largest that it saw. To be
 * refused is right for a hold that was lost, and wrong for one that is good even after the refusal.
 */
static void write_resource(struct worker_thread *worker, const struct cycle *cycle)
{
    uint64_t *written = &worker->table->written[cycle->object], token = 0;
    struct record *record = cycle_begin(worker, OP_WRITE, cycle);
    int code = 0;
    if (record == NULL)
        return;
    if (shell_token(worker->shells, cycle->object, cycle->instance, &token) != 0)
        code = ESTALE;
    uint64_t largest = __atomic_load_n(written, __ATOMIC_SEQ_CST);
    while (code == 0 && token > largest &&
           !__atomic_compare_exchange_n(written, &largest, token, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        continue;
    if (code == 0 && token < largest)
        code = cycle_look(worker, cycle, record) == 0 ? EBUSY : ESTALE;
    record->token = token;
    tape_end(record, code);
}

/* A child must be told that it holds nothing. It says so by its exit status. */
static void fork_child(struct worker_thread *worker, const struct cycle *cycle)
{
    struct record *record = cycle_begin(worker, OP_FORK, cycle);
    int status = 0;
    if (record == NULL)
        return;
    pid_t child = fork();
    if (child == 0)
        _exit(call_give(worker, cycle));
    if (child > 0 && waitpid(child, &status, 0) == child)
        tape_end(record, WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}

static void end_with_hold(struct worker_thread *worker, const struct cycle *cycle)
{
    struct record *record = cycle_begin(worker, OP_EXIT, cycle);
    if (record != NULL)
        tape_end(record, 0);
    pthread_exit(NULL);
}

/* Once more, and back: whatever happens meanwhile, this thread never waits for itself. */
bool cycle_nest(struct worker_thread *worker, const struct cycle *cycle)
{
    struct record *record = cycle_begin(worker, OP_NEST, cycle);
    int code;
    if (record == NULL)
        return false;
    record->limit_ms = cycle->limit_ms;
    code = shell_take(worker->shells, cycle->object, cycle->instance, cycle->share, cycle->permits, cycle->limit_ms);
    tape_end(record, code);
    return code == 0;
}

void cycle_unnest(struct worker_thread *worker, const struct cycle *cycle)
{
    struct record *record = cycle_begin(worker, OP_UNNEST, cycle);
    if (record != NULL)
        tape_end(record, shell_give(worker->shells, cycle->object, cycle->instance, cycle->permits));
}

static void downgrade(struct worker_thread *worker, const struct cycle *cycle)
{
    struct record *record = cycle_begin(worker, OP_DOWNGRADE, cycle);
    int code;
    if (record == NULL)
        return;
    code = shell_downgrade(worker->shells, cycle->object);
    if (code == 0 || code == EIO)
        cycle_look(worker, cycle, record);
    tape_end(record, code);
}

/* Mostly: else nobody gets it any more, until somebody forces it. */
static void repair(struct worker_thread *worker, const struct cycle *cycle)
{
    struct record *record = cycle->repairs ? cycle_begin(worker, OP_REPAIR, cycle) : NULL;
    if (record != NULL)
        tape_end(record, shell_repair(worker->shells, cycle->object));
}

/* What an operator does, whoever has it. */
static void force(struct worker_thread *worker, const struct cycle *cycle)
{
    struct record *record = cycle_begin(worker, OP_FORCE, cycle);
    if (record != NULL)
        tape_end(record, shell_force(worker->shells, cycle->object));
}

/* Another lease, from now on. */
static void extend(struct worker_thread *worker, const struct cycle *cycle)
{
    struct record *record = cycle_begin(worker, OP_EXTEND, cycle);
    if (record == NULL)
        return;
    record->limit_ms = cycle->extend_ms;
    int code = kind_of(cycle->object) == BYID
                   ? shell_extendid(worker->shells, cycle->object, worker->id, cycle->extend_ms)
                   : shell_extend(worker->shells, cycle->object, cycle->extend_ms);
    cycle_look(worker, cycle, record);
    tape_end(record, code);
}

/* Not how long it is good for, as far as is known here, but whether the server has it. */
static void ask(struct worker_thread *worker, const struct cycle *cycle)
{
    struct record *record = cycle_begin(worker, OP_ASK, cycle);
    if (record != NULL)
        tape_end(record, kind_of(cycle->object) == BYID ? shell_askid(worker->shells, cycle->object, worker->id)
                                                        : shell_ask(worker->shells, cycle->object, cycle->instance));
}

/* Another number of permits in all. Whoever guessed wrong is told the number, and tries once more. */
static void resize(struct worker_thread *worker, const struct cycle *cycle)
{
    unsigned expected = 1 + draw_below(&worker->luck, HOT_PERMITS), total = 1 + draw_below(&worker->luck, HOT_PERMITS);
    int code = EEXIST;
    for (int tries = 0; tries < 2 && code == EEXIST; tries++) {
        struct record *record = cycle_begin(worker, OP_RESIZE, cycle);
        if (record == NULL)
            return;
        record->permits = (uint16_t)total;
        record->token = expected;
        code = shell_resize(worker->shells, cycle->object, 0, &expected, total);
        record->limit_ms = (int32_t)expected;
        tape_end(record, code);
    }
}

/* One more than `expected`, if there are so many; *expected tells how many there were. */
static int add_to(struct worker_thread *worker, const struct cycle *cycle, unsigned *expected)
{
    struct record *record = cycle_begin(worker, OP_ADD, cycle);
    if (record == NULL)
        return ENOMEM;
    record->permits = 1;
    record->limit_ms = 1;
    int code = shell_resize(worker->shells, cycle->object, cycle->instance, expected, *expected + 1);
    tape_end(record, code);
    return code;
}

static int add(struct worker_thread *worker, const struct cycle *cycle, int n)
{
    struct record *record = cycle_begin(worker, OP_ADD, cycle);
    if (record == NULL)
        return ENOMEM;
    record->permits = 0;
    record->limit_ms = n;
    int code = shell_add(worker->shells, cycle->object, cycle->instance, n);
    tape_end(record, code);
    return code;
}

/* More permits for a while. Returns how many; 0: none, or nobody knows. */
static int grow(struct worker_thread *worker, const struct cycle *cycle)
{
    unsigned expected = HOT_PERMITS, more = 1 + draw_below(&worker->luck, 2);
    if (draw_below(&worker->luck, 3) != 0)
        return add(worker, cycle, (int)more) == 0 ? (int)more : 0;
    int code = EEXIST;
    for (int tries = 0; tries < 3 && code == EEXIST; tries++)
        code = add_to(worker, cycle, &expected);
    return code == 0 ? 1 : 0;
}

/* All that were lent are taken away again: so there are never fewer than at first. */
static void shrink(struct worker_thread *worker, const struct cycle *cycle, int more)
{
    while (add(worker, cycle, -more) == ENOTCONN && phase_of(worker->table) != STOP)
        rest_ms(5);
}

static void make(struct worker_thread *worker, const struct cycle *cycle)
{
    struct record *record = shells_unmake(worker->shells, cycle->object) ? cycle_begin(worker, OP_MAKE, cycle) : NULL;
    if (record != NULL)
        tape_end(record, shell_make(worker->shells, cycle->object));
}

static void hold(struct worker_thread *worker, const struct cycle *cycle)
{
    int64_t until_ns = now_ns() + cycle->hold_ms * NS_PER_MS, step_ms = worker->table->lease_ms / 20 + 1;
    enum kind kind = kind_of(cycle->object);
    if (!cycle->share && kind <= RWLOCK)
        write_resource(worker, cycle);
    if (cycle->nest && cycle_nest(worker, cycle))
        cycle_unnest(worker, cycle);
    if (cycle->downgrade)
        downgrade(worker, cycle);
    if (cycle->extend_ms != 0)
        extend(worker, cycle);
    if (cycle->ask)
        ask(worker, cycle);
    for (int64_t left_ms = cycle->hold_ms; left_ms > 0; left_ms = (until_ns - now_ns()) / NS_PER_MS) {
        rest_ms(left_ms < step_ms ? left_ms : step_ms);
        struct record *record = has_lease(cycle) ? cycle_begin(worker, OP_CHECK, cycle) : NULL;
        if (record != NULL)
            tape_end(record, cycle_look(worker, cycle, record));
    }
    if (kind != BYID && !is_anonymous(cycle->object) && !cycle->owned &&
        wished(worker, WISH_EXIT)) /* the others outlive their thread */
        end_with_hold(worker, cycle);
    if (wished(worker, WISH_FORK))
        fork_child(worker, cycle);
}

int cycle_run(struct worker_thread *worker, struct cycle *cycle)
{
    worker->holds++;
    int code = cycle_take(worker, cycle);
    if (code == EOWNERDEAD)
        repair(worker, cycle);
    if (code == 0 || code == EOWNERDEAD) {
        hold(worker, cycle);
        cycle_give(worker, cycle);
    } else if (has_owner(cycle)) {
        cycle_failed(worker, cycle);
    }
    enum kind kind = kind_of(cycle->object);
    if (cycle->forces && (code == ENOTRECOVERABLE || kind == FORCED || kind == REMOVED))
        force(worker, cycle);
    if (cycle->makes && kind == REMOVED)
        make(worker, cycle);
    if (is_anonymous(cycle->object))
        shells_leave(worker->shells);
    return code;
}

static uint32_t epoch_of(struct worker_thread *worker, enum kind kind)
{
    return is_counting(object_of(kind, 0)) ? __atomic_load_n(&worker->table->epoch, __ATOMIC_ACQUIRE) : 0;
}

/* Something that only one thread of another process may want as well. */
static void cold_episode(struct worker_thread *worker)
{
    enum kind kind = (enum kind)draw_below(&worker->luck, LATCH);
    unsigned index = HOT + (unsigned)(worker->process / 2 * worker->table->threads + worker->thread);
    if (kind == STRIPED)
        index = HOT + index % (STRIPES - HOT);
    struct cycle cycle = { .object = object_of(kind, index), .permits = 1, .repairs = true };
    cycle.limit_ms = draw_below(&worker->luck, 2) == 0 ? 1000 : patient_ms(worker);
    for (int i = 0; i < BURST && phase_of(worker->table) != STOP; i++) {
        cycle.instance = epoch_of(worker, kind);
        if (shells_instance(worker->shells, cycle.object, cycle.instance) != cycle.instance)
            return;
        cycle.share = kind == RWLOCK && draw_below(&worker->luck, 2) == 0;
        cycle.forces = kind == ROBUST || draw_below(&worker->luck, 8) == 0;
        cycle.makes = draw_below(&worker->luck, 4) == 0;
        cycle_run(worker, &cycle);
    }
}

/*
 * Now and then a call says itself whether its lease is renewed. Not of what is to be taken over from the dead, or has a
 * longest time; a level more, or reading from then on, are of a lease that is renewed.
 */
static int draw_fixed(struct worker_thread *worker, const struct cycle *cycle)
{
    enum kind kind = kind_of(cycle->object);
    bool drawn = draw_below(&worker->luck, 6) == 0;
    if (!drawn || !has_owner(cycle) || kind == ROBUST || kind == CAPPED || cycle->nest || cycle->downgrade)
        return 0;
    return kind == FIXED ? -1 : 1;
}

static void draw_questions(struct worker_thread *worker, struct cycle *cycle)
{
    int lease_ms = (int)worker->table->lease_ms;
    bool fixed = cycle->fixed == 1 || (kind_of(cycle->object) == FIXED && cycle->fixed == 0);
    unsigned less_ms = draw_below(&worker->luck, (unsigned)lease_ms / 3);
    cycle->ask = draw_below(&worker->luck, 8) == 0 && has_lease(cycle);
    if (draw_below(&worker->luck, 8) == 0 && has_lease(cycle))
        cycle->extend_ms = fixed ? lease_ms : lease_ms - (int)less_ms;
}

/* Something that everybody wants; now and then for longer than a lease. */
static void hot_episode(struct worker_thread *worker, enum kind kind)
{
    struct cycle cycle = { .object = object_of(kind, draw_below(&worker->luck, HOT)),
                           .instance = epoch_of(worker, kind) };
    int64_t lease_ms = worker->table->lease_ms; /* of this call; 0: that of the attributes */
    unsigned permits = 1 + draw_below(&worker->luck, HOT_PERMITS), shares = draw_below(&worker->luck, 3);
    cycle.permits = is_semaphore(cycle.object) && kind != BYID && kind != RESIZED ? permits : 1;
    cycle.makes = draw_below(&worker->luck, 8) == 0;
    cycle.share = kind == RWLOCK && shares != 0;
    cycle.nest = draw_below(&worker->luck, 4) == 0 && kind <= RWLOCK && kind != FIXED;
    cycle.repairs = draw_below(&worker->luck, 4) != 0;
    cycle.forces = draw_below(&worker->luck, 40) == 0 || (kind == ROBUST && draw_below(&worker->luck, 2) == 0);
    cycle.downgrade = draw_below(&worker->luck, 3) == 0 && kind == RWLOCK && !cycle.share;
    cycle.hold_ms = (int)draw_below(&worker->luck, 8);
    if (draw_below(&worker->luck, 40) == 0)
        cycle.hold_ms += (int)draw_below(&worker->luck, (unsigned)worker->table->lease_ms * 5 / 4);
    cycle.limit_ms = patience_ms(worker);
    cycle.owned = draw_below(&worker->luck, 4) == 0 && has_owner(&cycle);
    if (draw_below(&worker->luck, 4) == 0 && has_owner(&cycle))
        lease_ms -= draw_below(&worker->luck, (unsigned)lease_ms / 3);
    else
        lease_ms = 0;
    if (cycle.owned && worker->owner == NULL)
        worker->owner = shells_owner(worker->shells);
    cycle.fixed = draw_fixed(worker, &cycle);
    draw_questions(worker, &cycle);
    cycle.any = kind == STRIPED && lease_ms == 0 && cycle.fixed == 0 && draw_below(&worker->luck, 2) == 0;
    if (shells_instance(worker->shells, cycle.object, cycle.instance) != cycle.instance)
        return;
    int more = kind == GROWN && draw_below(&worker->luck, 4) == 0 ? grow(worker, &cycle) : 0;
    shells_actfor(cycle.owned ? worker->owner : NULL, lease_ms, cycle.fixed);
    cycle_run(worker, &cycle);
    shells_actfor(NULL, 0, 0);
    if (more != 0)
        shrink(worker, &cycle, more);
    if (kind == RESIZED && draw_below(&worker->luck, 4) == 0)
        resize(worker, &cycle);
}

static void episode(struct worker_thread *worker)
{
    worker->luck = worker->table->seed ^ ((uint64_t)worker->process << 56) ^ ((uint64_t)worker->incarnation << 48) ^
                   ((uint64_t)worker->thread << 40) ^ worker->episodes++;
    draw(&worker->luck);
    shells_leave(worker->shells); /* what other threads kept it from */
    unsigned pick = draw_below(&worker->luck, 100), kind = draw_below(&worker->luck, KINDS);
    if (pick < 25)
        cold_episode(worker);
    else if (kind == ALONE)
        latch_alone(worker);
    else if (kind == LATCH)
        latch_episode(worker);
    else if (kind == BUFFER)
        buffer_episode(worker);
    else if (kind == BARRIER)
        barrier_episode(worker);
    else if (kind == ONCE)
        once_episode(worker);
    else
        hot_episode(worker, (enum kind)kind);
}

static void ended(void *arg)
{
    struct worker_thread *worker = arg;
    shells_leave(worker->shells);
    __atomic_store_n(&worker->ended, 1, __ATOMIC_RELEASE);
}

void *worker_thread_run(void *arg)
{
    struct worker_thread *worker = arg;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    shells_iam((unsigned)worker->thread);
    pthread_cleanup_push(ended, worker);
    while (phase_of(worker->table) != STOP)
        episode(worker);
    pthread_cleanup_pop(1);
    return NULL;
}
