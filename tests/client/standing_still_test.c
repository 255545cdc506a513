/* SPDX-License-Identifier: MIT */
/*
 * standing_still_test.c - a client is closed while a thread stands still in one of its calls
 *
 * Nothing that the thread may still use is freed, and the close does not wait for it for ever. The thread stands where a
 * handler may run and last: where it polls for all, in the middle of the answers, or where it waits for its turn.
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 7
 */
#include "world.h"

#include <dlfcn.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LEAVE_MS = 5000, COMMAND_MS = THREAD_SANITIZED ? 2000 : 500, PATIENT_MS = 20000 };

#define OPTIONS                                                                                                        \
    (THREAD_SANITIZED ? "lease=60s&warn_hold=50ms&command_timeout=2s" : "lease=60s&warn_hold=50ms&command_timeout=500ms")

enum place { IN_POLL, IN_ANSWERS, WAITING, PLACES };

struct story {
    enum place place;
    lk_client_t *client;
    lk_events_t *queue;
    lk_mutex_t orders, bills;
    char name[16];
    struct worker waiter, leaver;
    atomic_bool stops, left;
    int code;
    int64_t took_ms;
    char text[256];
};

static __thread struct story *mine; /* of the thread that is to stand still */
static atomic_int standing;
static atomic_bool let_go;
static int (*poll_of_c)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
static int (*clockwait_of_c)(sem_t *, clockid_t, const struct timespec *);

__attribute__((constructor)) static void find_theirs(void)
{
    void *found = dlsym(RTLD_NEXT, "ppoll");
    memcpy(&poll_of_c, &found, sizeof poll_of_c);
    found = dlsym(RTLD_NEXT, "sem_clockwait");
    memcpy(&clockwait_of_c, &found, sizeof clockwait_of_c);
}

/* A handler that happens to run here. */
static void stand_still_in(bool here)
{
    if (mine == NULL || !here || !atomic_exchange(&mine->stops, false))
        return;
    int before = errno;
    atomic_fetch_add(&standing, 1);
    while (!atomic_load(&let_go))
        syscall(SYS_nanosleep, &(struct timespec){ 0, 5000000 }, NULL);
    errno = before;
}

/* In front of the C library's. */
int ppoll(struct pollfd *polled, nfds_t count, const struct timespec *left, const sigset_t *mask)
{
    stand_still_in(mine != NULL && mine->place != IN_ANSWERS);
    return poll_of_c(polled, count, left, mask);
}

int sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *until)
{
    stand_still_in(mine != NULL && mine->place == WAITING);
    return clockwait_of_c(sem, clock, until);
}

ssize_t recv(int fd, void *bytes, size_t size, int flags)
{
    stand_still_in(mine != NULL && mine->place == IN_ANSWERS);
    return syscall(SYS_recvfrom, fd, bytes, size, flags, NULL, NULL);
}

static int wait_for_it(void *arg)
{
    mine = arg;
    int rc = lk_mutex_lock(&mine->bills);
    mine = NULL;
    return rc;
}

static void begin(struct world *w, struct story *story, enum place place)
{
    *story = (struct story){ .place = place, .client = world_open(w, OPTIONS) };
    snprintf(story->name, sizeof story->name, "orders-%d", place);
    assert_lk(0, lk_events_open(story->client, &story->queue));
    assert_lk(0, lk_mutex_init(&story->orders, story->client, story->name, NULL));
    assert_lk(0, lk_mutex_init(&story->bills, story->client, "bills", NULL));
    assert_lk(0, lk_mutex_lock(&story->orders));
    atomic_store(&story->stops, place != WAITING);
    worker_start(&story->waiter, wait_for_it, story);
}

static int close_it(int index, void *arg)
{
    struct story *story = (struct story *)arg + index;
    int64_t began_ms = now_ms();
    story->code = lk_client_close(story->client);
    story->took_ms = now_ms() - began_ms;
    snprintf(story->text, sizeof story->text, "%s", lk_errortext());
    return 0;
}

static int leave(void *arg)
{
    struct story *story = arg;
    int rc = lk_events_close(story->queue);
    atomic_store(&story->left, true);
    return rc;
}

/* With what it was not told, that the hold is a long one; nobody has to close the client once more before. */
static void close_queue(struct story *story)
{
    worker_start(&story->leaver, leave, story);
    eventually(atomic_load(&story->left), PATIENT_MS);
    assert_int_equal(0, worker_join(&story->leaver));
}

/* It is told so, what the client held is released all the same, and closing it again ends it. */
static void a_thread_that_stands_still_is_told(struct world *w)
{
    struct story stories[PLACES];
    lk_mutex_t *theirs = world_mutex(w, world_client(w, "lease=60s"), "bills", NULL);
    assert_lk(0, lk_mutex_lock(theirs));
    for (int i = 0; i < PLACES; i++)
        begin(w, &stories[i], i);
    eventually(world_queued(w, "bills") == PLACES, PATIENT_MS);
    atomic_store(&stories[WAITING].stops, true);
    eventually(atomic_load(&standing) == PLACES, PATIENT_MS);

    assert_int_equal(0, run_threads(PLACES, close_it, stories));
    for (int i = 0; i < PLACES; i++) {
        struct story *story = &stories[i];
        assert_int_equal(EBUSY, story->code);
        assert_non_null(strstr(story->text, "stands still"));
        assert_between(story->took_ms, LEAVE_MS, LEAVE_MS + COMMAND_MS + SLACK_MS);
        eventually(!world_exists(w, story->name), COMMAND_MS + SLACK_MS); /* sent on, where an answer did not come in time */
        assert_lk(ECANCELED, lk_mutex_trylock(&story->orders));
        if (i != IN_POLL)
            close_queue(story);
    }

    atomic_store(&let_go, true);
    for (int i = 0; i < PLACES; i++) {
        assert_int_equal(ECANCELED, worker_join(&stories[i].waiter));
        assert_lk(0, lk_client_close(stories[i].client));
        if (i == IN_POLL)
            close_queue(&stories[i]);
        assert_lk(0, lk_mutex_destroy(&stories[i].orders));
        assert_lk(0, lk_mutex_destroy(&stories[i].bills));
    }
    assert_int_equal(0, world_queued(w, "bills"));
    assert_lk(0, lk_mutex_unlock(theirs));
}

int main(void)
{
    return world_run(a_thread_that_stands_still_is_told);
}
