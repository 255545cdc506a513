/* SPDX-License-Identifier: MIT */
/*
 * standing_still_test.c - a client is closed while a thread stands still in one of its calls
 *
 * Nothing that the thread may still use is freed, and the close does not wait for it for ever.
 *
 * labels: threads memory
 * seconds: 6
 */
#include "world.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>

enum { LEAVE_MS = 5000, COMMAND_MS = THREAD_SANITIZED ? 2000 : 500 };

static atomic_bool standing, let_go;

static void stand_still(int number)
{
    int before = errno;
    (void)number;
    atomic_store(&standing, true);
    while (!atomic_load(&let_go))
        sleep_ms(5);
    errno = before;
}

static int wait_for_it(void *mutex)
{
    return lk_mutex_lock(mutex);
}

/* It is told so, what the client held is released all the same, and closing it again ends it. */
static void a_thread_that_stands_still_is_told(struct world *w)
{
    struct sigaction action = { .sa_handler = stand_still };
    struct worker waiter;
    const char *options = THREAD_SANITIZED ? "command_timeout=2s" : "command_timeout=500ms";
    lk_client_t *client = world_open(w, options), *other = world_client(w, options);
    lk_mutex_t orders, bills, *theirs = world_mutex(w, other, "bills", NULL);
    sigaction(SIGUSR1, &action, NULL);
    assert_lk(0, lk_mutex_init(&orders, client, "orders", NULL));
    assert_lk(0, lk_mutex_init(&bills, client, "bills", NULL));
    assert_lk(0, lk_mutex_lock(&orders));
    assert_lk(0, lk_mutex_lock(theirs));
    worker_start(&waiter, wait_for_it, &bills);
    eventually(world_queued(w, "bills") == 1, 5000);
    pthread_kill(waiter.thread, SIGUSR1);
    eventually(atomic_load(&standing), 5000);

    int64_t began_ms = now_ms();
    assert_lk(EBUSY, lk_client_close(client));
    assert_non_null(strstr(lk_errortext(), "stands still"));
    assert_between(now_ms() - began_ms, LEAVE_MS, LEAVE_MS + COMMAND_MS + SLACK_MS);
    assert_false(world_exists(w, "orders"));
    assert_lk(ECANCELED, lk_mutex_trylock(&orders));

    atomic_store(&let_go, true);
    assert_int_equal(ECANCELED, worker_join(&waiter));
    assert_lk(0, lk_client_close(client));
    assert_lk(0, lk_mutex_destroy(&orders));
    assert_lk(0, lk_mutex_destroy(&bills));
    assert_lk(0, lk_mutex_unlock(theirs));
}

int main(void)
{
    return world_run(a_thread_that_stands_still_is_told);
}
