/* SPDX-License-Identifier: MIT */
/*
 * heap_test.c - the earliest timer comes first after whatever was set, moved and removed
 *
 * labels: memory
 */
#include "assert_lk.h"
#include "base/base.h"

#include <stdlib.h>

enum { TIMERS = 200, OPERATIONS = 100000 };

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

/* How many timers are below that one; each knows who is before it, and comes no earlier than its parent. */
static size_t expect_order(const struct lk__timer *parent)
{
    size_t count = 0;
    const struct lk__timer *before = parent;
    for (const struct lk__timer *t = parent->child; t != NULL; before = t, t = t->next) {
        assert_ptr_equal(t->previous, before);
        assert_true(t->due_us >= parent->due_us);
        count += 1 + expect_order(t);
    }
    return count;
}

static size_t count_of(const struct lk__heap *heap)
{
    const struct lk__timer *first = lk__heap_first(heap);
    if (first == NULL)
        return 0;
    assert_ptr_equal(first->previous, first);
    assert_null(first->next);
    return 1 + expect_order(first);
}

static void expect_as_model(const struct lk__heap *heap)
{
    for (int i = 0; i < TIMERS; i++)
        assert_int_equal(lk__timer_isset(&timers[i]), set[i]);
    if (lk__heap_first(heap) == NULL)
        assert_int_equal(earliest(), LK__NEVER);
    else
        assert_int_equal(lk__heap_first(heap)->due_us, earliest());
}

static void expect_count(const struct lk__heap *heap)
{
    size_t count = 0;
    for (int i = 0; i < TIMERS; i++)
        count += set[i];
    assert_int_equal(count_of(heap), count);
}

static void any_operations_keep_the_earliest_first(void)
{
    struct lk__heap heap = { 0 };
    srandom(1);
    for (int n = 0; n < OPERATIONS; n++) {
        int i = (int)(random() % TIMERS);
        /* Phases that fill and phases that empty it; few different moments, so that many are equal. */
        bool filling = n / 2000 % 2 == 0;
        if (random() % 10 < (filling ? 8 : 3)) {
            lk__heap_set(&heap, &timers[i], random() % 50);
            set[i] = true;
        } else if (random() % 4 == 0 && lk__heap_first(&heap) != NULL) {
            i = (int)(lk__heap_first(&heap) - timers);
            lk__heap_remove(&heap, &timers[i]);
            set[i] = false;
        } else {
            lk__heap_remove(&heap, &timers[i]); /* harmless when absent */
            set[i] = false;
        }
        if (n % 50 == 0)
            expect_count(&heap);
        expect_as_model(&heap);
    }
}

static void timers_come_out_in_order(void)
{
    static const int64_t dues_us[] = { 5, 3, 9, 3, INT64_MAX, 0, INT64_MIN, 7, 1, 5 };
    enum { COUNT = sizeof dues_us / sizeof *dues_us };
    struct lk__timer some[COUNT] = { 0 };
    struct lk__heap heap = { 0 };
    int64_t last_us = INT64_MIN;
    for (int i = 0; i < COUNT; i++)
        lk__heap_set(&heap, &some[i], dues_us[i]);
    for (int i = 0; i < COUNT; i++) {
        struct lk__timer *first = lk__heap_first(&heap);
        assert_true(first->due_us >= last_us);
        last_us = first->due_us;
        lk__heap_remove(&heap, first);
    }
    assert_null(lk__heap_first(&heap));
}

int main(void)
{
    return plain_run(any_operations_keep_the_earliest_first, timers_come_out_in_order);
}
