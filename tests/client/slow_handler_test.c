/* SPDX-License-Identifier: MIT */
/*
 * slow_handler_test.c - a thread that stands still, in a signal handler or a debugger, holds up nobody else
 *
 * One of the threads that wait reads the answers for all. It may be this one.
 *
 * labels: threads memory
 * seconds: 8
 * processors: 10
 */
#include "world.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { OTHERS = 4, STILL_MS = 20000 };

static lk_client_t *client;
static int standing, let_go; /* atomic builtins */
static __thread bool stops_in_recv;
static int watchdog_stops;            /* atomic builtins */
static int readers[64], most_readers; /* of each descriptor, at once: atomic builtins */

static void stand_still(void)
{
    __atomic_store_n(&standing, 1, __ATOMIC_SEQ_CST);
    for (int ms = 0; ms < STILL_MS && __atomic_load_n(&let_go, __ATOMIC_SEQ_CST) == 0; ms += 5)
        syscall(SYS_nanosleep, &(struct timespec){ 0, 5000000 }, NULL);
}

static void slow_handler(int number)
{
    (void)number;
    int before = errno;
    stand_still();
    errno = before;
}

static void brief_handler(int number)
{
    (void)number;
    int before = errno;
    syscall(SYS_nanosleep, &(struct timespec){ 0, 100000000 }, NULL);
    errno = before;
}

static bool is_watchdog(void)
{
    char name[16] = "";
    pthread_getname_np(pthread_self(), name, sizeof name);
    return strcmp(name, "lk-watchdog") == 0;
}

/* In front of the C library's: a handler that happens to run while answers are taken in. */
ssize_t recv(int fd, void *bytes, size_t size, int flags)
{
    bool stops = stops_in_recv;
    int at_once = fd < 64 ? __atomic_add_fetch(&readers[fd], 1, __ATOMIC_SEQ_CST) : 1;
    if (at_once > 1)
        __atomic_store_n(&most_readers, at_once, __ATOMIC_SEQ_CST);
    stops_in_recv = false;
    if (stops || (is_watchdog() && __atomic_exchange_n(&watchdog_stops, 0, __ATOMIC_SEQ_CST) == 1))
        stand_still();
    else if (__atomic_load_n(&let_go, __ATOMIC_SEQ_CST) == 1)
        syscall(SYS_nanosleep, &(struct timespec){ 0, 20000000 }, NULL); /* so that two of them meet */
    ssize_t got = syscall(SYS_recvfrom, fd, bytes, size, flags, NULL, NULL);
    if (fd < 64)
        __atomic_sub_fetch(&readers[fd], 1, __ATOMIC_SEQ_CST);
    return got;
}

static int lock_own(const char *name)
{
    lk_mutex_t own;
    int rc = lk_mutex_init(&own, client, name, NULL);
    if (rc != 0)
        return rc;
    rc = lk_mutex_lockfor(&own, 1000);
    if (rc == 0)
        rc = lk_mutex_unlock(&own);
    lk_mutex_destroy(&own);
    return rc;
}

static int victim(void *arg)
{
    stops_in_recv = arg != NULL;
    return lock_own("victim");
}

static int other(int index, void *arg)
{
    char name[16];
    (void)arg;
    snprintf(name, sizeof name, "other-%d", index);
    return lock_own(name);
}

static void open_client(struct world *w, void (*handler)(int))
{
    struct sigaction action = { .sa_handler = handler };
    sigaction(SIGUSR1, &action, NULL);
    client = world_client(w, THREAD_SANITIZED ? "lease=20s&command_timeout=4s" : "lease=20s&command_timeout=1s");
    standing = let_go = 0;
    assert_int_equal(0, lock_own("victim")); /* all scripts are known */
}

