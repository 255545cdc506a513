/* SPDX-License-Identifier: MIT */
/*
 * heap_test.c - the earliest timer comes first after whatever was set, moved and removed
 *
 * labels: memory
 */
#include "assert_lk.h"
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

enum { TIMERS = 200, OPERATIONS = 100000 };

/* --- memory.c of this program, to be refused memory ----------------------------------------------------- */

static bool refuse;

void *lk__alloc(size_t size)
{
    return refuse ? NULL : calloc(1, size);
}

void *lk__realloc(void *memory, size_t size)
{
    return refuse ? NULL : realloc(memory, size);
}

char *lk__strdup(const char *text)
{
    return refuse ? NULL : strdup(text);
}

void lk__free(void *memory)
{
    free(memory);
}

void lk_free(void *memory)
{
    lk__free(memory);
}

/* --- the model: an unordered list of what is set -------------------------------------------------------- */

static struct lk__timer timers[TIMERS];
static bool set[TIMERS];

/* The earliest moment that is set, LK__NEVER when none is. */
static int64_t earliest(void)
{
    int64_t due_us = LK__NEVER;
    for (int i = 0; i < TIMERS; i++)
        if (set[i] && timers[i].due_us < due_us)
            due_us = timers[i].due_us;
    return due_us;
}

/* Each timer knows its place, and no parent comes after its child. */
static void expect_order(const struct lk__heap *heap)
{
    for (size_t i = 0; i < heap->count; i++) {
        assert_int_equal(heap->timers[i]->place, i + 1);
        assert_true(i == 0 || heap->timers[(i - 1) / 2]->due_us <= heap->timers[i]->due_us);
    }
}

static void expect_as_model(const struct lk__heap *heap)
{
    size_t count = 0;
    for (int i = 0; i < TIMERS; i++) {
        count += set[i];
        assert_int_equal(timers[i].place != 0, set[i]);
    }
    assert_int_equal(heap->count, count);
    if (count == 0)
        assert_null(lk__heap_first(heap));
    else
        assert_int_equal(lk__heap_first(heap)->due_us, earliest());
}

static void any_operations_keep_the_earliest_first(void)
{
    struct lk__heap heap = { 0 };
    srandom(1);
    assert_lk(0, lk__heap_reserve(&heap, TIMERS));
    for (int n = 0; n < OPERATIONS; n++) {
        int i = (int)(random() % TIMERS);
        /* Phases that fill and phases that empty it; few different moments, so that many are equal. */
        bool filling = n / 2000 % 2 == 0;
        if (random() % 10 < (filling ? 8 : 3)) {
            lk__heap_set(&heap, &timers[i], random() % 50);
            set[i] = true;
        } else if (random() % 4 == 0 && heap.count > 0) {
            i = (int)(lk__heap_first(&heap) - timers);
            lk__heap_remove(&heap, &timers[i]);
            set[i] = false;
        } else {
            lk__heap_remove(&heap, &timers[i]); /* harmless when absent */
            set[i] = false;
        }
        if (n % 50 == 0)
            expect_order(&heap);
        expect_as_model(&heap);
    }
    lk__heap_free(&heap);
}

static void timers_come_out_in_order(void)
{
    static const int64_t dues_us[] = { 5, 3, 9, 3, INT64_MAX, 0, INT64_MIN, 7, 1, 5 };
    enum { COUNT = sizeof dues_us / sizeof *dues_us };
    struct lk__timer some[COUNT] = { 0 };
    struct lk__heap heap = { 0 };
    int64_t last_us = INT64_MIN;
    assert_lk(0, lk__heap_reserve(&heap, COUNT));
    for (int i = 0; i < COUNT; i++)
        lk__heap_set(&heap, &some[i], dues_us[i]);
    for (int i = 0; i < COUNT; i++) {
        struct lk__timer *first = lk__heap_first(&heap);
        assert_true(first->due_us >= last_us);
        last_us = first->due_us;
        lk__heap_remove(&heap, first);
    }
    assert_null(lk__heap_first(&heap));
    lk__heap_free(&heap);
}

/* Renewals must not fail for want of memory: room is made while it is still somebody's answer to give. */
static void reserved_room_is_enough_to_set_that_many(void)
{
    struct lk__timer many[100] = { 0 };
    struct lk__heap heap = { 0 };
    for (size_t total = 1; total <= 100; total++) {
        assert_lk(0, lk__heap_reserve(&heap, total));
        assert_true(heap.capacity >= total);
        refuse = true;
        lk__heap_set(&heap, &many[total - 1], (int64_t)(1000 - total));
        refuse = false;
        assert_ptr_equal(lk__heap_first(&heap), &many[total - 1]);
    }
    lk__heap_free(&heap);
    assert_int_equal(heap.capacity, 0);
}

static void without_memory_the_heap_stays_as_it_was(void)
{
    struct lk__timer timer = { 0 };
    struct lk__heap heap = { 0 };
    assert_lk(0, lk__heap_reserve(&heap, 1));
    lk__heap_set(&heap, &timer, 5);
    struct lk__heap before = heap;
    refuse = true;
    int enough = lk__heap_reserve(&heap, heap.capacity), more = lk__heap_reserve(&heap, heap.capacity + 1);
    refuse = false;
    assert_int_equal(enough, 0); /* it is there already */
    assert_int_equal(more, ENOMEM);
    assert_memory_equal(&heap, &before, sizeof heap);
    assert_ptr_equal(lk__heap_first(&heap), &timer);
    lk__heap_free(&heap);
}

int main(void)
{
    return plain_run(any_operations_keep_the_earliest_first, timers_come_out_in_order,
                     reserved_room_is_enough_to_set_that_many, without_memory_the_heap_stays_as_it_was);
}
