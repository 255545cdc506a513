/* SPDX-License-Identifier: MIT */
/*
 * flash_sale.c - twice as many buyers as pieces, and not one piece more is sold
 *
 * A sale reads the stock, takes payment and writes the stock. Under one mutex all sales queue up behind
 * each other. With --stripes N the stock lies on N shelves, each with a mutex of its own, and a till takes
 * from any that is free: the same sale is held twice, on one shelf and on N, and the rates are compared.
 * With --unsafe the shelves have no mutex.
 *
 * A number that only goes down needs no lock at all where one atomic step can check and lower it: see
 * lk_sem_trywait(). A lock is for sales that do more than that, as this one does.
 */
#include "common.h"

#include <latchkey/latchkey.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { SHELVES_MAX = 64, PAYMENT_MS = 1 };

struct shop {
    unsigned shelves;
    long sold;
    long stock[SHELVES_MAX];
};

static struct shop *shop; /* stands for a database */

static lk_stripes_t shelves; /* a mutex for each; those of the default client work in each child of a fork */

/* 0: sold; ENOENT: the shelf is empty. */
static int sell(long *stock)
{
    long left = __atomic_load_n(stock, __ATOMIC_RELAXED);
    if (left <= 0)
        return ENOENT;
    pause_ms(PAYMENT_MS);
    __atomic_store_n(stock, left - 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&shop->sold, 1, __ATOMIC_RELAXED);
    return 0;
}

/* A look from afar saves a lock. */
static bool is_empty(unsigned shelf)
{
    return __atomic_load_n(&shop->stock[shelf], __ATOMIC_RELAXED) <= 0;
}

/* Go on from `shelf` to one that is not empty; false: all are. */
static bool find_stock(unsigned *shelf)
{
    for (unsigned k = 0; k < shop->shelves; k++) {
        unsigned at = (*shelf + k) % shop->shelves;
        if (!is_empty(at)) {
            *shelf = at;
            return true;
        }
    }
    return false;
}

/* Have a shelf for oneself: any that is free, best `shelf`, and if none is, wait for that one. */
static int take(unsigned *shelf)
{
    unsigned wanted = *shelf;
    int rc = lk_stripes_trylockany(&shelves, wanted, shelf);
    if (rc == 0 && *shelf != wanted && is_empty(*shelf)) { /* free because nobody wants it */
        rc = lk_mutex_unlock(lk_stripes_at(&shelves, *shelf));
        if (rc == 0)
            rc = EBUSY;
    }
    if (rc != EBUSY)
        return rc;
    *shelf = wanted;
    return lk_mutex_lock(lk_stripes_at(&shelves, wanted));
}

static int sell_from(unsigned *shelf, bool unsafe)
{
    if (unsafe)
        return sell(&shop->stock[*shelf]);
    int rc = take(shelf);
    if (rc != 0)
        return rc;
    int result = sell(&shop->stock[*shelf]);
    rc = lk_mutex_unlock(lk_stripes_at(&shelves, *shelf)); /* after the stock was saved, not before */
    return rc != 0 ? rc : result;
}

/* A till: its buyers begin at the shelf of the last one, so tills that were in each other's way keep apart. */
static int till(const struct options *options)
{
    unsigned shelf = (unsigned)random_below((int)shop->shelves);
    for (int i = 0; i < options->rounds; i++) {
        int rc = ENOENT;
        while (rc == ENOENT && find_stock(&shelf))
            rc = sell_from(&shelf, options->unsafe);
        if (rc != 0 && rc != ENOENT) {
            fprintf(stderr, "flash_sale: %s\n", lk_errortext());
            return 1;
        }
        round_done();
    }
    return 0;
}

/* Hold one sale; returns how many tills failed. */
static int sale(const struct options *options, int count, long stock, double *rate)
{
    char name[64];
    snprintf(name, sizeof name, "samples:flash_sale:%d", count); /* all who use a name use it with one number */
    if (lk_stripes_init(&shelves, NULL, name, (unsigned)count) != 0) {
        fprintf(stderr, "flash_sale: %s\n", lk_errortext());
        return 1;
    }
    memset(shop, 0, sizeof *shop);
    shop->shelves = (unsigned)count;
    for (long i = 0; i < stock; i++)
        shop->stock[i % count]++;
    printf("%d tills, %ld pieces on %d shelves, %s\n", options->workers, stock, count,
           options->unsafe ? "without locks" : "each with its mutex");
    long long began = now_us();
    int failed = workers_run(options, (long)options->workers * options->rounds, till);
    *rate = (double)shop->sold * 1e6 / (double)(now_us() - began);
    printf("  sold %ld, %.0f a second\n", shop->sold, *rate);
    return failed + (lk_stripes_destroy(&shelves) != 0);
}

int main(int argc, char *argv[])
{
    struct options options = { .workers = 8, .rounds = 200, .stripes = 1 };
    options_read(&options, argc, argv, "Buyers empty a stock under mutexes; never is more sold than there was.");
    if (options.stripes > SHELVES_MAX)
        options.stripes = SHELVES_MAX;

    double single = 0, striped = 0;
    shop = shared_memory(sizeof *shop);
    long stock = (long)options.workers * options.rounds / 2;
    stock += stock == 0;
    int failed = sale(&options, 1, stock, &single);
    long sold = shop->sold;
    bool held = failed == 0 && sold == stock;
    if (options.stripes == 1)
        return verdict("what is sold was in stock", held, "sold %ld of %ld, %.0f a second", sold, stock, single);

    failed += sale(&options, options.stripes, stock, &striped);
    held = held && failed == 0 && shop->sold == stock;
    return verdict("what is sold was in stock", held,
                   "sold %ld and %ld of %ld; %.0f a second with 1 lock, %.0f with %d: %.1f times as many", sold,
                   shop->sold, stock, single, striped, options.stripes, striped / single);
}
