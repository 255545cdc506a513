/* SPDX-License-Identifier: MIT */
/*
 * config_reload.c - many read a configuration while one rewrites it, and nobody reads half of each
 *
 * The configuration is a table of settings. Each carries the version it belongs to, and a reader that sees
 * two versions has read nonsense. Under the read lock readers do not disturb each other, under the write
 * lock the writer is alone; and although the readers never pause, it does not have to wait for long, for
 * those that come later queue behind it. With --unsafe there is no lock; --order shows what the orders of the
 * lock make of it.
 */
#include "common.h"

#include <latchkey/latchkey.h>

#include <stdio.h>
#include <string.h>

enum { SETTINGS = 8, LONGEST_WAIT_MS = 2000 };

struct config {
    long version[SETTINGS]; /* the settings themselves do not matter here */
    int written;            /* 1: the writer has ended */
    int inside;             /* readers */
    long reads, torn, rewrites;
    long met;                  /* sum over all reads: readers that were in half-way, itself among them */
    long long longest_wait_us; /* of the writer, for the lock */
};

static struct config *config;

static lk_rwlockattr_t attr = LK_RWLOCKATTR_INIT;
static lk_rwlock_t lock = LK_RWLOCK_INITIALIZER_ATTR("samples:config", &attr);

/* Returns the LK_RWLOCK_PREFER_... of that name; -1: there is none. */
static int order_of(const char *name)
{
    static const char *const names[] = { [LK_RWLOCK_PREFER_FAIR] = "fair",
                                         [LK_RWLOCK_PREFER_READER] = "reader",
                                         [LK_RWLOCK_PREFER_WRITER] = "writer",
                                         [LK_RWLOCK_PREFER_PHASE_FAIR] = "phase-fair" };
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return -1;
}

static int complain(void)
{
    fprintf(stderr, "config_reload: %s\n", lk_errortext());
    return 1;
}

static void read_all(void)
{
    long first = __atomic_load_n(&config->version[0], __ATOMIC_SEQ_CST), others = 0;
    __atomic_fetch_add(&config->inside, 1, __ATOMIC_RELAXED);
    for (int i = 1; i < SETTINGS; i++) {
        work_a_little();
        if (i == SETTINGS / 2)
            __atomic_fetch_add(&config->met, __atomic_load_n(&config->inside, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
        others += __atomic_load_n(&config->version[i], __ATOMIC_SEQ_CST) != first;
    }
    __atomic_fetch_sub(&config->inside, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&config->reads, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&config->torn, others > 0, __ATOMIC_RELAXED);
}

static int reader(const struct options *options)
{
    while (__atomic_load_n(&config->written, __ATOMIC_RELAXED) == 0) {
        if (!options->unsafe && lk_rwlock_rdlock(&lock) != 0)
            return complain();
        read_all();
        if (!options->unsafe && lk_rwlock_unlock(&lock) != 0)
            return complain();
    }
    return 0;
}

static void rewrite_all(void)
{
    for (int i = 0; i < SETTINGS; i++) {
        __atomic_fetch_add(&config->version[i], 1, __ATOMIC_SEQ_CST);
        work_a_little();
    }
    config->rewrites++;
}

static int writer(const struct options *options)
{
    for (int i = 0; i < options->rounds; i++) {
        pause_ms(random_below(20));
        long long asked_us = now_us();
        if (!options->unsafe && lk_rwlock_wrlock(&lock) != 0)
            return complain();
        long long waited_us = now_us() - asked_us;
        if (waited_us > config->longest_wait_us)
            config->longest_wait_us = waited_us;
        rewrite_all();
        if (!options->unsafe && lk_rwlock_unlock(&lock) != 0)
            return complain();
        round_done();
    }
    return 0;
}

/* Worker 0 writes, the others read for as long as it does. */
static int take_part(const struct options *options)
{
    if (options->worker > 0)
        return reader(options);
    int rc = writer(options);
    __atomic_store_n(&config->written, 1, __ATOMIC_RELAXED);
    return rc;
}

int main(int argc, char *argv[])
{
    struct options options = { .workers = 8, .rounds = 100, .order = "fair" };
    options_read(
        &options, argc, argv,
        "One process rewrites what the others read. Rounds: rewrites. Orders: fair, phase-fair, reader, writer.");
    if (options.workers < 2)
        options.workers = 2;
    attr.prefer = order_of(options.order);
    if (attr.prefer < 0) {
        fprintf(stderr, "There is no order %s.\n", options.order);
        return 2;
    }
    config = shared_memory(sizeof *config);

    printf("%d readers, %d rewrites, %s\n", options.workers - 1, options.rounds,
           options.unsafe ? "without a lock" : "under a read-write lock");
    long long began_us = now_us();
    int failed = workers_run(&options, options.rounds, take_part);
    double seconds = (double)(now_us() - began_us) / 1e6;

    bool held = failed == 0 && config->torn == 0 && config->reads > 0 && config->rewrites == options.rounds &&
                config->longest_wait_us < LONGEST_WAIT_MS * 1000;
    return verdict("each reader sees one version, and the writer is not starved", held,
                   "%ld reads, %ld of several versions, %ld of %d rewrites, the writer waited %.1f ms at most, "
                   "%.1f readers in at once, %.0f reads and %.0f rewrites a second",
                   config->reads, config->torn, config->rewrites, options.rounds,
                   (double)config->longest_wait_us / 1000,
                   (double)config->met / (double)(config->reads + (config->reads == 0)),
                   (double)config->reads / seconds, (double)config->rewrites / seconds);
}
