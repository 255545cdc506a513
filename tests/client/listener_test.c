/* SPDX-License-Identifier: MIT */
/*
 * listener_test.c - a listener that ends its thread; one that is put in the place of another
 *
 * labels: threads memory
 */
#include "world.h"

#include <stdio.h>

enum { LOSSES = 3 };

static lk_client_t *client;
static lk_mutex_t *objects[LOSSES];
static int heard, inside; /* atomic builtins */
static struct gate gate;
static pthread_mutex_t of_program = PTHREAD_MUTEX_INITIALIZER;

static void open_client(struct world *w)
{
    heard = inside = 0;
    gate = (struct gate){ 0 };
    client = world_client(w, "");
}

/* Held by a thread that cannot unlock in time: each of them is an event. */
static void lose(struct world *w)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    attr.fixed = 1;
    attr.lease_ms = 200;
    for (int i = 0; i < LOSSES; i++) {
        char name[16];
        snprintf(name, sizeof name, "object-%d", i);
        objects[i] = world_mutex(w, client, name, &attr);
        assert_lk(0, lk_mutex_lock(objects[i]));
    }
}

static void expect_losses(void)
{
    for (int i = 0; i < LOSSES; i++)
        assert_lk(ESTALE, lk_mutex_unlock(objects[i]));
}

static void end_thread(const lk_event_t *event, void *arg)
{
    (void)event;
    (void)arg;
    __atomic_add_fetch(&heard, 1, __ATOMIC_SEQ_CST);
    pthread_exit(NULL);
}

/* Another thread tells the rest, and nobody waits for the one that is over. */
static void a_listener_may_end_its_thread(struct world *w)
{
    open_client(w);
    assert_lk(0, lk_client_listen(client, end_thread, NULL));
    lose(w);
    eventually(__atomic_load_n(&heard, __ATOMIC_SEQ_CST) == LOSSES, 5000);
    assert_lk(0, lk_client_listen(client, NULL, NULL));
    expect_losses();
}

static void enter_and_wait(const lk_event_t *event, void *arg)
{
    (void)event;
    (void)arg;
    __atomic_store_n(&inside, 1, __ATOMIC_SEQ_CST);
    gate_pass(&gate);
}

static void take_lock(const lk_event_t *event, void *arg)
{
    (void)event;
    (void)arg;
    pthread_mutex_lock(&of_program);
    __atomic_add_fetch(&heard, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&of_program);
}

static int open_gate(void *arg)
{
    (void)arg;
    sleep_ms(200);
    gate_open(&gate);
    return 0;
}

/* It is called for what the old one had no time for, while the program still holds what it wants. */
static void a_new_listener_is_not_waited_for(struct world *w)
{
    struct worker opener;
    open_client(w);
    assert_lk(0, lk_client_listen(client, enter_and_wait, NULL));
    lose(w);
    eventually(__atomic_load_n(&inside, __ATOMIC_SEQ_CST) == 1, 5000);
    sleep_ms(300); /* the other losses wait behind it */
    pthread_mutex_lock(&of_program);
    worker_start(&opener, open_gate, NULL);
    assert_lk(0, lk_client_listen(client, take_lock, NULL));
    pthread_mutex_unlock(&of_program);
    assert_int_equal(0, worker_join(&opener));
    eventually(__atomic_load_n(&heard, __ATOMIC_SEQ_CST) == LOSSES - 1, 5000);
    expect_losses();
}

int main(void)
{
    return world_run(a_listener_may_end_its_thread, a_new_listener_is_not_waited_for);
}
