/* SPDX-License-Identifier: MIT */
/*
 * slow_handler_test.c - a thread that stands still, in a signal handler or a debugger, holds up nobody else
 *
 * One of the threads that wait reads the answers for all. It may be this one.
 *
 * labels: threads memory
 * simulated: except tsan
 * seconds: 10
 * processors: 10
 */
#include "world.h"

#include <dlfcn.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { OTHERS = 4, STILL_MS = 20000 };

static lk_client_t *client;
static int standing, let_go; /* atomic builtins */
static __thread bool stops_in_recv, stops_in_post;
static int (*wake)(sem_t *);
static int watchdog_stops;            /* atomic builtins */
static int readers[64], most_readers; /* of each descriptor, at once: atomic builtins */

static void nobody_stands(void)
{
    __atomic_store_n(&standing, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&let_go, 0, __ATOMIC_SEQ_CST);
}

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

__attribute__((constructor)) static void find_wake(void)
{
    void *found = dlsym(RTLD_NEXT, "sem_post");
    memcpy(&wake, &found, sizeof wake);
}

/* Likewise: one that runs just before another thread is woken. */
int sem_post(sem_t *sem)
{
    bool stops = stops_in_post;
    stops_in_post = false;
    if (stops)
        stand_still();
    return wake(sem);
}

/* Once, and again as long as it is told. */
static int lock_while(const char *name, bool (*goes_on)(void))
{
    lk_mutex_t own;
    int rc = lk_mutex_init(&own, client, name, NULL);
    if (rc != 0)
        return rc;
    do {
        rc = lk_mutex_lockfor(&own, 1000);
        if (rc == 0)
            rc = lk_mutex_unlock(&own);
    } while (rc == 0 && goes_on());
    lk_mutex_destroy(&own);
    return rc;
}

static bool never(void)
{
    return false;
}

static int lock_own(const char *name)
{
    return lock_while(name, never);
}

static bool is_to_stop(void)
{
    return stops_in_recv || stops_in_post;
}

static int victim(void *arg)
{
    stops_in_recv = arg != NULL;
    return lock_while("victim", is_to_stop);
}

static int waking_victim(void *arg)
{
    (void)arg;
    stops_in_post = true;
    return lock_while("victim", is_to_stop);
}

static int other(int index, void *arg)
{
    char name[16];
    (void)arg;
    snprintf(name, sizeof name, "other-%d", index);
    return lock_own(name);
}

static const char *const options = "lease=20s&command_timeout=4s";

static void open_client(struct world *w, void (*handler)(int))
{
    struct sigaction action = { .sa_handler = handler };
    sigaction(SIGUSR1, &action, NULL);
    client = world_client(w, options);
    nobody_stands();
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
    threads_rest();
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

static bool nobody_stood(void)
{
    return __atomic_load_n(&standing, __ATOMIC_SEQ_CST) == 0;
}

static int follow(void *arg)
{
    (void)arg;
    return lock_while("follower", nobody_stood);
}

/* Two use the connection at once, until the one that is to stand still does so when it reads for both. */
static void stand_amid_two(struct worker *reader, int (*fn)(void *), struct worker *follower)
{
    nobody_stands();
    assert_int_equal(0, lock_own("victim"));
    worker_start(follower, follow, NULL);
    worker_start(reader, fn, reader);
    eventually(__atomic_load_n(&standing, __ATOMIC_SEQ_CST) == 1, 20000);
}

/* It has an answer for another thread, or the role, and did not tell it. Only that one may have to wait for it. */
static void while_it_wakes_another(struct world *w)
{
    struct worker reader, follower;
    open_client(w, slow_handler);
    stand_amid_two(&reader, waking_victim, &follower);
    the_others_go_on(&reader);
    assert_int_equal(0, worker_join(&follower));
}

static int child_meanwhile(struct world *w, void *arg)
{
    lk_mutex_t *inherited = arg;
    assert_lk(ECANCELED, lk_mutex_lock(inherited));
    assert_lk(0, lk_mutex_destroy(inherited));
    assert_lk(0, lk_client_close(client));
    client = world_client(w, "");
    assert_int_equal(0, lock_own("child"));
    world_close(w, client);
    world_ready(w);
    return 0;
}

/* Neither those that stand still nor the locks that they have are there in the child. */
static void and_a_process_is_forked(struct world *w)
{
    static int (*const stands[])(void *) = { victim, waking_victim };
    if (THREAD_SANITIZED)
        skip(); /* it cannot follow a fork out of a process with threads */
    open_client(w, slow_handler);
    lk_mutex_t *inherited = world_mutex(w, client, "inherited", NULL);
    for (unsigned i = 0; i < sizeof stands / sizeof *stands; i++) {
        struct worker reader, follower;
        stand_amid_two(&reader, stands[i], &follower);
        assert_int_equal(0, world_wait(w, world_fork(w, child_meanwhile, inherited)));
        the_others_go_on(&reader);
        assert_int_equal(0, worker_join(&follower));
    }
}

static int close_it(void *arg)
{
    int rc = lk_client_close(arg);
    return rc == EIO ? 0 : rc; /* a hold of a grant that nobody saw */
}

static bool is_ended(int rc)
{
    return rc == 0 || rc == ECANCELED || rc == EIO;
}

/* The close has begun and waits for both calls, which end as soon as they go on. */
static void and_its_client_is_closed(struct world *w)
{
    static int (*const stands[])(void *) = { victim, waking_victim };
    for (unsigned i = 0; i < sizeof stands / sizeof *stands; i++) {
        struct worker reader, follower, closer;
        client = world_open(w, options);
        stand_amid_two(&reader, stands[i], &follower);
        worker_start(&closer, close_it, client);
        sleep_ms(200);
        __atomic_store_n(&let_go, 1, __ATOMIC_SEQ_CST);
        assert_int_equal(0, worker_join(&closer));
        assert_true(is_ended(worker_join(&reader)));
        assert_true(is_ended(worker_join(&follower)));
        world_redis(w, "DEL victim follower"); /* a grant that nobody saw */
    }
    world_allow(w, "latchkey:*");
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
    client = world_client(w, "lease=10500ms&command_timeout=3s");
    world_redis(w, "CONFIG SET maxclients %d", (int)world_counter(w, "connected_clients"));
    nobody_stands();
    __atomic_store_n(&most_readers, 0, __ATOMIC_SEQ_CST);
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    __atomic_store_n(&watchdog_stops, 1, __ATOMIC_SEQ_CST);
    eventually(__atomic_load_n(&standing, __ATOMIC_SEQ_CST) == 1, 15000);
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
    return world_run(while_it_waits_for_the_server, while_it_takes_answers_in, while_it_wakes_another,
                     and_a_process_is_forked, and_its_client_is_closed, handlers_everywhere,
                     while_a_renewal_is_looked_for);
}
