/* SPDX-License-Identifier: MIT */
/*
 * last_thread_test.c - a process ends with the last thread of the program, whatever the library has running
 *
 * POSIX ends a process by exit(0) when its last thread ended; a program whose main() calls pthread_exit() relies
 * on that. Threads of the library are none of the program's.
 *
 * simulated: yes
 */
#include "world.h"

#include <stdlib.h>
#include <unistd.h>

enum { SOON_MS = 4000 };

static struct marks {
    int at_exit, late; /* reached with atomic builtins */
    int64_t began_ms;  /* when the child was ready */
} * marks;

static lk_client_t *client;
static lk_mutex_t *orders;
static lk_sem_t *permits;
static lk_once_t *work;
static char permit[LK_PERMIT_ID];

static void mark_exit(void)
{
    __atomic_store_n(&marks->at_exit, 1, __ATOMIC_SEQ_CST);
}

static void begin(struct world *w)
{
    atexit(mark_exit);
    client = world_client(w, "lease=20s");
    marks->began_ms = now_ms();
    world_ready(w);
}

static int only_open(struct world *w, void *arg)
{
    (void)arg;
    begin(w);
    pthread_exit(NULL);
}

static void ignore(const lk_event_t *event, void *arg)
{
    (void)event;
    (void)arg;
}

/* Its permit belongs to no thread, and is renewed; its mutex to one that is over. */
static int hold(struct world *w, void *arg)
{
    lk_semattr_t attr = LK_SEMATTR_INIT;
    (void)arg;
    attr.leased = 1;
    begin(w);
    assert_lk(0, lk_client_addlistener(client, ignore, NULL, NULL));
    orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    work = world_once(w, client, "work", NULL);
    assert_lk(0, lk_once_begin(work, 0));
    permits = world_sem(w, client, "permits", 1, &attr);
    assert_lk(0, lk_sem_acquireid(permits, 0, permit));
    pthread_exit(NULL);
}

/* A thread that never called the library is the program's all the same. */
static void *work_late(void *arg)
{
    sleep_ms(1500);
    __atomic_store_n(&marks->late, 1, __ATOMIC_SEQ_CST);
    if (arg != NULL)
        sleep_ms(lk_mutex_unlock(arg)); /* EPERM: it is not this thread's */
    return NULL;
}

static int work_on(struct world *w, void *arg)
{
    pthread_t thread;
    begin(w);
    orders = world_mutex(w, client, "orders", NULL);
    pthread_create(&thread, NULL, work_late, arg != NULL ? orders : NULL);
    pthread_detach(thread);
    pthread_exit(NULL);
}

/* The main thread lives, and knows nothing of the library: only its threads use it. */
static void *lock_letters(void *arg)
{
    (void)arg;
    static lk_mutex_t letters = LK_MUTEX_INITIALIZER("letters");
    intptr_t rc = lk_mutex_lock(&letters);
    if (rc == 0)
        rc = lk_mutex_unlock(&letters);
    return (void *)rc;
}

static int stay_in_main(struct world *w, void *arg)
{
    (void)arg;
    use_default(world_url(w, "connect_timeout=10s"));
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        void *rc;
        pthread_create(&thread, NULL, lock_letters, NULL);
        pthread_join(thread, &rc);
        assert_lk(0, (int)(intptr_t)rc);
        sleep_ms(300);
    }
    world_ready(w);
    sleep_ms(700);
    return 7;
}

/* How long it lived since it was ready. */
static int64_t run(struct world *w, int (*child)(struct world *, void *), void *arg, int status)
{
    if (SANITIZED)
        skip(); /* has threads of its own, or looks for leaks that only the stack of main() knew */
    marks = world_shared(w, sizeof *marks);
    pid_t pid = world_fork(w, child, arg);
    assert_int_equal(status, world_wait(w, pid));
    return now_ms() - marks->began_ms;
}

static void a_process_without_threads_of_its_own_ends(struct world *w)
{
    assert_between(run(w, only_open, NULL, 0), 0, SOON_MS);
    assert_int_equal(1, marks->at_exit);
}

static void what_it_holds_is_given_back(struct world *w)
{
    assert_between(run(w, hold, NULL, 0), 0, SOON_MS);
    assert_false(world_exists(w, "orders"));
    assert_false(world_exists(w, "latchkey:run:{work}"));
    assert_int_equal(0, world_int(w, "ZCOUNT latchkey:permits:{permits} 0 inf"));
    world_allow(w, "*permits*");
}

static void it_lives_as_long_as_any_thread_of_the_program(struct world *w)
{
    assert_between(run(w, work_on, NULL, 0), 1400, 1500 + SOON_MS);
    assert_int_equal(1, marks->late);
    assert_between(run(w, work_on, w, 0), 1400, 1500 + SOON_MS);
    assert_int_equal(1, marks->late);
}

static void a_main_thread_that_never_called_the_library_lives_on(struct world *w)
{
    run(w, stay_in_main, NULL, 7);
}

int main(void)
{
    return world_run(a_process_without_threads_of_its_own_ends, what_it_holds_is_given_back,
                     it_lives_as_long_as_any_thread_of_the_program,
                     a_main_thread_that_never_called_the_library_lives_on);
}
