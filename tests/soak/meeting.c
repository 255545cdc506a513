/* SPDX-License-Identifier: MIT */
/*
 * meeting.c - episodes with a barrier, and with what is to be done once
 *
 * Whoever comes to a barrier is a party. Where not enough of them come the first one's time ends, which breaks the round, until
 * one of those that are told so resets it. Of what is done once each name is used for some time, as a latch is.
 */
#include "worker.h"

#include <errno.h>

#define MEETINGS 6

static struct record *begin(struct worker_thread *worker, enum op op, uint32_t object, uint32_t instance)
{
    __atomic_add_fetch(&worker->table->operations, 1, __ATOMIC_RELAXED);
    return tape_begin(&worker->tape, op, object, instance);
}

static void reset(struct worker_thread *worker, uint32_t object, uint32_t instance)
{
    struct record *record = begin(worker, OP_RESET, object, instance);
    if (record != NULL)
        tape_end(record, shell_reset(worker->shells, object, instance));
}

/* --- a barrier ------------------------------------------------------------------------------------------------------- */

/* Whether all had come by then is not known. */
static void cancelled_there(void *arg)
{
    struct record *record = arg;
    record->token = MET_CANCELLED;
    tape_end(record, ECANCELED);
}

static int meet(struct worker_thread *worker, uint32_t object)
{
    int code = 0, limit_ms = patience_ms(worker);
    struct record *record = begin(worker, OP_MEET, object, 0);
    if (record == NULL)
        return ENOMEM;
    record->limit_ms = limit_ms < patient_ms(worker) ? limit_ms : patient_ms(worker);
    pthread_cleanup_push(cancelled_there, record);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    code = shell_meet(worker->shells, object, record->limit_ms);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_cleanup_pop(0);
    if (code == LK_BARRIER_SERIAL) {
        record->token = MET_SERIAL;
        code = 0;
    }
    tape_end(record, code);
    return code;
}

void barrier_episode(struct worker_thread *worker)
{
    uint32_t object = object_of(BARRIER, draw_below(&worker->luck, HOT));
    unsigned meetings = 1 + draw_below(&worker->luck, MEETINGS);
    for (unsigned i = 0; i < meetings && __atomic_load_n(&worker->table->phase, __ATOMIC_ACQUIRE) != STOP; i++) {
        int code = meet(worker, object);
        if (code == ECANCELED && draw_below(&worker->luck, 2) == 0)
            reset(worker, object, 0);
        else if (code != 0)
            return;
    }
}

/* --- once --------------------------------------------------------------------------------------------------------------- */

/* It is done, and everybody is told the same result; then it is forgotten, or others are to be done. */
static void look_at_result(struct worker_thread *worker, const struct cycle *cycle)
{
    uint64_t number = 0;
    struct record *record = begin(worker, OP_RESULT, cycle->object, cycle->instance);
    if (record == NULL)
        return;
    int code = shell_result(worker->shells, cycle->object, cycle->instance, &number);
    record->token = number;
    tape_end(record, code);
    unsigned choice = draw_below(&worker->luck, 8);
    if (choice == 0)
        reset(worker, cycle->object, cycle->instance);
    uint32_t seen = cycle->instance;
    if (choice > 4)
        __atomic_compare_exchange_n(&worker->table->runs[index_of(cycle->object)], &seen, seen + 1, false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

void once_episode(struct worker_thread *worker)
{
    unsigned index = draw_below(&worker->luck, HOT);
    struct cycle cycle = { .object = object_of(ONCE, index),
                           .instance = __atomic_load_n(&worker->table->runs[index], __ATOMIC_SEQ_CST),
                           .permits = 1,
                           .limit_ms = patience_ms(worker),
                           .hold_ms = (int)draw_below(&worker->luck, 8),
                           .ask = draw_below(&worker->luck, 8) == 0 };
    if (cycle.instance >= GENERATIONS_MAX - 1)
        return;
    if (draw_below(&worker->luck, 40) == 0)
        cycle.hold_ms += (int)draw_below(&worker->luck, (unsigned)worker->table->lease_ms * 5 / 4);
    if (draw_below(&worker->luck, 3) != 0)
        cycle.number = 1 + ((uint64_t)worker->process << 56 | (uint64_t)worker->incarnation << 48 |
                            (uint64_t)worker->thread << 40 | worker->holds);
    if (cycle_run(worker, &cycle) == EALREADY)
        look_at_result(worker, &cycle);
}
