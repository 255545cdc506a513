/* SPDX-License-Identifier: MIT */
/* heap.c - a binary heap of timers; room is reserved beforehand, so that setting one cannot fail */
#include "base/base.h"

int lk__heap_reserve(struct lk__heap *heap, size_t total)
{
    if (total <= heap->capacity)
        return 0;
    size_t capacity = heap->capacity == 0 ? 16 : heap->capacity;
    while (capacity < total)
        capacity *= 2;
    struct lk__timer **timers = lk__realloc(heap->timers, capacity * sizeof *timers);
    if (timers == NULL)
        return ENOMEM;
    heap->timers = timers;
    heap->capacity = capacity;
    return 0;
}

static void put(struct lk__heap *heap, size_t index, struct lk__timer *timer)
{
    heap->timers[index] = timer;
    timer->place = index + 1;
}

static void rise(struct lk__heap *heap, size_t index)
{
    struct lk__timer *timer = heap->timers[index];
    while (index > 0 && heap->timers[(index - 1) / 2]->due_us > timer->due_us) {
        put(heap, index, heap->timers[(index - 1) / 2]);
        index = (index - 1) / 2;
    }
    put(heap, index, timer);
}

static void sink(struct lk__heap *heap, size_t index)
{
    struct lk__timer *timer = heap->timers[index];
    for (;;) {
        size_t child = 2 * index + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count && heap->timers[child + 1]->due_us < heap->timers[child]->due_us)
            child++;
        if (heap->timers[child]->due_us >= timer->due_us)
            break;
        put(heap, index, heap->timers[child]);
        index = child;
    }
    put(heap, index, timer);
}

void lk__heap_set(struct lk__heap *heap, struct lk__timer *timer, int64_t due_us)
{
    timer->due_us = due_us;
    if (timer->place == 0) {
        assert(heap->count < heap->capacity);
        put(heap, heap->count++, timer);
    }
    rise(heap, timer->place - 1);
    sink(heap, timer->place - 1);
}

void lk__heap_remove(struct lk__heap *heap, struct lk__timer *timer)
{
    if (timer->place == 0)
        return;
    size_t index = timer->place - 1;
    struct lk__timer *last = heap->timers[--heap->count];
    timer->place = 0;
    if (last == timer)
        return;
    put(heap, index, last);
    rise(heap, index);
    sink(heap, last->place - 1);
}

struct lk__timer *lk__heap_first(const struct lk__heap *heap)
{
    return heap->count == 0 ? NULL : heap->timers[0];
}

void lk__heap_free(struct lk__heap *heap)
{
    lk__free(heap->timers);
    *heap = (struct lk__heap){ 0 };
}
