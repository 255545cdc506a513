/* SPDX-License-Identifier: MIT */
/*
 * busy_process_test.c - nor does a call say so because of the process: F51 a thread reads the answer later than its time ends,
 * F78 thousands of threads call at one moment
 *
 * Other reasons of a server that is well: healthy_server_test.c.
 *
 * processors: 6
 */
#include "client/client.h"
#include "walks.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { COMMAND_MS = 1000 };

/* Two threads: one is about to read the answers of both when the process is stopped. */
struct meeting {
    struct gate asks, both, reads, goes_on;
    int codes[2];
    unsigned long long connects;
};

static struct meeting *meeting;
static __thread bool stands;

/* In front of the C library's. When the process goes on, the other thread finds before this one that its time is over. */
ssize_t recv(int fd, void *bytes, size_t size, int flags)
{
    if (stands) {
        stands = false;
        gate_open(&meeting->reads);
        while (!gate_is_open(&meeting->goes_on))
            syscall(SYS_nanosleep, &(struct timespec){ 0, 1000000 }, NULL);
        syscall(SYS_nanosleep, &(struct timespec){ 0, 100000000 }, NULL);
    }
    return syscall(SYS_recvfrom, fd, bytes, size, flags, NULL, NULL);
}

static int read_for_both(void *arg)
{
    unsigned count;
    stands = true;
    return lk_latch_getcount(arg, &count);
}

/* Requests of the callers. */
static int in_flight(lk_client_t *client)
{
    struct lk__conn *conn = &client->node.lanes[LK__LANE_COMMANDS];
    lk__mu_lock(&conn->mu);
    int count = (int)(conn->end - conn->oldest);
    lk__mu_unlock(&conn->mu);
    return count;
}

static int meet(struct world *w, void *arg)
{
    meeting = arg;
    struct worker reader;
    unsigned count;
    lk_client_t *client = world_client(w, "command_timeout=1s");
    lk_latch_t *gate = world_latch(w, client, "gate");
    assert_lk(0, lk_latch_getcount(gate, &count)); /* from now on the server knows the script */
    world_ready(w);
    gate_pass(&meeting->asks);
    worker_start(&reader, read_for_both, gate);
    eventually(in_flight(client) == 1, COMMAND_MS);
    gate_open(&meeting->both);
    meeting->codes[0] = lk_latch_getcount(gate, &count);
    meeting->codes[1] = worker_join(&reader);
    meeting->connects = lk__node_connects(&client->node, LK__LANE_COMMANDS);
    return 0;
}

/* Its answer lies there, and the thread that is to read it is a bit slower than its own clock. */
static void an_answer_that_came_meanwhile_counts(struct world *w)
{
    struct meeting *shared = world_shared(w, sizeof *shared);
    pid_t child = world_fork(w, meet, shared);
    world_stop_server(w);
    gate_open(&shared->asks);
    gate_pass(&shared->both);
    sleep_ms(COMMAND_MS / 20);
    world_cont_server(w);
    gate_pass(&shared->reads);
    world_stop(child);
    sleep_ms(COMMAND_MS * 3 / 2);
    gate_open(&shared->goes_on);
    world_cont(child);
    assert_int_equal(0, world_wait(w, child));
    assert_lk(0, shared->codes[0]);
    assert_lk(0, shared->codes[1]);
    assert_int_equal(1, shared->connects);
}

/* --- many threads ------------------------------------------------------------------------------------------------- */

enum { THREADS = 3000, STACK = 128 * 1024 };

static struct {
    struct walker walkers[THREADS];
    pthread_t threads[THREADS];
    pthread_barrier_t ready;
    struct timespec begin;
} crowd;

/* They sleep until a date, so that none wakes another. */
static void *walk_in_a_crowd(void *arg)
{
    int number = (int)((struct walker *)arg - crowd.walkers);
    pthread_barrier_wait(&crowd.ready);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &crowd.begin, NULL) == EINTR)
        ;
    walk_row(arg, number % WALKS, number);
    return NULL;
}

static void from_many_threads_at_once(struct world *w)
{
    if (SANITIZED)
        skip(); /* threads are too dear there */
    world_allow(w, "*");
    lk_client_t *client = world_client(w, "lease=60s&command_timeout=15s");
    pthread_attr_t attr;
    int began = 0, failed = 0;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    pthread_barrier_init(&crowd.ready, NULL, THREADS + 1);
    for (; began < THREADS; began++) {
        crowd.walkers[began] = (struct walker){ .client = client };
        if (pthread_create(&crowd.threads[began], &attr, walk_in_a_crowd, &crowd.walkers[began]) != 0)
            break;
    }
    assert_int_equal(THREADS, began);
    clock_gettime(CLOCK_MONOTONIC, &crowd.begin);
    crowd.begin.tv_sec += 1;
    pthread_barrier_wait(&crowd.ready);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(crowd.threads[i], NULL);
        if (crowd.walkers[i].failed > 0 && failed++ < 5)
            print_message("    %d failed; %s\n", crowd.walkers[i].failed, crowd.walkers[i].first);
    }
    pthread_attr_destroy(&attr);
    pthread_barrier_destroy(&crowd.ready);
    assert_int_equal(0, failed);
    assert_int_equal(1, lk__node_connects(&client->node, LK__LANE_COMMANDS));
}

int main(void)
{
    return world_run(an_answer_that_came_meanwhile_counts, from_many_threads_at_once);
}
