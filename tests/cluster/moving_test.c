/* SPDX-License-Identifier: MIT */
/*
 * moving_test.c - slots go from node to node in a loop, under clients that take and give back what is in them
 *
 * labels: threads
 * simulated: yes
 * seconds: 30
 * processors: 4
 */
#include "cluster.h"
#include "subject.h"

#include <stdatomic.h>
#include <string.h>

#define OPTIONS "lease=10s&command_timeout=1s&poll=200ms"
enum { NAMES = 3, WORKERS = 6, RUNS_MS = 8000, PATIENCE_MS = 8000 };

static atomic_int inside[NAMES], overlaps, disorders, taken, refused, unexpected;
static atomic_bool over;
static uint64_t last_token[NAMES]; /* under the mutex itself */

struct visitor {
    lk_mutex_t *mutexes[NAMES];
    struct worker worker;
};

static void visit(lk_mutex_t *mutex, int name)
{
    uint64_t token;
    int rc = lk_mutex_lockfor(mutex, PATIENCE_MS);
    if (rc != 0) {
        print_message("lock: %s\n", lk_errortext());
        atomic_fetch_add(rc == ETIMEDOUT || rc == ENOTCONN || rc == EIO ? &refused : &unexpected, 1);
        return;
    }
    atomic_fetch_add(&overlaps, atomic_fetch_add(&inside[name], 1) != 0);
    if (lk_mutex_token(mutex, &token) == 0) {
        atomic_fetch_add(&disorders, token <= last_token[name]);
        last_token[name] = token;
    }
    sleep_ms(3);
    atomic_fetch_sub(&inside[name], 1);
    atomic_fetch_add(&taken, 1);
    rc = lk_mutex_unlock(mutex);
    if (rc != 0)
        print_message("unlock: %s\n", lk_errortext());
    atomic_fetch_add(&unexpected, rc != 0 && rc != ENOTCONN && rc != EIO);
}

static int visit_all(void *arg)
{
    struct visitor *visitor = arg;
    for (int i = 0; !atomic_load(&over); i++)
        visit(visitor->mutexes[i % NAMES], i % NAMES);
    return 0;
}

/* Nobody is let in beside another one, and nearly everybody is let in. */
static void slots_move_under_load(struct world *w)
{
    static struct visitor visitors[WORKERS];
    struct cluster *c = cluster_begin(w, false);
    lk_client_t *clients[2] = { cluster_client(c, OPTIONS), cluster_client(c, OPTIONS) };
    const char *names[NAMES];
    int at[NAMES];
    for (int i = 0; i < NAMES; i++) {
        at[i] = i % CLUSTER_MASTERS;
        names[i] = cluster_name(c, at[i], "moving");
    }
    for (int i = 0; i < WORKERS; i++) {
        for (int n = 0; n < NAMES; n++)
            visitors[i].mutexes[n] = world_mutex(w, clients[i % 2], names[n], NULL);
        worker_start(&visitors[i].worker, visit_all, &visitors[i]);
    }
    int moves = 0;
    for (int64_t until_ms = now_ms() + RUNS_MS; now_ms() < until_ms; moves++) {
        int n = moves % NAMES, to = (at[n] + 1) % CLUSTER_MASTERS;
        cluster_move(c, cluster_slot(c, names[n]), at[n], to);
        at[n] = to;
        sleep_ms(50);
    }
    atomic_store(&over, true);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(0, worker_join(&visitors[i].worker));
    print_message("             %d moves, %d taken, %d refused, %d overlaps, %d disorders\n", moves,
                  atomic_load(&taken), atomic_load(&refused), atomic_load(&overlaps), atomic_load(&disorders));
    assert_int_equal(0, atomic_load(&overlaps));
    assert_int_equal(0, atomic_load(&disorders));
    assert_int_equal(0, atomic_load(&unexpected));
    assert_true(moves >= 3 && atomic_load(&taken) > 100);
    assert_true(atomic_load(&refused) * 1000 <= atomic_load(&taken));
}

int main(void)
{
    return world_run(slots_move_under_load);
}
