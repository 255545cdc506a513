/* SPDX-License-Identifier: MIT */
/*
 * pulse.c - see pulse.h
 */
#include "pulse.h"

#include <hiredis/hiredis.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EVERY_NS (5 * NS_PER_MS)
#define LATE_NS (50 * NS_PER_MS) /* a call has a few such turns and ways, and a command timeout of 200 ms for all */
#define PATIENCE_S 2

static void write_down(struct pulse *pulse, enum op op, int64_t since_ns)
{
    if (now_ns() - since_ns < LATE_NS)
        return;
    struct record *record = tape_begin(&pulse->tape, op, 0, 0);
    if (record == NULL)
        return;
    record->invoke_ns = since_ns;
    tape_end(record, 0);
}

static void hang_up(struct pulse *pulse)
{
    if (pulse->redis != NULL)
        redisFree(pulse->redis);
    pulse->redis = NULL;
}

/* By the socket of the proxy, as the client. */
static void call(struct pulse *pulse)
{
    struct timeval patience = { PATIENCE_S, 0 };
    char path[256];
    const char *url = pulse->table->urls[pulse->process] + strlen("unix://");
    snprintf(path, sizeof path, "%.*s", (int)strcspn(url, "?"), url);
    pulse->redis = redisConnectUnixWithTimeout(path, patience);
    if (pulse->redis != NULL && pulse->redis->err == 0)
        redisSetTimeout(pulse->redis, patience);
    else
        hang_up(pulse);
}

static void work(struct pulse *pulse)
{
    int64_t since_ns = now_ns();
    sched_yield();
    if (pulse->redis == NULL)
        call(pulse);
    redisReply *reply = pulse->redis != NULL ? redisCommand(pulse->redis, "PING") : NULL;
    if (reply == NULL)
        hang_up(pulse);
    freeReplyObject(reply);
    write_down(pulse, OP_BUSY, since_ns);
}

static void *run(void *arg)
{
    struct pulse *pulse = arg;
    sigset_t broken_pipe;
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE); /* hiredis does not expect it */
    pthread_sigmask(SIG_BLOCK, &broken_pipe, NULL);
    while (!__atomic_load_n(&pulse->over, __ATOMIC_ACQUIRE)) {
        int64_t since_ns = now_ns();
        nanosleep(&(struct timespec){ 0, EVERY_NS }, NULL);
        write_down(pulse, OP_LATE, since_ns);
        if (__atomic_load_n(&pulse->table->phase, __ATOMIC_ACQUIRE) != STORM)
            work(pulse);
    }
    hang_up(pulse);
    return NULL;
}

bool pulse_begin(struct pulse *pulse, struct table *table, const char *dir, int process, int incarnation)
{
    *pulse = (struct pulse){ .table = table, .process = process };
    if (!tape_open(&pulse->tape, dir, process, incarnation, THREADS_MAX + 1))
        return false;
    if (pthread_create(&pulse->thread, NULL, run, pulse) != 0)
        abort();
    return true;
}

void pulse_end(struct pulse *pulse)
{
    __atomic_store_n(&pulse->over, true, __ATOMIC_RELEASE);
    pthread_join(pulse->thread, NULL);
}
