/* SPDX-License-Identifier: MIT */
/*
 * threads.c - pairs per second of many threads of one process, each with a mutex of its own
 *
 *   threads.<n>.latchkey    on one client
 *   threads.<n>.conns       with a blocking connection each, on which the same scripts are sent
 *   threads.<n>.acknowledged   on a client with wait_replicas=1, of a server that has a replica ...
 *   threads.<n>.replicated     ... and on one without
 */
#include "measure.h"
#include "record.h"
#include "subject.h"
#include "wire.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 256, WARM = 20 };

struct job {
    const struct place *place;
    lk_client_t *client;
    const struct record *record;
    pthread_barrier_t start;
    atomic_int over;
    int64_t pairs[THREADS_MAX];
    bool raw;
};

struct seat {
    struct job *job;
    int number;
};

static void run_raw(struct job *job, int number, const char *name)
{
    struct wire *wire = wire_open(job->place->address);
    int64_t turn = 0;
    for (; turn < WARM; turn++)
        record_run(job->record, wire, name, turn);
    pthread_barrier_wait(&job->start);
    for (; !atomic_load_explicit(&job->over, memory_order_relaxed); turn++)
        record_run(job->record, wire, name, turn);
    job->pairs[number] = turn - WARM;
    wire_close(wire);
}

static void run_ours(struct job *job, int number, const char *name)
{
    struct subject own;
    int64_t turn = 0;
    subject_init(&own, &subject_kinds[0], job->client, name);
    for (; turn < WARM; turn++)
        subject_pair(&own);
    pthread_barrier_wait(&job->start);
    for (; !atomic_load_explicit(&job->over, memory_order_relaxed); turn++)
        subject_pair(&own);
    job->pairs[number] = turn - WARM;
    subject_destroy(&own);
}

static void *work(void *arg)
{
    struct seat *seat = arg;
    char name[32];
    snprintf(name, sizeof name, "thread-%03d", seat->number);
    (seat->job->raw ? run_raw : run_ours)(seat->job, seat->number, name);
    return NULL;
}

static void sleep_ms(int64_t ms)
{
    int64_t end = now_ns() + ms * 1000000;
    struct timespec pause = { 0, 1000000 };
    while (now_ns() < end)
        nanosleep(&pause, NULL);
}

static double pairs_per_second(struct job *job, int threads)
{
    static struct seat seats[THREADS_MAX];
    pthread_t ids[THREADS_MAX];
    double pairs = 0;
    atomic_store(&job->over, 0);
    pthread_barrier_init(&job->start, NULL, (unsigned)threads + 1);
    for (int i = 0; i < threads; i++) {
        seats[i] = (struct seat){ job, i };
        if (pthread_create(&ids[i], NULL, work, &seats[i]) != 0)
            fail("thread");
    }
    pthread_barrier_wait(&job->start);
    int64_t began = now_ns();
    sleep_ms(job->place->ms);
    atomic_store(&job->over, 1);
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        pairs += (double)job->pairs[i];
    }
    pthread_barrier_destroy(&job->start);
    return pairs / ((double)(now_ns() - began) / 1e9);
}

/* A server that has a replica, with a client that waits for that and one that does not. */
static int measure_replicated(struct place *place, int threads)
{
    struct job job = { .place = place };
    for (int acknowledged = 0; acknowledged < 2; acknowledged++) {
        if (acknowledged)
            strcat(place->url, "&wait_replicas=1");
        if (lk_client_open(&job.client, place->url) != 0)
            fail(place->url);
        tell(pairs_per_second(&job, threads), "threads.%d.%s", threads, acknowledged ? "acknowledged" : "replicated");
        lk_client_close(job.client);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct place place;
    struct job job = { .place = &place };
    int at = place_read(&place, argc, argv, "[-]THREADS... | +THREADS    (-: the library alone, +: with a replica)");
    if (at < argc && argv[at][0] == '+')
        return measure_replicated(&place, abs((int)strtol(argv[at], NULL, 10)));
    if (lk_client_open(&job.client, place.url) != 0)
        fail(place.url);
    struct record *record = record_pair(&place, job.client, &subject_kinds[0]);
    job.record = record;
    for (; at < argc; at++) {
        int threads = abs((int)strtol(argv[at], NULL, 10));
        bool alone = argv[at][0] == '-';
        if (threads < 1 || threads > THREADS_MAX)
            fail(argv[at]);
        job.raw = true;
        if (!alone)
            tell(pairs_per_second(&job, threads), "threads.%d.conns", threads);
        job.raw = false;
        tell(pairs_per_second(&job, threads), "threads.%d.latchkey", threads);
    }
    record_free(record);
    return lk_client_close(job.client);
}
