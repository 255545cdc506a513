/* SPDX-License-Identifier: MIT */
/*
 * forked_test.c - F54, F55: a process forks, or becomes another program, while it holds
 *
 * labels: memory
 */
#include "subject.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPTIONS "lease=6s&command_timeout=1800ms&poll=200ms"

struct inheritance {
    struct subject *subject;
    lk_client_t *client;
};

/* What was opened before the fork is the parent's. */
static int child_of_a_holder(struct world *w, void *arg)
{
    struct inheritance *inherited = arg;
    int64_t left_ms;
    assert_lk(ECANCELED, subject_take(inherited->subject, 0));
    int rc = subject_give(inherited->subject);
    assert_that(rc == EPERM || (rc == ECANCELED && !inherited->subject->kind->leased));
    if (inherited->subject->kind->leased)
        assert_that(subject_remaining(inherited->subject, &left_ms) != 0);
    assert_lk(0, subject_destroy(inherited->subject));
    assert_lk(0, lk_client_close(inherited->client));
    world_ready(w);
    if (SANITIZED)
        return 0; /* the leak checker would take the parent's memory for lost */
    exit(0);      /* with its handlers: they send nothing either */
}

/* How many connections of the library stand. */
static int connections(struct world *w)
{
    return library_clients(world_str(w, "CLIENT LIST"));
}

/* Until when it is held, ms; without leases for ever. */
static int64_t held_until_ms(struct subject *mine)
{
    int64_t left_ms;
    assert_lk(0, subject_remaining(mine, &left_ms));
    return left_ms == LK_FOREVER ? LK_FOREVER : now_ms() + left_ms;
}

static void the_child_owns_nothing(struct world *w, const struct subject_kind *kind)
{
    if (THREAD_SANITIZED)
        return; /* it does not follow a fork out of a process with threads */
    lk_client_t *client = world_client(w, OPTIONS);
    struct subject *mine = world_subject(w, client, kind, "thing");
    assert_lk(0, subject_take(mine, 1000));
    int64_t first_ms = held_until_ms(mine);
    eventually(connections(w) == 2, 2000); /* the watchdog's comes a moment later */
    int64_t received = world_counter(w, "total_connections_received");
    for (int i = 0; i < 5; i++) {
        pid_t child = world_fork(w, child_of_a_holder, &(struct inheritance){ mine, client });
        assert_int_equal(0, world_wait(w, child));
        assert_int_equal(received, world_counter(w, "total_connections_received"));
    }
    eventually(first_ms == LK_FOREVER || held_until_ms(mine) > first_ms + 1000, 20000); /* the parent renews on */
    assert_int_equal(1, subject_held(w, mine));
    assert_lk(0, subject_give(mine));
    assert_int_equal(0, subject_held(w, mine));
}

/* How many descriptors a program has that was started by us. */
static long descriptors_of_a_new_program(void)
{
    char text[32] = "";
    int ends[2];
    pid_t pid;
    char *argv[] = { (char *)"sh", (char *)"-c", (char *)"ls /proc/self/fd | wc -l", NULL };
    posix_spawn_file_actions_t actions;
    assert_int_equal(0, pipe2(ends, O_CLOEXEC));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    assert_int_equal(0, posix_spawnp(&pid, "sh", &actions, NULL, argv, environ));
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    assert_true(read(ends[0], text, sizeof text - 1) > 0);
    close(ends[0]);
    waitpid(pid, NULL, 0);
    return strtol(text, NULL, 10);
}

static void a_holder_starts_a_program(struct world *w, const struct subject_kind *kind)
{
    long before = descriptors_of_a_new_program();
    lk_client_t *client = world_client(w, OPTIONS);
    int fd;
    struct subject *mine = world_subject(w, client, kind, "thing");
    world_subject(w, client, subject_keeper(kind), "other");
    assert_lk(0, lk_events_fd(world_events(w, client), &fd));
    assert_lk(0, subject_take(mine, 1000));
    assert_int_equal(before, descriptors_of_a_new_program());
    assert_lk(0, subject_give(mine));
}

static void a_holder_forks(void)
{
    if (THREAD_SANITIZED)
        skip();
    for_each_subject(NULL, the_child_owns_nothing);
}

int main(void)
{
    int failed = plain_run(a_holder_forks);
    return failed + subject_run(a_holder_starts_a_program);
}
