/* SPDX-License-Identifier: MIT */
/*
 * duplicate_orders.c - impatient users click again and again, and each gets one order
 *
 * Every click is a request of its own, and the web servers that get them know nothing of each other.
 * Each looks whether the user has an order, works, and saves one. A mutex per user makes look and save
 * one step; different users do not wait for each other. With --unsafe two servers look at once.
 */
#include "common.h"

#include <latchkey/latchkey.h>

#include <stdio.h>

struct user {
    int placed;  /* orders */
    int refused; /* clicks answered with "you have ordered already" */
};

static struct user *users; /* stands for a table of a database: one row for each user */

static void order(struct user *user)
{
    int before = __atomic_load_n(&user->placed, __ATOMIC_RELAXED);
    if (before > 0) {
        __atomic_fetch_add(&user->refused, 1, __ATOMIC_RELAXED);
        return;
    }
    work_a_little();
    __atomic_fetch_add(&user->placed, 1, __ATOMIC_RELAXED);
}

/* Placing an order takes milliseconds: a lease of ten seconds needs no renewal. */
static const lk_mutexattr_t short_work = { .size = sizeof short_work, .fixed = 1, .lease_ms = 10000 };

/* There may be millions of users: a mutex lives as long as the request. */
static int order_alone(struct user *user, int number)
{
    lk_mutex_t mutex;
    char name[64];
    snprintf(name, sizeof name, "samples:orders:user%d", number);

    int rc = lk_mutex_init(&mutex, NULL, name, &short_work);
    if (rc != 0)
        return rc;
    rc = lk_mutex_lockfor(&mutex, 5000); /* longer, and the user is told to come back later */
    if (rc == 0) {
        order(user);
        rc = lk_mutex_unlock(&mutex);
    }
    lk_mutex_destroy(&mutex);
    return rc;
}

/* One web server: it gets a click of each user. All get them in the same order, as bursts have it. */
static int serve(const struct options *options)
{
    for (int i = 0; i < options->rounds; i++) {
        if (options->unsafe) {
            order(&users[i]);
        } else if (order_alone(&users[i], i) != 0) {
            fprintf(stderr, "duplicate_orders: %s\n", lk_errortext());
            return 1;
        }
        round_done();
    }
    return 0;
}

int main(int argc, char *argv[])
{
    struct options options = { .workers = 8, .rounds = 400 };
    options_read(&options, argc, argv, "Users order in a burst of clicks; each gets one order. Rounds: users.");
    users = shared_memory((size_t)options.rounds * sizeof *users);

    long clicks = (long)options.workers * options.rounds;
    printf("%d servers get %ld clicks of %d users, %s\n", options.workers, clicks, options.rounds,
           options.unsafe ? "without a lock" : "each under the mutex of its user");
    int failed = workers_run(&options, clicks, serve);

    long orders = 0, refused = 0, wrong = 0;
    for (int i = 0; i < options.rounds; i++) {
        orders += users[i].placed;
        refused += users[i].refused;
        wrong += users[i].placed != 1;
    }
    return verdict("each user has one order", failed == 0 && wrong == 0 && orders + refused == clicks,
                   "%d users, %ld orders, %ld clicks refused, %ld users with none or several", options.rounds, orders,
                   refused, wrong);
}
