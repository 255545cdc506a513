/* SPDX-License-Identifier: MIT */
/* heap.c - a pairing heap: timers are its nodes, so that setting one needs no memory and cannot fail */
#include "base/base.h"

/* Make the later one of two trees the first child of the other; either may be NULL. */
static struct lk__timer *meld(struct lk__timer *a, struct lk__timer *b)
{
    if (a == NULL || b == NULL)
        return a != NULL ? a : b;
    if (b->due_us < a->due_us) {
        struct lk__timer *later = a;
        a = b;
        b = later;
    }
    b->next = a->child;
    if (b->next != NULL)
        b->next->previous = b;
    b->previous = a;
    a->child = b;
    a->next = NULL;
    return a;
}

/* Make one tree of siblings: of pairs, and then of these from the last one on. */
static struct lk__timer *meld_all(struct lk__timer *timer)
{
    struct lk__timer *pairs = NULL, *all = NULL, *next;
    for (; timer != NULL; timer = next) {
        struct lk__timer *second = timer->next;
        next = second != NULL ? second->next : NULL;
        timer = meld(timer, second);
        timer->next = pairs;
        pairs = timer;
    }
    for (; pairs != NULL; pairs = next) {
        next = pairs->next;
        all = meld(all, pairs);
    }
    return all;
}

static void set_first(struct lk__heap *heap, struct lk__timer *timer)
{
    heap->first = timer;
    if (timer == NULL)
        return;
    timer->next = NULL;
    timer->previous = timer;
}

void lk__heap_set(struct lk__heap *heap, struct lk__timer *timer, int64_t due_us)
{
    if (lk__timer_isset(timer) && timer->due_us == due_us)
        return;
    lk__heap_remove(heap, timer);
    timer->due_us = due_us;
    set_first(heap, meld(heap->first, timer));
}

void lk__heap_remove(struct lk__heap *heap, struct lk__timer *timer)
{
    if (!lk__timer_isset(timer))
        return;
    struct lk__timer *below = meld_all(timer->child), *before = timer->previous;
    if (heap->first == timer) {
        set_first(heap, below);
    } else {
        *(before->child == timer ? &before->child : &before->next) = timer->next;
        if (timer->next != NULL)
            timer->next->previous = before;
        set_first(heap, meld(heap->first, below));
    }
    timer->child = timer->next = timer->previous = NULL;
}

struct lk__timer *lk__heap_first(const struct lk__heap *heap)
{
    return heap->first;
}
