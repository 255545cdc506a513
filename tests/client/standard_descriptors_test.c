/* SPDX-License-Identifier: MIT */
/*
 * standard_descriptors_test.c - what a daemon without standard descriptors prints never reaches the server
 *
 * The descriptors that it closed are given to whatever is opened next. A line on a connection would be a request
 * of its own, and its answer taken for that of a lock.
 *
 * labels: threads memory
 */
#include "world.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct daemon {
    bool opens_before;        /* the client, before it closes the descriptors */
    struct gate cut, goes_on; /* its connections are to be ended; they were */
};

static void close_standard(void)
{
    for (int fd = 0; fd <= 2; fd++)
        close(fd);
}

/*
 * As printf() and fprintf(stderr) do, and as others may with what they believe to be their input. ThreadSanitizer does not
 * see these writes: they may meet the close of a socket that the library moves away, which is harmless as it is not connected.
 */
static void chatter(void)
{
    static const char line[] = "the daemon has something to say\r\n";
    for (int fd = 0; fd <= 2; fd++)
        if (syscall(SYS_write, fd, line, sizeof line - 1) < 0)
            continue;
}

static int lock_and_talk(lk_mutex_t *orders, lk_mutex_t *taken)
{
    int failed = 0;
    for (int i = 0; i < 20; i++) {
        chatter();
        failed += lk_mutex_lock(orders) != 0;
        chatter();
        failed += lk_mutex_unlock(orders) != 0;
    }
    failed += lk_mutex_lockfor(taken, 50) != ETIMEDOUT; /* has the subscription opened, too */
    chatter();
    return failed;
}

static int standard_ones_in_use(void)
{
    int count = 0;
    for (int fd = 0; fd <= 2; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static int run_daemon(struct world *w, void *arg)
{
    struct daemon *daemon = arg;
    if (!daemon->opens_before)
        close_standard();
    lk_client_t *client = world_client(w, "lease=5s");
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    lk_mutex_t *taken = world_mutex(w, client, "taken", NULL);
    world_ready(w);
    if (daemon->opens_before)
        close_standard();
    int failed = lock_and_talk(orders, taken);
    gate_open(&daemon->cut);
    gate_pass(&daemon->goes_on);
    failed += lock_and_talk(orders, taken);
    failed += standard_ones_in_use();
    return failed;
}

static void no_line_reaches_the_server(struct world *w, bool opens_before)
{
    struct daemon *daemon = world_shared(w, sizeof *daemon);
    daemon->opens_before = opens_before;
    world_redis(w, "HSET taken somebody:1 1");
    pid_t pid = world_fork(w, run_daemon, daemon);
    gate_pass(&daemon->cut);
    world_killcommands(w);
    world_killsubscriptions(w);
    gate_open(&daemon->goes_on);
    assert_int_equal(0, world_wait(w, pid));
    world_redis(w, "DEL taken");
    const char *errors = world_str(w, "INFO errorstats");
    if (strstr(errors, "errorstat_ERR:") != NULL)
        assert_failed(__FILE__, __LINE__, "the server was told something else: %s", errors);
}

static void closed_before_the_client_opens(struct world *w)
{
    no_line_reaches_the_server(w, false);
}

static void closed_while_the_client_is_open(struct world *w)
{
    no_line_reaches_the_server(w, true);
}

int main(void)
{
    return world_run(closed_before_the_client_opens, closed_while_the_client_is_open);
}
