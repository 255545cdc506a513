/* SPDX-License-Identifier: MIT */
/*
 * uncontended.c - what a lock and an unlock cost when nobody else wants it
 *
 * One thread: the median of a pair, in units of two bare round trips measured beside it. Many threads,
 * each with a mutex of its own on one client: pairs per second, against bare round trips of as many
 * threads with a connection each (two of them count as one pair).
 */
#include "raw.h"

#include <latchkey/latchkey.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 5, SAMPLES = 4000, PAIRS = 24000, THREADS_MAX = 128 };

static const char *path;
static lk_client_t *client;
static int pairs_each;

static void one_thread(lk_mutex_t *m, int raw)
{
    static int64_t bare[SAMPLES], pair[SAMPLES];
    for (int round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < SAMPLES; i++) { /* interleaved: both see the same noise */
            int64_t began = now_ns();
            raw_ping(raw);
            bare[i] = now_ns() - began;
            began = now_ns();
            if (lk_mutex_lock(m) != 0 || lk_mutex_unlock(m) != 0)
                fail("lock, unlock");
            pair[i] = now_ns() - began;
        }
        double bare_us = median_us(bare, SAMPLES), pair_us = median_us(pair, SAMPLES);
        printf("  round %d: round trip %5.1f us, pair %6.1f us, pair / 2 round trips %.2f\n", round, bare_us, pair_us,
               pair_us / (2 * bare_us));
    }
}

static void *lock_own(void *arg)
{
    lk_mutex_t own;
    char name[32];
    snprintf(name, sizeof name, "bench-%d", *(int *)arg);
    if (lk_mutex_init(&own, client, name, NULL) != 0)
        fail("init");
    for (int i = 0; i < pairs_each; i++)
        if (lk_mutex_lock(&own) != 0 || lk_mutex_unlock(&own) != 0)
            fail("lock, unlock");
    lk_mutex_destroy(&own);
    return NULL;
}

static void *ping_own(void *arg)
{
    int raw = raw_connect(path);
    (void)arg;
    for (int i = 0; i < 2 * pairs_each; i++)
        raw_ping(raw);
    return NULL;
}

static double pairs_per_second(int threads, void *(*work)(void *))
{
    pthread_t ids[THREADS_MAX];
    int numbers[THREADS_MAX];
    int64_t began = now_ns();
    for (int i = 0; i < threads; i++) {
        numbers[i] = i;
        if (pthread_create(&ids[i], NULL, work, &numbers[i]) != 0)
            fail("thread");
    }
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    return (double)threads * pairs_each / ((double)(now_ns() - began) / 1e9);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void many_threads(int threads)
{
    double ours[ROUNDS], bare[ROUNDS];
    pairs_each = PAIRS / threads;
    for (int round = 0; round < ROUNDS; round++) {
        bare[round] = pairs_per_second(threads, ping_own);
        ours[round] = pairs_per_second(threads, lock_own);
    }
    qsort(ours, ROUNDS, sizeof *ours, compare);
    qsort(bare, ROUNDS, sizeof *bare, compare);
    printf("  %3d threads: %7.0f pairs/s, bare round trips %7.0f, ratio %.2f\n", threads, ours[ROUNDS / 2],
           bare[ROUNDS / 2], ours[ROUNDS / 2] / bare[ROUNDS / 2]);
}

int main(int argc, char **argv)
{
    char url[160];
    lk_mutex_t m;
    if (argc != 2) {
        fprintf(stderr, "usage: %s SOCKET    (scripts/bench starts a server and calls this)\n", argv[0]);
        return 64;
    }
    path = argv[1];
    snprintf(url, sizeof url, "unix://%s", path);
    if (lk_client_open(&client, url) != 0 || lk_mutex_init(&m, client, "bench", NULL) != 0)
        fail("open");
    printf("one thread\n");
    one_thread(&m, raw_connect(path));
    printf("many threads, median of %d rounds\n", ROUNDS);
    for (int threads = 1; threads <= THREADS_MAX; threads *= 4)
        many_threads(threads);
    lk_mutex_destroy(&m);
    return lk_client_close(client);
}
