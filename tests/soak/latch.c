/* SPDX-License-Identifier: MIT */
/*
 * latch.c - episodes with latches
 *
 * A latch is used for one count: somebody sets it, everybody counts down or waits, and who sees it open
 * goes on to the next name. So what a wait must say follows from the records of that name alone. The word
 * of a latch is its generation and a step; a setter that dies leaves it at SETTING, and others give that
 * generation up after a while.
 */
#include "worker.h"

#include <errno.h>
#include <stdlib.h>

#define GIVEN_UP_NS (3000 * NS_PER_MS)

enum step { UNSET, SETTING, COUNTED };

struct turn {
    struct worker_thread *worker;
    uint64_t *word, seen;
    int64_t *since_ns;
    uint32_t object, instance;
};

static bool move_on(struct turn *turn, uint64_t next)
{
    uint64_t seen = turn->seen;
    if (!__atomic_compare_exchange_n(turn->word, &seen, next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return false;
    __atomic_store_n(turn->since_ns, now_ns(), __ATOMIC_SEQ_CST);
    return true;
}

static void next_generation(struct turn *turn)
{
    move_on(turn, ((turn->seen >> 2) + 1) << 2 | UNSET);
}

static struct record *begin(struct turn *turn, enum op op)
{
    __atomic_add_fetch(&turn->worker->table->operations, 1, __ATOMIC_RELAXED);
    return tape_begin(&turn->worker->tape, op, turn->object, turn->instance);
}

/* Whether a count was set is known to everybody: else nobody uses that name. */
static void set(struct turn *turn)
{
    uint64_t setting = turn->seen | SETTING;
    if (!move_on(turn, setting))
        return;
    turn->seen = setting;
    struct record *record = begin(turn, OP_SET);
    if (record == NULL)
        return;
    record->permits = LATCH_COUNT;
    lk_latch_t *latch = shell_latch(turn->worker->shells, turn->object, turn->instance);
    int code =
        turn->instance % 2 != 0 ? lk_latch_setcount(latch, LATCH_COUNT) : lk_latch_trysetcount(latch, LATCH_COUNT);
    tape_end(record, code);
    if (code == 0)
        move_on(turn, (turn->seen & ~(uint64_t)3) | COUNTED);
    else
        next_generation(turn);
}

static void count_down(struct turn *turn)
{
    struct record *record = begin(turn, OP_COUNTDOWN);
    if (record == NULL)
        return;
    int code = lk_latch_countdown(shell_latch(turn->worker->shells, turn->object, turn->instance));
    tape_end(record, code);
    if (code == ENOENT)
        next_generation(turn);
}

static void wait_open(struct turn *turn)
{
    struct record *record = begin(turn, OP_WAIT);
    int code = 0;
    if (record == NULL)
        return;
    record->limit_ms = patience_ms(turn->worker);
    if (record->limit_ms > 400)
        record->limit_ms = 400; /* there may be nobody left to count down */
    CANCELABLE(record, code = lk_latch_waitfor(shell_latch(turn->worker->shells, turn->object, turn->instance),
                                               record->limit_ms));
    tape_end(record, code);
    if (code == ENOENT || code == ESTALE || code == 0)
        next_generation(turn);
}

void latch_episode(struct worker_thread *worker)
{
    unsigned index = draw_below(&worker->luck, HOT);
    struct turn turn = { .worker = worker,
                         .word = &worker->table->latches[index],
                         .since_ns = &worker->table->latch_since_ns[index],
                         .object = object_of(LATCH, index) };
    unsigned choice = draw_below(&worker->luck, 3);
    turn.seen = __atomic_load_n(turn.word, __ATOMIC_SEQ_CST);
    turn.instance = (uint32_t)(turn.seen >> 2);
    if (turn.instance >= GENERATIONS_MAX - 1)
        return;
    switch ((enum step)(turn.seen & 3)) {
    case UNSET:
        if (choice == 0 && is_appearing(turn.object))
            wait_open(&turn);
        else
            set(&turn);
        break;
    case SETTING:
        if (now_ns() - __atomic_load_n(turn.since_ns, __ATOMIC_SEQ_CST) > GIVEN_UP_NS)
            next_generation(&turn);
        break;
    case COUNTED:
        if (choice == 0)
            wait_open(&turn);
        else
            count_down(&turn);
        break;
    }
}

/* Nobody else uses it: it opens with the last count, and is gone afterwards. */
void latch_alone(struct worker_thread *worker)
{
    struct turn turn = { .worker = worker,
                         .object = object_of(ALONE, (unsigned)(worker->process * THREADS_MAX + worker->thread)),
                         .instance = (uint32_t)worker->incarnation << 24 | (uint32_t)(worker->episodes & 0xffffff) };
    unsigned counts = draw_below(&worker->luck, LATCH_COUNT + 1);
    lk_latch_t latch;
    struct record *record = begin(&turn, OP_SET);
    if (record == NULL || shells_latch(worker->shells, &latch) != 0)
        return;
    record->permits = LATCH_COUNT;
    tape_end(record, lk_latch_trysetcount(&latch, LATCH_COUNT));
    for (unsigned i = 0; i < counts && (record = begin(&turn, OP_COUNTDOWN)) != NULL; i++)
        tape_end(record, lk_latch_countdown(&latch));
    record = begin(&turn, OP_WAIT);
    if (record != NULL) {
        record->limit_ms = counts == LATCH_COUNT ? 400 : 10;
        tape_end(record, lk_latch_waitfor(&latch, record->limit_ms));
    }
    if (lk_latch_destroy(&latch) != 0)
        abort();
}
