/* SPDX-License-Identifier: MIT */
/*
 * inherited_descriptors_test.c - the child of a fork keeps nothing open of what the library has in its parent
 *
 * A child that lives on with copies of its parent's sockets keeps a killed parent alive for the server, which then
 * hands locks to nobody; and daemons that fork and exit would collect the connections of all their generations.
 *
 * labels: memory
 */
#include "world.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct story {
    struct gate forked, done;
    lk_client_t *client;
    lk_mutex_t *mutex;
};

/* Sockets, eventfds and timers of this process. */
static int count_pollables(void)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    char target[64];
    int count = 0;
    while ((entry = readdir(dir)) != NULL) {
        ssize_t length = readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        count += strncmp(target, "socket:", 7) == 0 || strstr(target, "eventfd") != NULL ||
                 strstr(target, "timerfd") != NULL;
    }
    closedir(dir);
    return count;
}

/* Command, watchdog and subscription connections stand, and a child that never heard of them lives on. */
static int fork_while_waiting(struct world *w, void *arg)
{
    struct story *story = arg;
    struct worker waiter;
    lk_client_t *client = world_client(w, "");
    assert_lk(0, lk_mutex_lock(world_mutex(w, client, "letters", NULL)));
    worker_start(&waiter, lock_mutex, world_mutex(w, client, "orders", NULL));
    eventually(world_queued(w, "orders") == 1 && world_int(w, "PUBSUB NUMPAT") == 0 &&
                   world_elements(w, "PUBSUB CHANNELS latchkey:*") == 1,
               5000);
    world_rest();
    if (fork() == 0) {
        gate_pass(&story->done);
        _exit(0);
    }
    world_ready(w);
    gate_pass(&story->done);
    return 0;
}

static void a_killed_parent_is_dead_for_the_server_though_its_child_lives(struct world *w)
{
    struct story *story = world_shared(w, sizeof *story);
    world_redis(w, "HSET orders somebody:1 1");
    pid_t parent = world_fork(w, fork_while_waiting, story);
    world_kill(w, parent);
    eventually(world_elements(w, "PUBSUB CHANNELS latchkey:*") == 0, 5000);
    gate_open(&story->done);
    world_redis(w, "DEL orders letters");
    world_allow(w, "latchkey:*");
}

static int look_at_descriptors(struct story *story)
{
    int mine[32], before = count_pollables();
    for (int i = 0; i < 32; i++)
        mine[i] = open("/dev/null", O_RDONLY); /* under the same numbers */
    int rc = lk_mutex_destroy(story->mutex);
    if (rc == 0)
        rc = lk_client_close(story->client);
    for (int i = 0; i < 32; i++)
        if (fcntl(mine[i], F_GETFD) == -1)
            return 3;
    return before != 0 ? 2 : rc;
}

static int descriptors_of_a_child(struct world *w, void *arg)
{
    struct story story;
    int fd, status;
    (void)arg;
    int world_has = count_pollables(); /* of the test */
    story.client = world_client(w, "");
    story.mutex = world_mutex(w, story.client, "orders", NULL);
    assert_lk(0, lk_events_fd(world_events(w, story.client), &fd));
    assert_lk(0, lk_mutex_lock(story.mutex));
    assert_that(world_has == 0 && count_pollables() > 6);
    world_rest();
    pid_t child = fork();
    if (child == 0)
        _exit(look_at_descriptors(&story));
    assert_that(waitpid(child, &status, 0) == child);
    assert_that(WIFEXITED(status));
    assert_lk(0, WEXITSTATUS(status));
    assert_lk(0, lk_mutex_check(story.mutex)); /* the parent's are as they were */
    assert_lk(0, lk_mutex_unlock(story.mutex));
    world_ready(w);
    return 0;
}

/* And what the child opens under the same numbers stays open when it closes the inherited client. */
static void a_child_has_none_of_its_parents_descriptors(struct world *w)
{
    assert_int_equal(0, world_wait(w, world_fork(w, descriptors_of_a_child, NULL)));
}

static lk_mutex_t letters = LK_MUTEX_INITIALIZER("letters");

static int fork_and_exit(struct world *w, void *arg)
{
    struct story *story = arg;
    world_ready(w);
    for (int generation = 0; generation < 3; generation++) {
        assert_lk(0, lk_mutex_lock(&letters));
        assert_lk(0, lk_mutex_unlock(&letters));
        world_rest();
        if (fork() != 0)
            _exit(0);
    }
    assert_lk(0, lk_mutex_lock(&letters));
    assert_lk(0, lk_mutex_unlock(&letters));
    gate_open(&story->forked);
    gate_pass(&story->done);
    return 0;
}

static void three_generations_of_a_daemon_have_the_connections_of_one(struct world *w)
{
    struct story *story = world_shared(w, sizeof *story);
    use_default(world_url(w, "connect_timeout=10s"));
    assert_int_equal(0, world_wait(w, world_fork(w, fork_and_exit, story)));
    gate_pass(&story->forked);
    eventually(world_counter(w, "connected_clients") <= 1 + 3, 5000);
    gate_open(&story->done);
    eventually(world_counter(w, "connected_clients") == 1, 5000);
}

int main(void)
{
    return world_run(a_killed_parent_is_dead_for_the_server_though_its_child_lives,
                     a_child_has_none_of_its_parents_descriptors,
                     three_generations_of_a_daemon_have_the_connections_of_one);
}
