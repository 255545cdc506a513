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

static void write_down(struct tape *tape, enum op op, int64_t since_ns)
{
    if (now_ns() - since_ns < LATE_NS)
        return;
    struct record *record = tape_begin(tape, op, 0, 0);
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

/* By the socket of the proxy, as the client; where there are several servers, of one that is there for this alone. */
static void call(struct pulse *pulse)
{
    struct timeval patience = { PATIENCE_S, 0 };
    pulse->redis = redisConnectUnixWithTimeout(pulse->table->pulse[pulse->process], patience);
    if (pulse->redis != NULL && pulse->redis->err == 0)
        redisSetTimeout(pulse->redis, patience);
    else
        hang_up(pulse);
}

static void ask(struct pulse *pulse)
{
    int64_t since_ns = now_ns();
    sched_yield();
    if (pulse->redis == NULL)
        call(pulse);
    redisReply *reply = pulse->redis != NULL ? redisCommand(pulse->redis, "PING") : NULL;
    if (reply == NULL)
        hang_up(pulse);
    freeReplyObject(reply);
    write_down(&pulse->asks, OP_BUSY, since_ns);
}

static bool is_over(struct pulse *pulse)
{
    return __atomic_load_n(&pulse->over, __ATOMIC_ACQUIRE);
}

static void rest(void)
{
    nanosleep(&(struct timespec){ 0, EVERY_NS }, NULL);
}

static void *run_napper(void *arg)
{
    struct pulse *pulse = arg;
    while (!is_over(pulse)) {
        int64_t since_ns = now_ns();
        rest();
        write_down(&pulse->naps, OP_LATE, since_ns);
    }
    return NULL;
}

static void *run_asker(void *arg)
{
    struct pulse *pulse = arg;
    sigset_t broken_pipe;
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE); /* hiredis does not expect it */
    pthread_sigmask(SIG_BLOCK, &broken_pipe, NULL);
    while (!is_over(pulse)) {
        rest();
        if (__atomic_load_n(&pulse->table->quiet, __ATOMIC_ACQUIRE))
            ask(pulse);
        else
            hang_up(pulse);
    }
    hang_up(pulse);
    return NULL;
}

bool pulse_begin(struct pulse *pulse, struct table *table, const char *dir, int process, int incarnation)
{
    *pulse = (struct pulse){ .table = table, .process = process };
    if (!tape_open(&pulse->naps, dir, process, incarnation, THREADS_MAX + 1) ||
        !tape_open(&pulse->asks, dir, process, incarnation, THREADS_MAX + 2))
        return false;
    if (pthread_create(&pulse->napper, NULL, run_napper, pulse) != 0 ||
        pthread_create(&pulse->asker, NULL, run_asker, pulse) != 0)
        abort();
    return true;
}

void pulse_end(struct pulse *pulse)
{
    __atomic_store_n(&pulse->over, true, __ATOMIC_RELEASE);
    pthread_join(pulse->napper, NULL);
    pthread_join(pulse->asker, NULL);
}
