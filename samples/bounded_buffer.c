/* SPDX-License-Identifier: MIT */
/*
 * bounded_buffer.c - producers and consumers in processes of their own, and a buffer with room for ten
 *
 * A mutex guards the buffer; who finds it full or empty waits for a condition until somebody changed that. With --unsafe
 * nobody locks or waits: who finds it full throws the item away, who finds it empty takes what was there before.
 */
#include "common.h"

#include <latchkey/latchkey.h>

#include <stdio.h>

enum { ROOM = 10 };

struct buffer {
    int items[ROOM];
    int count, put, taken;
    unsigned char seen[]; /* how often each item came out */
};

static struct buffer *buffer;

/* One {tag} for all three, so that they lie together in a cluster. */
static lk_mutex_t mutex = LK_MUTEX_INITIALIZER("{samples:buffer}");
static lk_cond_t not_full = LK_COND_INITIALIZER("{samples:buffer}not full");
static lk_cond_t not_empty = LK_COND_INITIALIZER("{samples:buffer}not empty");

static int produce(bool unsafe)
{
    int rc = unsafe ? 0 : lk_mutex_lock(&mutex);
    while (rc == 0 && !unsafe && buffer->count >= ROOM)
        rc = lk_cond_wait(&not_full, &mutex);
    if (rc != 0)
        return rc;
    int item = buffer->put;
    int at = buffer->count;
    if (unsafe)
        work_a_little();
    if (at >= 0 && at < ROOM)
        buffer->items[at] = item;
    buffer->count = at + 1;
    buffer->put = item + 1;
    if (unsafe)
        return 0;
    rc = lk_cond_signal(&not_empty);
    int unlocked = lk_mutex_unlock(&mutex);
    return rc != 0 ? rc : unlocked;
}

static int consume(bool unsafe)
{
    int rc = unsafe ? 0 : lk_mutex_lock(&mutex);
    while (rc == 0 && !unsafe && buffer->count == 0)
        rc = lk_cond_wait(&not_empty, &mutex);
    if (rc != 0)
        return rc;
    int at = buffer->count - 1;
    if (unsafe)
        work_a_little();
    if (at >= 0 && at < ROOM)
        buffer->seen[buffer->items[at]]++;
    buffer->count = at;
    buffer->taken++;
    if (unsafe)
        return 0;
    rc = lk_cond_signal(&not_full);
    int unlocked = lk_mutex_unlock(&mutex);
    return rc != 0 ? rc : unlocked;
}

/* Workers with even numbers produce, the others consume. */
static int take_part(const struct options *options)
{
    for (int i = 0; i < options->rounds; i++) {
        int rc = options->worker % 2 == 0 ? produce(options->unsafe) : consume(options->unsafe);
        if (rc != 0) {
            fprintf(stderr, "bounded_buffer: %s\n", lk_errortext());
            return 1;
        }
        round_done();
    }
    return 0;
}

int main(int argc, char *argv[])
{
    struct options options = { .workers = 8, .rounds = 200, .unsafe_means = "neither lock nor wait" };
    options_read(&options, argc, argv, "Processes hand items over through a buffer with room for ten. Rounds: items.");
    options.workers += options.workers % 2; /* as many consume as produce */
    int items = options.workers / 2 * options.rounds;
    buffer = shared_memory(sizeof *buffer + (size_t)items + ROOM);

    printf("%d producers, %d consumers, %d items each, %s\n", options.workers / 2, options.workers / 2, options.rounds,
           options.unsafe ? "without a lock" : "one mutex, two conditions");
    long long began_us = now_us();
    int failed = workers_run(&options, (long)options.workers * options.rounds, take_part);
    double seconds = (double)(now_us() - began_us) / 1000000;

    int wrong = 0;
    for (int i = 0; i < items; i++)
        wrong += buffer->seen[i] != 1;
    return verdict("each item that goes in comes out once", failed == 0 && wrong == 0,
                   "%d items, %d lost or doubled, %.0f a second", items, wrong, items / seconds);
}
