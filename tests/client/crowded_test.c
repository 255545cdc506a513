/* SPDX-License-Identifier: MIT */
/*
 * crowded_test.c - a server that does not read: who finds no room for a request waits within its limit, for as long
 * as it takes or for nothing
 *
 * labels: threads memory
 * simulated: yes
 */
#include "client/client.h"
#include "world.h"

#include <dlfcn.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 24, CROWD = 400, CAPACITY = 8, STOPPED_MS = 300, LIMIT_MS = 100 };

static lk_client_t *client;
static lk_mutex_t *mutexes[CROWD];
static atomic_int wakes;
static int (*post_of_c)(sem_t *);

__attribute__((constructor)) static void find_post(void)
{
    void *found = dlsym(RTLD_NEXT, "sem_post");
    memcpy(&post_of_c, &found, sizeof post_of_c);
}

/* In front of the C library's: so often a thread was woken. */
int sem_post(sem_t *sem)
{
    atomic_fetch_add(&wakes, 1);
    return post_of_c(sem);
}

/* With few places, one of them for an ECHO and two for renewals. */
static void open_some(struct world *w, int count)
{
    client = world_client(w, "lease=15s&command_timeout=4s");
    for (int i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "m%d", i);
        mutexes[i] = world_mutex(w, client, name, NULL);
    }
    assert_int_equal(client->node.lanes[LK__LANE_COMMANDS].oldest, client->node.lanes[LK__LANE_COMMANDS].end);
    client->node.lanes[LK__LANE_COMMANDS].capacity = CAPACITY;
}

static void open_all(struct world *w)
{
    open_some(w, THREADS);
}

static bool is_crowded(void)
{
    lk__mu_lock(&client->node.lanes[LK__LANE_COMMANDS].mu);
    bool full = client->node.lanes[LK__LANE_COMMANDS].full;
    lk__mu_unlock(&client->node.lanes[LK__LANE_COMMANDS].mu);
    return full;
}

static void all_get_their_turn(struct world *w)
{
    struct worker workers[THREADS];
    open_all(w);
    world_stop_server(w);
    for (int i = 0; i < THREADS; i++)
        worker_start(&workers[i], lock_and_unlock, mutexes[i]);
    eventually(is_crowded(), 5000);
    sleep_ms(STOPPED_MS);
    world_cont_server(w);
    for (int i = 0; i < THREADS; i++)
        assert_lk(0, worker_join(&workers[i]));
}

static int count_waiting(void)
{
    struct lk__conn *conn = &client->node.lanes[LK__LANE_COMMANDS];
    int count = 0;
    lk__mu_lock(&conn->mu);
    for (struct lk__link *l = lk__list_first(&conn->expecting); l != NULL; l = lk__list_next(&conn->expecting, l))
        count++;
    lk__mu_unlock(&conn->mu);
    return count;
}

/* A thread is woken for its own turn and its own answers, not each time that others have theirs. */
static void nobody_is_woken_for_nothing(struct world *w)
{
    static struct worker workers[CROWD];
    open_some(w, CROWD);
    world_stop_server(w);
    for (int i = 0; i < CROWD; i++)
        worker_start(&workers[i], lock_and_unlock, mutexes[i]);
    eventually(count_waiting() > CROWD - CAPACITY, 3000);
    atomic_store(&wakes, 0);
    world_cont_server(w);
    for (int i = 0; i < CROWD; i++)
        assert_lk(0, worker_join(&workers[i]));
    assert_in_range(atomic_load(&wakes), 1, 10 * CROWD); /* two calls, each may be sent twice */
}

static int try_in_vain(void *arg)
{
    return lk_mutex_lockfor(arg, LIMIT_MS);
}

/* Those that were sent are unknown, the others are known to have done nothing. */
static void who_finds_no_room_in_time_did_nothing(struct world *w)
{
    struct worker workers[THREADS];
    int unknown = 0, undone = 0;
    open_all(w);
    world_stop_server(w);
    for (int i = 0; i < THREADS; i++)
        worker_start(&workers[i], try_in_vain, mutexes[i]);
    for (int i = 0; i < THREADS; i++) {
        int rc = worker_join(&workers[i]);
        unknown += rc == EIO;
        undone += rc == ENOTCONN;
    }
    world_cont_server(w);
    assert_int_equal(THREADS, unknown + undone);
    assert_in_range(unknown, 1, CAPACITY);
}

static unsigned long long in_flight(void)
{
    struct lk__conn *conn = &client->node.lanes[LK__LANE_COMMANDS];
    lk__mu_lock(&conn->mu);
    unsigned long long count = conn->end - conn->oldest;
    lk__mu_unlock(&conn->mu);
    return count;
}

static struct gate locked, extend;

static int lock_extend_and_unlock(void *held)
{
    int rc = lk_mutex_lock(held);
    gate_open(&locked);
    while (!gate_is_open(&extend))
        sleep_ms(1);
    rc = rc == 0 ? lk_mutex_extend(held, 14000) : rc;
    return rc == 0 ? lk_mutex_unlock(held) : rc;
}

/* Is one more in flight soon, long before the first of them has waited for a command timeout? */
static bool one_more(unsigned long long before)
{
    for (int i = 0; i < 200 && in_flight() == before; i++)
        sleep_ms(10);
    return in_flight() == before + 1;
}

/* A renewal that has no connection of its own goes between the commands of callers, who wait for room. */
static void a_renewal_has_room(struct world *w)
{
    struct worker workers[THREADS], holder;
    open_all(w);
    worker_start(&holder, lock_extend_and_unlock, world_mutex(w, client, "held", NULL));
    eventually(gate_is_open(&locked), 5000);
    lk__node_close(&client->node, LK__LANE_RENEWALS);
    world_stop_server(w);
    for (int i = 0; i < THREADS; i++)
        worker_start(&workers[i], lock_and_unlock, mutexes[i]);
    eventually(is_crowded(), 5000);
    unsigned long long before = in_flight();
    gate_open(&extend);
    bool sent = one_more(before);
    world_cont_server(w);
    assert_lk(0, worker_join(&holder));
    for (int i = 0; i < THREADS; i++)
        assert_lk(0, worker_join(&workers[i]));
    assert_int_equal(CAPACITY - 1 - CAPACITY / 4, before);
    assert_true(sent);
}

int main(void)
{
    return world_run(all_get_their_turn, nobody_is_woken_for_nothing,
                     who_finds_no_room_in_time_did_nothing, a_renewal_has_room);
}
