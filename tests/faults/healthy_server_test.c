/* SPDX-License-Identifier: MIT */
/*
 * healthy_server_test.c - no call of any kind says EIO or ENOTCONN because of a server that is well: F03, F09 the idle
 * connections were closed a moment ago, F51 the process stood still for three command timeouts
 *
 * In real time: busy_process_test.c.
 *
 * labels: memory
 * simulated: yes
 * seconds: 15
 */
#include "proxy.h"
#include "walks.h"

#include <string.h>
#include <unistd.h>

static void kill_idle(struct walker *walker)
{
    world_killcommands(walker->w);
    world_killsubscriptions(walker->w);
}

/* By TCP, where what is sent then is taken all the same. */
static void close_idle(struct walker *walker)
{
    proxy_cut(walker->proxy);
}

static void after_idle_connections_were_closed(struct world *w)
{
    static const char options[] = "lease=60s&command_timeout=5s";
    struct proxy *proxy = proxy_begin_tcp(w);
    int failed = 0;
    world_allow(w, "latchkey:*");
    for (int row = 0; row < 2 * WALKS; row++) {
        struct walker walker = { .client = row < WALKS ? world_client(w, options) : proxy_client(proxy, options),
                                 .before = row < WALKS ? kill_idle : close_idle,
                                 .w = w,
                                 .proxy = proxy };
        walk_row(&walker, row % WALKS, row / WALKS);
        if (walker.failed > 0)
            print_message("    %d failed; %s\n", walker.failed, walker.first);
        failed += walker.failed;
    }
    assert_int_equal(0, failed);
}

enum { COMMAND_MS = 1000, STOPS = 20, WALKERS = 8 };

struct stopping {
    struct gate end;
    int rounds, failed;
    char first[WALK_WORDS];
};

struct stopped {
    struct stopping *shared;
    struct walker walkers[WALKERS];
};

static int walk_on(int index, void *arg)
{
    struct stopped *stopped = arg;
    struct walker *walker = &stopped->walkers[index];
    for (int i = index; !gate_is_open(&stopped->shared->end); i++) {
        walk_row(walker, i % WALKS, index);
        __atomic_add_fetch(&stopped->shared->rounds, 1, __ATOMIC_SEQ_CST);
    }
    return 0;
}

static int walk_until_the_end(struct world *w, void *arg)
{
    struct stopped stopped = { .shared = arg };
    lk_client_t *client = world_client(w, "lease=60s&command_timeout=1s");
    for (int i = 0; i < WALKERS; i++)
        stopped.walkers[i].client = client;
    world_ready(w);
    run_threads(WALKERS, walk_on, &stopped);
    for (int i = 0; i < WALKERS; i++) {
        stopped.shared->failed += stopped.walkers[i].failed;
        if (stopped.walkers[i].failed > 0)
            memcpy(stopped.shared->first, stopped.walkers[i].first, WALK_WORDS);
    }
    return 0;
}

static void after_the_process_stood_still(struct world *w)
{
    world_allow(w, "latchkey:*");
    struct stopping *shared = world_shared(w, sizeof *shared);
    pid_t child = world_fork(w, walk_until_the_end, shared);
    for (int i = 0; i < STOPS; i++) {
        int rounds = __atomic_load_n(&shared->rounds, __ATOMIC_SEQ_CST);
        eventually(__atomic_load_n(&shared->rounds, __ATOMIC_SEQ_CST) > rounds, 10000);
        usleep((useconds_t)(17 * i)); /* somewhere between two calls, or in one */
        world_stop(child);
        sleep_ms(3 * COMMAND_MS);
        world_cont(child);
    }
    sleep_ms(COMMAND_MS);
    gate_open(&shared->end);
    assert_int_equal(0, world_wait(w, child));
    if (shared->failed > 0)
        print_message("    %d failed; %s\n", shared->failed, shared->first);
    assert_int_equal(0, shared->failed);
}

struct asking {
    struct gate opened, asks;
    const char *url;
};

static int set_a_count(struct world *w, void *arg)
{
    struct asking *asking = arg;
    lk_client_t *client;
    assert_lk(0, lk_client_open(&client, asking->url));
    lk_latch_t *first = world_latch(w, client, "first"), *second = world_latch(w, client, "second");
    assert_lk(0, lk_latch_trysetcount(first, 1)); /* from now on the server knows the script */
    world_ready(w);
    gate_open(&asking->opened);
    gate_pass(&asking->asks);
    assert_lk(0, lk_latch_trysetcount(second, 1));
    assert_lk(0, lk_client_close(client));
    return 0;
}

/* Its request was on the way meanwhile, and came when its time was over: nothing was done, and it is sent once more. */
static void after_a_request_stood_still_with_the_process(struct world *w)
{
    struct proxy *proxy = proxy_begin(w);
    struct asking *shared = world_shared(w, sizeof *shared);
    world_allow(w, "*");
    shared->url = proxy_url(proxy, "command_timeout=1s");
    pid_t child = world_fork(w, set_a_count, shared);
    gate_pass(&shared->opened);
    int64_t bytes = proxy_bytes(proxy, PROXY_UP);
    proxy_stall(proxy, PROXY_UP);
    gate_open(&shared->asks);
    sleep_ms(COMMAND_MS / 5);
    world_stop(child);
    sleep_ms(3 * COMMAND_MS);
    proxy_resume(proxy);
    eventually(proxy_bytes(proxy, PROXY_UP) > bytes, COMMAND_MS);
    sleep_ms(COMMAND_MS / 5);
    world_cont(child);
    assert_int_equal(0, world_wait(w, child));
}

int main(void)
{
    return world_run(after_idle_connections_were_closed, after_the_process_stood_still,
                     after_a_request_stood_still_with_the_process);
}
