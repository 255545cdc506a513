/* SPDX-License-Identifier: MIT */
/*
 * ticket_counter.c - who comes first is served first, whatever process it is
 *
 * Each morning the clerk has the counter to himself while customers come in, one after the other and in
 * another order each day. Then he opens. A fair mutex serves them in the order in which they came. With
 * --unsafe there is no queue: when the counter opens, all rush to it.
 */
#include "common.h"

#include <latchkey/latchkey.h>

#include <stdio.h>

enum { CUSTOMERS_MAX = 256 };

struct office {
    int may_come[CUSTOMERS_MAX]; /* day on which that customer is to come next */
    int open_day;                /* for --unsafe: the day on which the counter has opened */
    int turns;                   /* taken today */
    int served;                  /* customers, today */
    int order[CUSTOMERS_MAX];    /* in which they were served today */
    long in_order, out_of_order; /* on all days */
    int closed;                  /* 1: something failed, go home */
};

static struct office *office;

static const lk_mutexattr_t fair = { .size = sizeof fair, .fair = 1 };
static lk_mutex_t counter = LK_MUTEX_INITIALIZER_ATTR("samples:ticket_counter", &fair);

static int complain(void)
{
    fprintf(stderr, "ticket_counter: %s\n", lk_errortext());
    __atomic_store_n(&office->closed, 1, __ATOMIC_SEQ_CST);
    return 1;
}

/* Wait until a number that others write is `value`; false if the office closed. */
static bool wait_until(const int *number, int value)
{
    while (__atomic_load_n(number, __ATOMIC_SEQ_CST) != value) {
        if (__atomic_load_n(&office->closed, __ATOMIC_SEQ_CST) != 0)
            return false;
        pause_ms(1);
    }
    return true;
}

static int customer(const struct options *options)
{
    int me = options->worker - 1;
    for (int day = 1; day <= options->rounds; day++) {
        if (!wait_until(&office->may_come[me], day) || (options->unsafe && !wait_until(&office->open_day, day)))
            return 1;
        if (!options->unsafe && lk_mutex_lock(&counter) != 0)
            return complain();
        office->order[__atomic_fetch_add(&office->turns, 1, __ATOMIC_SEQ_CST)] = me;
        work_a_little();
        __atomic_fetch_add(&office->served, 1, __ATOMIC_SEQ_CST);
        if (!options->unsafe && lk_mutex_unlock(&counter) != 0)
            return complain();
        round_done();
    }
    return 0;
}

static void shuffle(int *numbers, int count)
{
    for (int i = count - 1; i > 0; i--) {
        int k = random_below(i + 1), number = numbers[i];
        numbers[i] = numbers[k];
        numbers[k] = number;
    }
}

/* Wait until so many customers queue. */
static int queue_reaches(unsigned length)
{
    lk_mutexinfo_t info = LK_MUTEXINFO_INIT;
    int rc;
    while ((rc = lk_mutex_info(&counter, &info)) == 0 && info.waiters < length && office->closed == 0)
        pause_ms(1);
    return rc;
}

static int morning(const struct options *options, const int *arrival, int day)
{
    int customers = options->workers - 1, rc = options->unsafe ? 0 : lk_mutex_lock(&counter);
    for (int i = 0; rc == 0 && i < customers; i++) {
        __atomic_store_n(&office->may_come[arrival[i]], day, __ATOMIC_SEQ_CST);
        rc = options->unsafe ? 0 : queue_reaches((unsigned)i + 1);
    }
    __atomic_store_n(&office->open_day, day, __ATOMIC_SEQ_CST);
    return rc != 0 || options->unsafe ? rc : lk_mutex_unlock(&counter);
}

static int clerk(const struct options *options)
{
    int customers = options->workers - 1, arrival[CUSTOMERS_MAX];
    for (int i = 0; i < customers; i++)
        arrival[i] = i;
    for (int day = 1; day <= options->rounds; day++) {
        shuffle(arrival, customers);
        __atomic_store_n(&office->turns, 0, __ATOMIC_SEQ_CST);
        __atomic_store_n(&office->served, 0, __ATOMIC_SEQ_CST);
        if (morning(options, arrival, day) != 0)
            return complain();
        if (!wait_until(&office->served, customers))
            return 1;
        for (int i = 0; i < customers; i++)
            *(office->order[i] == arrival[i] ? &office->in_order : &office->out_of_order) += 1;
    }
    return 0;
}

static int take_part(const struct options *options)
{
    return options->worker == 0 ? clerk(options) : customer(options);
}

int main(int argc, char *argv[])
{
    struct options options = { .workers = 9, .rounds = 50, .unsafe_means = "leave the queue out" };
    options_read(&options, argc, argv, "Customers are served in the order in which they came. Rounds: days.");
    if (options.workers < 2)
        options.workers = 2;
    if (options.workers > CUSTOMERS_MAX)
        options.workers = CUSTOMERS_MAX;
    office = shared_memory(sizeof *office);

    long total = (long)(options.workers - 1) * options.rounds;
    printf("a clerk and %d customers, %d days, %s\n", options.workers - 1, options.rounds,
           options.unsafe ? "no queue" : "in line for a fair mutex");
    int failed = workers_run(&options, total, take_part);
    return verdict("the order of service is the order of arrival", failed == 0 && office->in_order == total,
                   "%ld of %ld served in their turn, %ld out of turn", office->in_order, total, office->out_of_order);
}
