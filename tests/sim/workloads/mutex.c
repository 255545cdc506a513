/* SPDX-License-Identifier: MIT */
/*
 * mutex.c - a few machines lock and unlock one mutex in a storm: no two hold it at once, tokens rise, and all are served
 * once it is calm
 */
#include "workload.h"

#include <latchkey/latchkey.h>

enum { MACHINES = 3, THREADS = 2, LEASE_MS = 2000, STORM_MS = 30000, CALM_MS = 15000 };

/* What all machines share, as nobody's clock is that of another. */
struct shared {
    struct gate over;
    int64_t good_until_ns; /* until then somebody believes that it holds, in true time; 0: nobody */
    uint64_t token;        /* the largest */
    int64_t served_ms[MACHINES][THREADS];
};

struct machine {
    struct world *w;
    struct shared *shared;
    unsigned number;
    lk_mutex_t mutex;
    lk_client_t *client;
};

struct user {
    struct machine *machine;
    struct luck luck;
    unsigned number;
};

static void enter(struct shared *shared, struct user *user)
{
    uint64_t token = 0;
    int64_t asked_ns = true_ns(), left_ms = 0;
    if (lk_mutex_token(&user->machine->mutex, &token) != 0 || lk_mutex_remaining(&user->machine->mutex, &left_ms) != 0)
        return; /* lost by now */
    int64_t until_ns = asked_ns + left_ms * 990000; /* a clock may be slow by a hundredth */
    if (true_ns() >= until_ns)
        return;
    must(shared->good_until_ns == 0 || shared->good_until_ns <= asked_ns, "two hold the mutex at once");
    must(token > shared->token, "token %llu follows %llu", (unsigned long long)token, (unsigned long long)shared->token);
    shared->token = token;
    shared->good_until_ns = until_ns;
    rest_ms(luck_about(&user->luck, 1, 500));
    if (shared->token == token)
        shared->good_until_ns = 0;
}

static int use(void *arg)
{
    struct user *user = arg;
    struct shared *shared = user->machine->shared;
    while (!gate_is_open(&shared->over)) {
        int code = lk_mutex_lockfor(&user->machine->mutex, luck_about(&user->luck, 10, 20000));
        if (code == 0) {
            shared->served_ms[user->machine->number][user->number] = true_ms();
            enter(shared, user);
            code = lk_mutex_unlock(&user->machine->mutex);
            must(code == 0 || code == ESTALE || code == EIO || code == ENOTCONN, "an unlock returned %d", code);
        } else {
            must(code == ETIMEDOUT || code == ENOTCONN || code == EIO, "a lock returned %d", code);
        }
        rest_ms(luck_about(&user->luck, 1, 500));
    }
    return 0;
}

static int run_machine(struct world *w, void *arg)
{
    (void)w;
    struct machine *machine = arg;
    struct user users[THREADS];
    struct worker workers[THREADS];
    machine_begins(machine->number);
    assert_lk(0, lk_client_open(&machine->client, world_url(machine->w, "lease=2s&command_timeout=500ms")));
    assert_lk(0, lk_mutex_init(&machine->mutex, machine->client, "orders", NULL));
    world_ready(w);
    for (unsigned i = 0; i < THREADS; i++) {
        users[i] = (struct user){ .machine = machine, .luck = luck_begin(), .number = i };
        worker_start(&workers[i], use, &users[i]);
    }
    for (unsigned i = 0; i < THREADS; i++)
        assert_that(worker_join(&workers[i]) == 0);
    assert_lk(0, lk_mutex_destroy(&machine->mutex));
    lk_client_close(machine->client);
    return 0;
}

static void workload(struct world *w)
{
    struct shared *shared = world_shared(w, sizeof *shared);
    struct luck luck = luck_begin();
    struct machine machines[MACHINES];
    pid_t pids[MACHINES];
    clocks_are_wrong(luck_onein(&luck, 2) ? 0 : 4000);
    for (unsigned i = 0; i < MACHINES; i++) {
        machines[i] = (struct machine){ .w = w, .shared = shared, .number = i };
        pids[i] = world_fork(w, run_machine, &machines[i]);
    }
    storm_begin();
    for (int64_t until_ms = true_ms() + STORM_MS; true_ms() < until_ms;) {
        rest_ms(luck_about(&luck, 50, 5000));
        if (luck_onein(&luck, 4) && fault_happens("scripts are forgotten"))
            world_redis(w, "SCRIPT FLUSH");
    }
    storm_end();
    rest_ms(TROUBLE_MS + CALM_MS);
    for (unsigned i = 0; i < MACHINES; i++)
        for (unsigned thread = 0; thread < THREADS; thread++)
            must(true_ms() - shared->served_ms[i][thread] < CALM_MS, "thread %u of machine %u was not served for %d ms",
                 thread, i, CALM_MS);
    gate_open(&shared->over);
    for (unsigned i = 0; i < MACHINES; i++)
        assert_int_equal(0, world_wait(w, pids[i]));
}

int main(void)
{
    return workload_run(NULL, workload);
}
