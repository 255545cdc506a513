/* SPDX-License-Identifier: MIT */
/*
 * tls_fork_test.c - a program forks while its connections are being made: the child's own client gets its connections
 *
 * At the fork a thread of the library may have a lock of OpenSSL's, which nobody would give back in the child; one that
 * ends takes such locks as well. It has one while it gives back what OpenSSL has of the thread: there it is made to stand.
 */
#include "redis/tls.h"
#include "world_parts.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 100, CLIENTS = 4, ENDS = 5, STANDS_MS = 20 };

static struct gate stop;
static const char *url;

/* A client after the other is opened, that is, connected and greeted. */
static int open_all(int index, void *arg)
{
    (void)index, (void)arg;
    while (!gate_is_open(&stop)) {
        lk_client_t *client;
        int rc = lk_client_open(&client, url);
        if (rc == 0)
            rc = lk_client_close(client);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int run_openers(void *arg)
{
    return run_threads(CLIENTS, open_all, arg);
}

static int run_opener(void *arg)
{
    return open_all(0, arg);
}

/* --- the child --------------------------------------------------------------------------------------------------- */

static int open_one(void)
{
    lk_client_t *client;
    int rc = lk_client_open(&client, url);
    return rc != 0 ? rc : lk_client_close(client);
}

static pid_t fork_one(void)
{
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        become_child(parent);
        _exit(open_one());
    }
    assert_true(pid > 0);
    return pid;
}

static void is_served(pid_t child)
{
    int status = -1;
    eventually(waitpid(child, &status, WNOHANG) == child, 30000);
    assert_true(WIFEXITED(status));
    assert_int_equal(0, WEXITSTATUS(status));
}

static void children_are_served(struct world *w)
{
    if (SANITIZED)
        skip(); /* its own locks are not there for a child */
    struct worker openers;
    stop.open = 0;
    url = world_url(w, "lease=60s&connect_timeout=20s");
    worker_start(&openers, run_openers, NULL);
    for (int i = 0; i < CHILDREN; i++)
        is_served(fork_one());
    gate_open(&stop);
    assert_int_equal(0, worker_join(&openers));
}

/* --- a thread that ends -------------------------------------------------------------------------------------------- */

/* The next thread that OpenSSL gives something back of stands still there, until the fork or for a while. */
static int wanted, standing, stood_at_the_fork; /* atomic builtins */
static struct gate stands, forked;

static void stand(void)
{
    __atomic_store_n(&standing, 1, __ATOMIC_SEQ_CST);
    gate_open(&stands);
    for (int64_t until_ms = now_ms() + STANDS_MS; now_ms() < until_ms && !gate_is_open(&forked);)
        sleep_ms(1);
    __atomic_store_n(&standing, 0, __ATOMIC_SEQ_CST);
}

static void *get(size_t size, const char *file, int line)
{
    (void)file, (void)line;
    return malloc(size);
}

static void *change(void *memory, size_t size, const char *file, int line)
{
    (void)file, (void)line;
    return realloc(memory, size);
}

/* What this file of OpenSSL's frees is of a thread that ends: it has the lock of all threads then. */
static void give(void *memory, const char *file, int line)
{
    (void)line;
    if (file != NULL && strstr(file, "initthread.c") != NULL && __atomic_exchange_n(&wanted, 0, __ATOMIC_SEQ_CST) == 1)
        stand();
    free(memory);
}

/* Just before the fork: what was there first comes last. A thread that lingers stands there until it may fork. */
static __thread bool lingers;
static struct gate lingering, may_fork;

static void look(void)
{
    if (lingers) {
        gate_open(&lingering);
        gate_pass(&may_fork);
    }
    __atomic_store_n(&stood_at_the_fork, __atomic_load_n(&standing, __ATOMIC_SEQ_CST), __ATOMIC_SEQ_CST);
}

static void go_on(void)
{
    gate_open(&forked);
}

static void a_thread_that_ends_is_waited_for(struct world *w)
{
    if (SANITIZED)
        skip();
    struct worker opener;
    stop.open = 0;
    url = world_url(w, "lease=60s&connect_timeout=20s");
    worker_start(&opener, run_opener, NULL);
    for (int i = 0; i < ENDS; i++) {
        stands.open = forked.open = 0;
        __atomic_store_n(&wanted, 1, __ATOMIC_SEQ_CST);
        gate_pass(&stands);
        pid_t child = fork_one();
        assert_int_equal(0, __atomic_load_n(&stood_at_the_fork, __ATOMIC_SEQ_CST));
        is_served(child);
    }
    gate_open(&stop);
    assert_int_equal(0, worker_join(&opener));
}

/* --- several threads that fork ------------------------------------------------------------------------------------- */

static int progress[2]; /* atomic builtins: the fork beside it is over; a thread came into OpenSSL */

static int is_past(int index)
{
    return __atomic_load_n(&progress[index], __ATOMIC_SEQ_CST);
}

static int fork_slowly(void *arg)
{
    lingers = true;
    int status = -1;
    pid_t pid = fork();
    (void)arg;
    if (pid == 0)
        _exit(0);
    lingers = false;
    return waitpid(pid, &status, 0) == pid ? status : ECHILD;
}

static int fork_beside_it(void *arg)
{
    pid_t pid = fork();
    (void)arg;
    if (pid == 0)
        _exit(0);
    __atomic_store_n(&progress[0], 1, __ATOMIC_SEQ_CST);
    int status = -1;
    return waitpid(pid, &status, 0) == pid ? status : ECHILD;
}

static int enter(void *arg)
{
    (void)arg;
    if (!lk__tls_enter())
        return EIO;
    __atomic_store_n(&progress[1], 1, __ATOMIC_SEQ_CST);
    lk__tls_leave();
    return 0;
}

/* One that is about to fork keeps others out of OpenSSL also when another one has forked meanwhile. */
static void forks_at_once_are_all_waited_for(struct world *w)
{
    struct worker slow, beside, other;
    if (SANITIZED)
        skip();
    url = world_url(w, "lease=60s&connect_timeout=20s");
    assert_int_equal(0, open_one());
    worker_start(&slow, fork_slowly, NULL);
    gate_pass(&lingering);
    worker_start(&beside, fork_beside_it, NULL);
    for (int i = 0; i < 1000 && !is_past(0); i++)
        sleep_ms(5);
    bool together = is_past(0); /* some C libraries fork one after the other */
    worker_start(&other, enter, NULL);
    sleep_ms(200);
    bool early = is_past(1);
    gate_open(&may_fork);
    assert_int_equal(0, worker_join(&slow));
    assert_int_equal(0, worker_join(&beside));
    assert_int_equal(0, worker_join(&other));
    assert_false(together && early);
}

int main(void)
{
    CRYPTO_set_mem_functions(get, change, give);
    pthread_atfork(look, go_on, NULL);
    setenv("LATCHKEY_TEST_TLS", "yes", 1);
    return world_run(a_thread_that_ends_is_waited_for, forks_at_once_are_all_waited_for, children_are_served);
}
