/* SPDX-License-Identifier: MIT */
/*
 * buffer_test.c - processes hand items over through a bounded buffer: none is lost, none comes twice. And a crowd wakes
 *
 * LATCHKEY_ITEMS=100000 has the long form.
 *
 * labels: threads
 */
#include "world.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PROCESSES = 8, THREADS = 4, ROOM = 10, ITEMS_MAX = 100000 };

struct buffer {
    int items; /* how many there are to be */
    /* under the mutex */
    int slots[ROOM], count, put, taken;
    unsigned char seen[ITEMS_MAX];
};

static struct buffer *buffer;
static lk_mutex_t *mutex;
static lk_cond_t *not_full, *not_empty;

static int put_all(void)
{
    for (;;) {
        int rc = lk_mutex_lock(mutex);
        while (rc == 0 && buffer->count == ROOM && buffer->put < buffer->items)
            rc = lk_cond_wait(not_full, mutex);
        if (rc != 0)
            return rc;
        bool over = buffer->put == buffer->items;
        if (!over)
            buffer->slots[buffer->count++] = buffer->put++;
        rc = over ? lk_cond_broadcast(not_full) : lk_cond_signal(not_empty);
        int unlocked = lk_mutex_unlock(mutex);
        if (rc != 0 || unlocked != 0 || over)
            return rc != 0 ? rc : unlocked;
    }
}

static int take_all(void)
{
    for (;;) {
        int rc = lk_mutex_lock(mutex);
        while (rc == 0 && buffer->count == 0 && buffer->taken < buffer->items)
            rc = lk_cond_wait(not_empty, mutex);
        if (rc != 0)
            return rc;
        bool over = buffer->taken == buffer->items;
        if (!over) {
            buffer->seen[buffer->slots[--buffer->count]]++;
            buffer->taken++;
        }
        rc = over ? lk_cond_broadcast(not_empty) : lk_cond_signal(not_full);
        int unlocked = lk_mutex_unlock(mutex);
        if (rc != 0 || unlocked != 0 || over)
            return rc != 0 ? rc : unlocked;
    }
}

static int work(void *arg)
{
    return *(int *)arg % 2 == 0 ? put_all() : take_all();
}

static int work_in_child(struct world *w, void *arg)
{
    struct worker workers[THREADS];
    int numbers[THREADS], rc = 0;
    lk_client_t *client = world_client(w, "lease=20s&command_timeout=4s");
    (void)arg;
    mutex = world_mutex(w, client, "{buffer}", NULL);
    not_full = world_cond(w, client, "{buffer}not full", NULL);
    not_empty = world_cond(w, client, "{buffer}not empty", NULL);
    world_ready(w);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        worker_start(&workers[i], work, &numbers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        int one = worker_join(&workers[i]);
        rc = rc != 0 ? rc : one;
    }
    return rc;
}

static void nothing_is_lost_or_doubled(struct world *w)
{
    const char *items = getenv("LATCHKEY_ITEMS");
    pid_t children[PROCESSES];
    buffer = world_shared(w, sizeof *buffer);
    buffer->items = items != NULL ? atoi(items) : 3000;
    int64_t began_ms = now_ms();
    for (int i = 0; i < PROCESSES; i++)
        children[i] = world_fork(w, work_in_child, NULL);
    while (buffer->taken < buffer->items) /* the long form takes longer than world_wait() does */
        sleep_ms(50);
    for (int i = 0; i < PROCESSES; i++)
        assert_int_equal(0, world_wait(w, children[i]));
    int64_t ms = now_ms() - began_ms;
    print_message("%d items in %lld ms, %.1f commands for each\n", buffer->items, (long long)ms,
                  (double)world_commands(w, "evalsha") / buffer->items);
    for (int i = 0; i < buffer->items; i++)
        assert_int_equal(1, buffer->seen[i]);
    assert_int_equal(buffer->items, buffer->taken);
}

enum { CROWD = 1000 };

static int wait_and_go(void *arg)
{
    (void)arg;
    int rc = lk_mutex_lock(mutex);
    while (rc == 0 && buffer->put == 0)
        rc = lk_cond_wait(not_empty, mutex);
    if (rc != 0)
        return rc;
    buffer->taken++;
    return lk_mutex_unlock(mutex);
}

/* All of a thousand wake, one after the other; no script holds the server for long. */
static void a_thousand_wake(struct world *w)
{
    static struct worker crowd[CROWD];
    lk_client_t *client = world_client(w, "lease=60s&command_timeout=10s");
    buffer = calloc(1, sizeof *buffer);
    mutex = world_mutex(w, client, "{buffer}", NULL);
    not_empty = world_cond(w, client, "{buffer}not empty", NULL);
    for (int i = 0; i < CROWD; i++)
        worker_start(&crowd[i], wait_and_go, NULL);
    eventually(world_int(w, "ZCARD %s", "latchkey:queue:cond::{buffer}not empty") == CROWD, 60000);
    world_redis(w, "CONFIG SET slowlog-log-slower-than 2000");
    world_redis(w, "SLOWLOG RESET");
    assert_lk(0, lk_mutex_lock(mutex));
    buffer->put = 1;
    int64_t began_ms = now_ms();
    assert_lk(0, lk_cond_broadcast(not_empty));
    int64_t told_ms = now_ms() - began_ms;
    print_message("broadcast %lld ms; scripts of more than 2 ms: %lld\n", (long long)told_ms,
                  (long long)world_int(w, "SLOWLOG LEN"));
    assert_lk(0, lk_mutex_unlock(mutex));
    for (int i = 0; i < CROWD; i++)
        assert_lk(0, worker_join(&crowd[i]));
    print_message("all in %lld ms\n", (long long)(now_ms() - began_ms));
    assert_int_equal(CROWD, buffer->taken);
    free(buffer);
}

int main(void)
{
    return world_run(nothing_is_lost_or_doubled, a_thousand_wake);
}
