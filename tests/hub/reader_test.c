/* SPDX-License-Identifier: MIT */
/*
 * reader_test.c - a thread that waits reads the messages of its client itself; the others hear theirs whatever becomes
 * of it
 *
 * Clients ask seldom here: what is told late was told by no message.
 *
 * labels: threads memory
 * simulated: except tsan
 * seconds: 10
 */
#include "still.h"
#include "world.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 300, HEARD_MS = 1500, IDLE_MS = 4000 };

/* --- nobody is woken between ------------------------------------------------------------------------------------ */

/* How often a thread of this process slept, if it is of that name. */
static long sleeps_of(const char *task, const char *name)
{
    char path[300], line[128] = "";
    long sleeps = 0;
    snprintf(path, sizeof path, "/proc/self/task/%.20s/status", task);
    FILE *status = fopen(path, "r");
    bool named = status != NULL && fgets(line, sizeof line, status) != NULL && strstr(line, name) != NULL;
    while (named && fgets(line, sizeof line, status) != NULL)
        sscanf(line, "voluntary_ctxt_switches: %ld", &sleeps);
    if (status != NULL)
        fclose(status);
    return sleeps;
}

static long sleeps_of_hubs(void)
{
    DIR *tasks = opendir("/proc/self/task");
    long sleeps = 0;
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;)
        sleeps += sleeps_of(entry->d_name, "lk-hub");
    closedir(tasks);
    return sleeps;
}

/* Two clients hand a mutex to and fro, by hundreds of messages; their hubs sleep. */
static void messages_wake_no_other_thread(struct world *w)
{
    lk_mutex_t *orders[2];
    for (int i = 0; i < 2; i++) {
        orders[i] = world_mutex(w, world_client(w, "poll=5s"), "orders", NULL);
        assert_lk(0, lk_mutex_lock(orders[i]));
        assert_lk(0, lk_mutex_unlock(orders[i]));
    }
    int64_t began_ms = now_ms();
    hand_to_and_fro(orders, ROUNDS);
    long sleeps = sleeps_of_hubs();
    print_message("%ld sleeps in %d ms\n", sleeps, (int)(now_ms() - began_ms));
    assert_true(sleeps < ROUNDS / 4 + (now_ms() - began_ms) / 20); /* and a look now and then */
}

/* --- two threads wait, one of them reads --------------------------------------------------------------------------- */

struct pair {
    lk_client_t *here;
    lk_mutex_t *mine[2], *theirs[2];
    struct worker workers[2];
    int64_t had_ms[2];
};

static struct pair pair;

static int take(void *arg)
{
    int i = (int)((lk_mutex_t **)arg - pair.mine);
    int rc = lk_mutex_lock(pair.mine[i]);
    __atomic_store_n(&pair.had_ms[i], now_ms(), __ATOMIC_SEQ_CST);
    return rc == 0 ? lk_mutex_unlock(pair.mine[i]) : rc;
}

static const char *const names[2] = { "first", "second" };

/* The other client holds it; one of our threads is queued, and parked. */
static void waits(struct world *w, int i)
{
    assert_lk(0, lk_mutex_lock(pair.theirs[i]));
    worker_start(&pair.workers[i], take, &pair.mine[i]);
    eventually(world_queued(w, names[i]) == 1, 3000);
    eventually(world_elements(w, "PUBSUB CHANNELS latchkey:client:*") == 1, 3000);
    sleep_ms(200);
}

/* The first one reads. */
static void two_wait(struct world *w)
{
    lk_client_t *here = world_client(w, "poll=5s&command_timeout=800ms"), *there = world_client(w, "poll=5s");
    pair = (struct pair){ .here = here };
    for (int i = 0; i < 2; i++) {
        pair.mine[i] = world_mutex(w, here, names[i], NULL);
        pair.theirs[i] = world_mutex(w, there, names[i], NULL);
    }
    for (int i = 0; i < 2; i++)
        waits(w, i);
}

static void is_told_at_once(int i)
{
    int64_t began_ms = now_ms();
    assert_lk(0, lk_mutex_unlock(pair.theirs[i]));
    assert_int_equal(0, worker_join(&pair.workers[i]));
    assert_between(pair.had_ms[i] - began_ms, 0, HEARD_MS + SLACK_MS);
}

/* Whoever read has what it waited for, and is gone. */
static void one_that_leaves(struct world *w)
{
    two_wait(w);
    is_told_at_once(0);
    is_told_at_once(1);
}

/* The other one reads, or hears. */
static void one_that_stays(struct world *w)
{
    two_wait(w);
    is_told_at_once(1);
    is_told_at_once(0);
}

/* A client whose threads only wait costs little: its hub sleeps but for a look now and then. */
static void hubs_sleep_while_nothing_happens(struct world *w)
{
    two_wait(w);
    for (int waiting = 2; waiting > 0; waiting--) {
        sleep_ms(1500); /* it is back from the last reader that left */
        long before = sleeps_of_hubs();
        sleep_ms(IDLE_MS);
        long sleeps = sleeps_of_hubs() - before;
        print_message("%ld sleeps of the hubs in %d ms, %d wait\n", sleeps, IDLE_MS, waiting);
        assert_true(sleeps < (waiting == 1 ? 12 : 20));
        is_told_at_once(waiting - 1);
    }
}

static void one_that_stands_still(struct world *w)
{
    for (int i = 0; i < 2; i++) {
        two_wait(w);
        still_begin(&pair.workers[i]);
        is_told_at_once(1 - i);
        still_end();
        is_told_at_once(i);
        world_close(w, NULL);
    }
}

static void *wait_in_vain(void *arg)
{
    return lk_sem_wait(arg) == 0 ? arg : NULL;
}

static void one_that_is_cancelled(struct world *w)
{
    pthread_t thread;
    void *found;
    two_wait(w);
    is_told_at_once(0);
    is_told_at_once(1);
    lk_sem_t *spent = world_sem(w, pair.here, "spent", 1, NULL);
    world_allow(w, "*spent*");
    assert_lk(0, lk_sem_wait(spent));
    sleep_ms(300); /* who waits alone reads by itself again */
    assert_int_equal(0, pthread_create(&thread, NULL, wait_in_vain, spent));
    sleep_ms(300);
    waits(w, 1);
    pthread_cancel(thread);
    pthread_join(thread, &found);
    assert_ptr_equal(PTHREAD_CANCELED, found);
    is_told_at_once(1);
    assert_lk(0, lk_sem_post(spent));
}

/* The connection ends under the one that reads; both hear what is told on the next one. */
static void one_that_is_cut(struct world *w)
{
    two_wait(w);
    world_redis(w, "CLIENT KILL TYPE pubsub");
    eventually(world_elements(w, "PUBSUB CHANNELS latchkey:client:*") == 1, 3000);
    sleep_ms(200);
    is_told_at_once(1);
    is_told_at_once(0);
}

int main(void)
{
    return world_run(messages_wake_no_other_thread, one_that_leaves, one_that_stays,
                     hubs_sleep_while_nothing_happens, one_that_stands_still, one_that_is_cancelled, one_that_is_cut);
}