static void the_others_go_on(struct worker *reader)
{
    eventually(__atomic_load_n(&standing, __ATOMIC_SEQ_CST) == 1, 5000);
    for (int i = 0; i < 2; i++)
        assert_int_equal(0, run_threads(OTHERS, other, NULL));
    assert_int_equal(1, __atomic_load_n(&standing, __ATOMIC_SEQ_CST));
    __atomic_store_n(&let_go, 1, __ATOMIC_SEQ_CST);
    assert_int_equal(0, worker_join(reader));
    assert_int_equal(0, lock_own("victim"));
}

/* It waits for an answer, and its handler runs until all others had theirs. */
static void while_it_waits_for_the_server(struct world *w)
{
    struct worker reader;
    open_client(w, slow_handler);
    world_stop_server(w);
    worker_start(&reader, victim, NULL);
    sleep_ms(100);
    pthread_kill(reader.thread, SIGUSR1);
    eventually(__atomic_load_n(&standing, __ATOMIC_SEQ_CST) == 1, 5000);
    world_cont_server(w);
    the_others_go_on(&reader);
}

/* It is in the middle of the answers, which nobody else can then read to their end. */
static void while_it_takes_answers_in(struct world *w)
{
    struct worker reader;
    open_client(w, slow_handler);
    worker_start(&reader, victim, w);
    the_others_go_on(&reader);
}

static int busy(void *arg)
{
    int rc = 0;
    while (rc == 0 && __atomic_load_n(&let_go, __ATOMIC_SEQ_CST) == 0)
        rc = lock_own(arg);
    return rc;
}

/* Any of them at any moment, also with a lock in hand: half of them stand still all the time. */
static void handlers_everywhere(struct world *w)
{
    struct worker workers[OTHERS];
    char names[OTHERS][16];
    open_client(w, brief_handler);
    for (int i = 0; i < OTHERS; i++) {
        snprintf(names[i], sizeof names[i], "busy-%d", i);
        worker_start(&workers[i], busy, names[i]);
    }
    for (int i = 0; i < 30; i++) {
        sleep_ms(50);
        pthread_kill(workers[i % OTHERS].thread, SIGUSR1);
    }
    __atomic_store_n(&let_go, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < OTHERS; i++)
        assert_int_equal(0, worker_join(&workers[i]));
}

static int busy_for_a_while(void *arg)
{
    int rc = 0;
    for (int64_t until_ms = now_ms() + 2500; rc == 0 && now_ms() < until_ms;)
        rc = lock_own(arg);
    return rc;
}

/* The watchdog has no connection of its own, and stands still in the middle of what the callers' brought it. */
static void while_a_renewal_is_looked_for(struct world *w)
{
    struct worker workers[OTHERS];
    char names[OTHERS][16];
    world_int(w, "DBSIZE");
    client = world_client(w, "lease=3500ms&command_timeout=1s");
    world_redis(w, "CONFIG SET maxclients %d", (int)world_counter(w, "connected_clients"));
    standing = let_go = most_readers = 0;
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    __atomic_store_n(&watchdog_stops, 1, __ATOMIC_SEQ_CST);
    eventually(__atomic_load_n(&standing, __ATOMIC_SEQ_CST) == 1, 5000);
    world_redis(w, "CONFIG SET maxclients 1000");
    for (int i = 0; i < OTHERS; i++) {
        snprintf(names[i], sizeof names[i], "busy-%d", i);
        worker_start(&workers[i], busy_for_a_while, names[i]);
    }
    sleep_ms(1500); /* they have another connection now */
    __atomic_store_n(&let_go, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < OTHERS; i++)
        assert_int_equal(0, worker_join(&workers[i]));
    assert_int_equal(0, __atomic_load_n(&most_readers, __ATOMIC_SEQ_CST)); /* never two of one connection */
    lk_mutex_unlock(orders);                                               /* it may have been lost */
}

int main(void)
{
    return world_run(while_it_waits_for_the_server, while_it_takes_answers_in, handlers_everywhere,
                     while_a_renewal_is_looked_for);
}
