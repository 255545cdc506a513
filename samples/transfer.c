/* SPDX-License-Identifier: MIT */
/*
 * transfer.c - money goes to and fro between accounts, each with a mutex of its own
 *
 * A transfer needs both accounts. With lk_multi_lock() it takes both or none, in an order that all processes have, whoever
 * names which one first. With --unsafe it takes the payer's and then the payee's, as it comes: two transfers in opposite
 * directions each have one and wait for the other for ever. Here they give up after a second and say so.
 */
#include "common.h"

#include <latchkey/latchkey.h>

#include <errno.h>
#include <stdio.h>

enum { ACCOUNTS = 6, START = 1000, TRANSFER_MS = 20000, STUCK_MS = 1000 };

static long *balances; /* stand for a database */

static lk_mutex_t accounts[ACCOUNTS];

static int accounts_open(void)
{
    int rc = 0;
    for (int i = 0; i < ACCOUNTS && rc == 0; i++) {
        char name[40];
        snprintf(name, sizeof name, "samples:transfer:%d", i);
        rc = lk_mutex_init(&accounts[i], NULL, name, NULL);
    }
    return rc;
}

static void move(int from, int to, long amount)
{
    long payer = balances[from], payee = balances[to];
    work_a_little();
    balances[from] = payer - amount;
    balances[to] = payee + amount;
}

static int transfer(int from, int to, long amount)
{
    lk_multi_t both;
    int rc = lk_multi_init(&both);
    if (rc != 0)
        return rc;
    rc = lk_multi_addmutex(&both, &accounts[from]);
    if (rc == 0)
        rc = lk_multi_addmutex(&both, &accounts[to]);
    if (rc == 0)
        rc = lk_multi_lockfor(&both, TRANSFER_MS);
    if (rc == 0) {
        move(from, to, amount);
        rc = lk_multi_unlock(&both); /* ESTALE: a lease was lost, somebody else may have moved money meanwhile */
    }
    lk_multi_destroy(&both);
    return rc;
}

/* The payer first, whichever that is. */
static int transfer_unsafe(int from, int to, long amount)
{
    int rc = lk_mutex_lock(&accounts[from]);
    if (rc != 0)
        return rc;
    work_a_little();
    rc = lk_mutex_lockfor(&accounts[to], STUCK_MS); /* without a limit: for ever */
    if (rc == 0) {
        move(from, to, amount);
        rc = lk_mutex_unlock(&accounts[to]);
    }
    int payer = lk_mutex_unlock(&accounts[from]);
    return rc != 0 ? rc : payer;
}

/* Runs in each worker process. Neighbours pay to and fro. */
static int pay(const struct options *options)
{
    int rc = accounts_open();
    for (int i = 0; i < options->rounds && rc == 0; i++) {
        int low = random_below(ACCOUNTS - 1), up = (options->worker + i) % 2;
        int from = low + up, to = low + !up;
        rc = options->unsafe ? transfer_unsafe(from, to, 1 + i % 7) : transfer(from, to, 1 + i % 7);
        if (rc == 0)
            round_done();
    }
    if (rc != 0)
        fprintf(stderr, "transfer: %s\n", lk_errortext());
    return rc != 0;
}

int main(int argc, char *argv[])
{
    struct options options = { .workers = 8,
                               .rounds = 100,
                               .unsafe_means = "lock one account after the other, in no order" };
    options_read(&options, argc, argv, "Transfers between accounts take the mutexes of both at once.");
    balances = shared_memory(ACCOUNTS * sizeof *balances);
    for (int i = 0; i < ACCOUNTS; i++)
        balances[i] = START;

    long total = (long)options.workers * options.rounds, sum = 0;
    printf("%d processes, %d transfers each between %d accounts, %s\n", options.workers, options.rounds, ACCOUNTS,
           options.unsafe ? "one lock after the other" : "both locks at once");
    int failed = workers_run(&options, total, pay);
    for (int i = 0; i < ACCOUNTS; i++)
        sum += balances[i];
    return verdict("each transfer comes to its end, and no money is lost",
                   failed == 0 && rounds_done() == total && sum == (long)ACCOUNTS * START,
                   "%ld of %ld transfers, %ld of %ld left, %d of %d workers failed", rounds_done(), total, sum,
                   (long)ACCOUNTS * START, failed, options.workers);
}
