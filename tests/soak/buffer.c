/* SPDX-License-Identifier: MIT */
/*
 * buffer.c - episodes with a bounded buffer: a mutex, and two conditions for those who wait for items or for room
 *
 * The buffer is a word of shared memory: the last token that it saw, and how many items were put and taken, by which they are
 * numbered. It is a resource that compares tokens, as a program needs whose holds can be lost: a holder shows its token
 * before it looks, and from then on no older one changes the word.
 */
#include "worker.h"

#include <errno.h>

#define BURST 5
#define ITEMS_MAX 65000 /* of a round: their numbers have 16 bits */

struct visit {
    struct worker_thread *worker;
    struct cycle *cycle;
    struct record *record; /* of a sleep */
    uint64_t *word;
    uint64_t seen; /* the word, as this holder left it last */
    bool takes;    /* else it puts */
    bool deep;     /* the mutex is held twice */
};

static unsigned put_of(uint64_t word)
{
    return word >> 16 & 0xffff;
}

static unsigned taken_of(uint64_t word)
{
    return word & 0xffff;
}

static bool is_ready(const struct visit *visit)
{
    unsigned items = put_of(visit->seen) - taken_of(visit->seen);
    return visit->takes ? items > 0 : items < BUFFER_ROOM;
}

/* As write_resource() of worker.c. */
static int refused(struct visit *visit)
{
    struct record look = { 0 };
    return cycle_look(visit->worker, visit->cycle, &look) == 0 ? EBUSY : ESTALE;
}

/* Show the token of this hold; only its last digits, which do not come again within a round. */
static int show_token(struct visit *visit)
{
    uint64_t token;
    struct cycle *cycle = visit->cycle;
    if (shell_token(visit->worker->shells, cycle->object, cycle->instance, &token) != 0)
        return ESTALE;
    uint64_t seen = __atomic_load_n(visit->word, __ATOMIC_SEQ_CST);
    do {
        if (seen != 0 && (int32_t)((uint32_t)token - (uint32_t)(seen >> 32)) < 0)
            return refused(visit);
        visit->seen = token << 32 | (seen & UINT32_MAX);
    } while (!__atomic_compare_exchange_n(visit->word, &seen, visit->seen, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    return 0;
}

static int change_word(struct visit *visit)
{
    uint64_t seen = visit->seen, next = seen + (visit->takes ? 1 : 1 << 16);
    if (!__atomic_compare_exchange_n(visit->word, &seen, next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return refused(visit); /* by somebody with a larger token */
    visit->seen = next;
    return 0;
}

/* Put an item, or take one. */
static int move(struct visit *visit)
{
    struct record *record = cycle_begin(visit->worker, OP_MOVE, visit->cycle);
    if (record == NULL)
        return ENOMEM;
    record->permits = visit->takes;
    record->token = visit->takes ? taken_of(visit->seen) : put_of(visit->seen);
    int code = change_word(visit);
    tape_end(record, code);
    return code;
}

static void tell(struct visit *visit)
{
    struct worker_thread *worker = visit->worker;
    struct record *record = cycle_begin(worker, OP_SIGNAL, visit->cycle);
    if (record == NULL)
        return;
    record->permits = !visit->takes; /* there is an item more, or room for one */
    record->token = draw_below(&worker->luck, 12) == 0;
    tape_end(record, shell_signal(worker->shells, visit->cycle->object, !visit->takes, record->token != 0));
}

static void leave(struct visit *visit)
{
    if (visit->deep)
        cycle_unnest(visit->worker, visit->cycle);
    cycle_give(visit->worker, visit->cycle);
}

/* The handler of a thread that is cancelled, as a program has it: the mutex is held, unless no server gave it back. */
static void give_up(void *arg)
{
    struct visit *visit = arg;
    int code = cycle_granted(visit->worker, visit->cycle, visit->record);
    tape_end(visit->record, ECANCELED);
    if (code != EPERM)
        leave(visit);
}

static bool is_held_after(int code)
{
    return code == 0 || code == ETIMEDOUT || code == EOWNERDEAD || code == EINVAL;
}

/* Give the mutex back, and have it again: if is_held_after(). */
static int sleep_until_told(struct visit *visit)
{
    struct worker_thread *worker = visit->worker;
    int limit_ms = index_of(visit->cycle->object) == 0 ? patience_ms(worker) : patient_ms(worker), code = 0;
    struct record *record = visit->record = cycle_begin(worker, OP_SLEEP, visit->cycle);
    if (record == NULL)
        return ENOMEM;
    record->permits = visit->takes;
    record->limit_ms = limit_ms < patient_ms(worker) ? limit_ms : patient_ms(worker);
    pthread_cleanup_push(give_up, visit);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    code = shell_sleep(worker->shells, visit->cycle->object, visit->takes, record->limit_ms);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_cleanup_pop(0);
    if (is_held_after(code))
        cycle_granted(worker, visit->cycle, record);
    tape_end(record, code);
    return code;
}

/* 0: an item was moved, or not even that; else the mutex is not held, and nothing is to be given back. */
static int use(struct visit *visit)
{
    bool told = true;
    int code = show_token(visit);
    while (code == 0 && told && !is_ready(visit)) {
        int slept = sleep_until_told(visit);
        if (!is_held_after(slept))
            return slept;
        told = slept == 0;
        code = show_token(visit);
    }
    if (code == 0 && is_ready(visit) && put_of(visit->seen) < ITEMS_MAX && move(visit) == 0)
        tell(visit);
    return 0;
}

static void visit_once(struct worker_thread *worker, struct cycle *cycle)
{
    struct visit visit = { .worker = worker,
                           .cycle = cycle,
                           .word = &worker->table->buffers[index_of(cycle->object)],
                           .takes = draw_below(&worker->luck, 2) == 0 };
    bool deep = draw_below(&worker->luck, 4) == 0;
    worker->holds++;
    if (cycle_take(worker, cycle) != 0) {
        cycle_failed(worker, cycle);
        return;
    }
    visit.deep = deep && cycle_nest(worker, cycle);
    if (use(&visit) == 0)
        leave(&visit);
    else
        cycle_failed(worker, cycle);
}

/* One buffer is busy. At the other there is time between two signals, so that it is seen whom each wakes: check_buffer.c. */
void buffer_episode(struct worker_thread *worker)
{
    bool busy = draw_below(&worker->luck, 3) != 0;
    struct cycle cycle = { .object = object_of(BUFFER, busy ? 0 : 1), .permits = 1 };
    unsigned visits = busy ? 1 + draw_below(&worker->luck, BURST) : 1;
    for (unsigned i = 0; i < visits && __atomic_load_n(&worker->table->phase, __ATOMIC_ACQUIRE) != STOP; i++) {
        cycle.limit_ms = patience_ms(worker);
        visit_once(worker, &cycle);
    }
}
