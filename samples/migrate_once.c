/* SPDX-License-Identifier: MIT */
/*
 * migrate_once.c - a migration that runs once, though the worker that runs it is killed
 *
 * Each worker comes up, has each of several migrations done, and goes to work. A migration takes three steps; the first
 * worker that begins one dies after the second step. The next one begins it anew, and its steps carry the token of its run:
 * the database refuses steps of an older run. With --unsafe each worker that finds it undone migrates.
 */
#include "common.h"

#include <latchkey/latchkey.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { STEPS = 3 };

/* The database of one migration. */
struct database {
    unsigned long token; /* of the last run that wrote to it */
    int begun;           /* runs */
    int step;            /* of the run that has the token */
    int completed;       /* runs that made all steps */
    int unready;         /* workers that went on before one had */
};

/* So long a runner that was killed is waited for. */
static const lk_onceattr_t attr = { .size = sizeof attr, .lease_ms = 1000 };

static struct database *databases;

static int begin(struct database *database, unsigned long token)
{
    if (token != 0 && token <= __atomic_load_n(&database->token, __ATOMIC_SEQ_CST))
        return -1; /* a newer run has begun */
    __atomic_store_n(&database->token, token, __ATOMIC_SEQ_CST);
    __atomic_store_n(&database->step, 0, __ATOMIC_SEQ_CST);
    return __atomic_add_fetch(&database->begun, 1, __ATOMIC_SEQ_CST);
}

static int migrate(struct database *database, unsigned long token)
{
    int run = begin(database, token);
    for (int step = 1; run > 0 && step <= STEPS; step++) {
        pause_ms(5);
        if (token != __atomic_load_n(&database->token, __ATOMIC_SEQ_CST))
            return -1;
        __atomic_store_n(&database->step, step, __ATOMIC_SEQ_CST);
        if (run == 1 && step == 2)
            kill(getpid(), SIGKILL);
    }
    __atomic_add_fetch(&database->completed, 1, __ATOMIC_SEQ_CST);
    return run > 0 ? 0 : -1;
}

/* 0: it is done, by whomever. */
static int migrate_once(lk_once_t *once, struct database *database)
{
    uint64_t token;
    int rc = lk_once_begin(once, 60000);
    if (rc == EALREADY)
        return 0;
    if (rc == 0)
        rc = lk_once_token(once, &token);
    if (rc == 0 && migrate(database, (unsigned long)token) == 0)
        return lk_once_end(once, "migrated");
    lk_once_fail(once);
    return rc != 0 ? rc : EIO;
}

static int migrate_unsafe(struct database *database)
{
    if (__atomic_load_n(&database->completed, __ATOMIC_SEQ_CST) == 0)
        migrate(database, 0);
    return 0;
}

static int come_up(const struct options *options)
{
    for (int i = 0; i < options->rounds; i++) {
        char name[48];
        snprintf(name, sizeof name, "samples:migration%d", i);
        lk_once_t once = LK_ONCE_INITIALIZER_ATTR(name, &attr);
        if ((options->unsafe ? migrate_unsafe(&databases[i]) : migrate_once(&once, &databases[i])) != 0) {
            fprintf(stderr, "migrate_once: %s\n", lk_errortext());
            return 1;
        }
        if (__atomic_load_n(&databases[i].completed, __ATOMIC_SEQ_CST) == 0)
            __atomic_add_fetch(&databases[i].unready, 1, __ATOMIC_SEQ_CST);
        lk_once_destroy(&once);
        round_done();
    }
    return 0;
}

/* An earlier run of this sample has done them. */
static int forget(const struct options *options)
{
    int rc = 0;
    for (int i = 0; i < options->rounds && (rc == 0 || rc == ENOENT); i++) {
        char name[48];
        snprintf(name, sizeof name, "samples:migration%d", i);
        lk_once_t once = LK_ONCE_INITIALIZER_ATTR(name, &attr);
        rc = lk_once_reset(&once);
        lk_once_destroy(&once);
    }
    return rc == 0 || rc == ENOENT ? 0 : 1;
}

int main(int argc, char *argv[])
{
    struct options options = { .workers = 8, .rounds = 3, .unsafe_means = "look whether it is done, and do it if not" };
    options_read(&options, argc, argv,
                 "Workers have migrations done, whose first runner is killed. Rounds: migrations.");
    if (options.rounds > options.workers - 1)
        options.rounds = options.workers - 1; /* each kills one */
    databases = shared_memory((size_t)options.rounds * sizeof *databases);

    printf("%d workers, %d migrations, %s\n", options.workers, options.rounds,
           options.unsafe ? "each worker by itself" : "once for all");
    int failed = options.unsafe ? 0 : forget(&options);
    if (failed == 0)
        failed = workers_run(&options, (long)options.workers * options.rounds, come_up);

    int completed = 0, unready = 0;
    for (int i = 0; i < options.rounds; i++) {
        completed += databases[i].completed;
        unready += databases[i].unready;
    }
    return verdict("each migration completes once, before anybody goes on",
                   failed == options.rounds && completed == options.rounds && unready == 0,
                   "%d of %d completed, %d killed on the way, %d went on before", completed, options.rounds, failed,
                   unready);
}
