/* SPDX-License-Identifier: MIT */
/*
 * failover.c - processes count under one mutex while the master is killed; what it granted last nobody else knows
 *
 * Sentinels make a replica the new master, and the same mutex goes on there: the URL names them instead of a server. But a
 * replica gets what happens a moment later than the master, so a grant of that moment is lost with it. Its holder still
 * counts when the new master grants the mutex to somebody else. No lock can prevent that either: it is the counter that must
 * refuse, by the fencing token. With --unsafe it ignores the token, and an increment is lost.
 */
#include "servers.h"

#include "../common.h"

#include <latchkey/latchkey.h>

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOW_MS = 15000, LOOK_MS = 10 };

/* The resource. It hears the token of who reads, too: from then on who had the mutex before writes no more. */
struct counter {
    atomic_flag busy; /* as a database makes one step of each call */
    uint64_t token;
    long value;
};

static struct shared {
    struct counter counter;
    atomic_int cut;  /* replicas hear nothing any more */
    atomic_int slow; /* somebody holds what only the dead master knows, and takes its time */
    atomic_int reads, written, refused, told, failed;
} * shared;

static lk_mutex_t mutex = LK_MUTEX_INITIALIZER("samples:failover");

static bool ignore_token;

/* ESTALE: somebody came after you. */
static int counter_use(uint64_t token, long *read, const long *write)
{
    struct counter *c = &shared->counter;
    while (atomic_flag_test_and_set(&c->busy))
        continue;
    int rc = token < c->token && !ignore_token ? ESTALE : 0;
    if (token > c->token)
        c->token = token;
    if (rc == 0 && read != NULL)
        *read = c->value;
    if (rc == 0 && write != NULL)
        c->value = *write;
    atomic_flag_clear(&c->busy);
    return rc;
}

/* The one whose grant is lost is the slowest of all: it is at work until somebody else has read. */
static void work(bool unknown)
{
    work_a_little();
    if (!unknown || atomic_exchange(&shared->slow, 1) != 0)
        return;
    int reads = atomic_load(&shared->reads);
    for (int ms = 0; ms < SLOW_MS && atomic_load(&shared->reads) == reads; ms += LOOK_MS)
        pause_ms(LOOK_MS);
}

/* With the mutex held. `unknown`: no replica heard of that. */
static int increment(bool unknown)
{
    uint64_t token;
    long value;
    int rc = lk_mutex_token(&mutex, &token);
    if (rc == 0)
        rc = counter_use(token, &value, NULL);
    if (rc != 0)
        return rc;
    atomic_fetch_add(&shared->reads, 1);
    work(unknown);
    value++;
    rc = counter_use(token, NULL, &value);
    atomic_fetch_add(rc == 0 ? &shared->written : &shared->refused, 1);
    return rc;
}

/* An increment that was refused, or that came to no mutex, is tried again. */
static int count_one(void)
{
    bool unknown = atomic_load(&shared->cut) != 0;
    int rc = lk_mutex_lock(&mutex);
    if (rc != 0) { /* there is no master just now */
        atomic_fetch_add(&shared->failed, 1);
        pause_ms(LOOK_MS);
        return rc;
    }
    rc = increment(unknown);
    if (lk_mutex_unlock(&mutex) == ESTALE)
        atomic_fetch_add(&shared->told, 1);
    return rc;
}

static int count(const struct options *options)
{
    ignore_token = options->unsafe;
    lk_addlog(NULL, LK_LOG_ERROR, NULL, NULL); /* that the master is gone is no news here */
    for (int i = 0; i < options->rounds; i++) {
        while (i == options->rounds / 2 && atomic_load(&shared->cut) == 0)
            pause_ms(1); /* some increments are left for the new master */
        while (count_one() != 0)
            continue;
        round_done();
    }
    return 0;
}

/* After a third: the replicas fall behind, the master grants the mutex once more, and dies. */
static void kill_master(long total)
{
    while (atomic_load(&shared->written) < total / 3)
        pause_ms(1);
    servers_cutreplicas();
    atomic_store(&shared->cut, 1);
    for (int ms = 0; ms < SLOW_MS && atomic_load(&shared->slow) == 0; ms++)
        pause_ms(1);
    servers_killmaster();
}

int main(int argc, char *argv[])
{
    struct options options = { .workers = 6,
                               .rounds = 200,
                               .unsafe_means = "let the counter ignore the fencing token" };
    options_read(&options, argc, argv,
                 "Processes count under one mutex while its master is killed, by servers of their own.");
    printf("%d processes, %d increments each, a master that is killed, tokens %s\n", options.workers, options.rounds,
           options.unsafe ? "ignored" : "compared");
    fflush(stdout); /* the servers take a moment */
    shared = shared_memory(sizeof *shared);
    servers_start();
    setenv("LATCHKEY_URL", servers_url(), 1);
    long total = (long)options.workers * options.rounds;
    pid_t killer = child_start();
    if (killer == 0) {
        kill_master(total);
        _exit(0);
    }
    int failed = workers_run(&options, total, count);
    waitpid(killer, NULL, 0);
    servers_end();

    long value = shared->counter.value;
    bool held = failed == 0 && value == shared->written && value == total && shared->slow != 0 && shared->refused > 0;
    return verdict("no increment is lost with a master", held,
                   "counted %ld of %d, %d late writes refused, %d told that they lost it, %d of %d workers failed",
                   value, shared->written, shared->refused, shared->told, failed, options.workers);
}
