/* SPDX-License-Identifier: MIT */
/*
 * buffer.c - a bounded buffer of ten over 8 processes of 4 threads: with condition variables, and with polling
 *
 * Half of the threads put items in, half take them out, of an array in shared memory that one mutex guards. Who polls gives
 * the mutex back, sleeps for a millisecond and takes it again. <x> is cond, late, where each signal comes after the unlock, or
 * polling:
 *
 *   items.<x>    items per second
 *   asked.<x>    commands per item
 *   itemcpu.<x>  processor time of the server per item, us
 */
#include "measure.h"
#include "server.h"
#include "wire.h"

#include <latchkey/latchkey.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES = 8, THREADS = 4, ROOM = 10, WARM = 200 };

/* In shared memory. */
struct buffer {
    atomic_int ready, go;
    atomic_long taken;
    int count; /* under the mutex */
};

enum how { SIGNALS, SIGNALS_LATE, POLLS };

/* Of one process. */
struct party {
    struct buffer *buffer;
    enum how how;
    lk_client_t *client;
    lk_mutex_t mutex;
    lk_cond_t not_full, not_empty;
};

static void doze(long ns)
{
    nanosleep(&(struct timespec){ 0, ns }, NULL);
}

static void must(int rc, const char *what)
{
    if (rc != 0)
        fail(what);
}

static void wait_for(struct party *party, lk_cond_t *cond)
{
    if (party->how != POLLS) {
        must(lk_cond_wait(cond, &party->mutex), "wait");
        return;
    }
    must(lk_mutex_unlock(&party->mutex), "unlock");
    doze(1000000);
    must(lk_mutex_lock(&party->mutex), "lock");
}

static void unlock_and_tell(struct party *party, lk_cond_t *cond)
{
    if (party->how == SIGNALS)
        must(lk_cond_signal(cond), "signal");
    must(lk_mutex_unlock(&party->mutex), "unlock");
    if (party->how == SIGNALS_LATE)
        must(lk_cond_signal(cond), "signal");
}

static void put_one(struct party *party)
{
    struct buffer *buffer = party->buffer;
    must(lk_mutex_lock(&party->mutex), "lock");
    while (buffer->count == ROOM)
        wait_for(party, &party->not_full);
    buffer->count++;
    unlock_and_tell(party, &party->not_empty);
}

static void take_one(struct party *party)
{
    struct buffer *buffer = party->buffer;
    must(lk_mutex_lock(&party->mutex), "lock");
    while (buffer->count == 0)
        wait_for(party, &party->not_empty);
    buffer->count--;
    atomic_fetch_add(&buffer->taken, 1);
    unlock_and_tell(party, &party->not_full);
}

static void begin_with_others(struct buffer *buffer)
{
    atomic_fetch_add(&buffer->ready, 1);
    while (!atomic_load(&buffer->go))
        doze(500000);
}

static void *put_all(void *arg)
{
    struct party *party = arg;
    begin_with_others(party->buffer);
    for (;;)
        put_one(party);
    return NULL;
}

static void *take_all(void *arg)
{
    struct party *party = arg;
    begin_with_others(party->buffer);
    for (;;)
        take_one(party);
    return NULL;
}

/* Until it is killed. */
static void run_process(const struct place *place, struct party *party, const char *name)
{
    char keys[3][64];
    pthread_t id;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody waits on when a run has failed */
    for (int i = 0; i < 3; i++)
        snprintf(keys[i], sizeof keys[i], "{%s}%s", name, i == 0 ? "" : i == 1 ? "not full" : "not empty");
    must(lk_client_open(&party->client, place->url), "open");
    must(lk_mutex_init(&party->mutex, party->client, keys[0], NULL), "mutex");
    must(lk_cond_init(&party->not_full, party->client, keys[1], NULL), "condition");
    must(lk_cond_init(&party->not_empty, party->client, keys[2], NULL), "condition");
    for (int i = 0; i < THREADS; i++)
        must(pthread_create(&id, NULL, i % 2 == 0 ? put_all : take_all, party), "thread");
    for (;;)
        pause();
}

static void start_processes(const struct place *place, struct party *party, pid_t *pids)
{
    char name[48];
    snprintf(name, sizeof name, "buffer-%lld", (long long)now_ns());
    fflush(NULL); /* or each child prints it once more */
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            run_process(place, party, name);
        if (pids[i] < 0)
            fail("fork");
    }
    while (atomic_load(&party->buffer->ready) < PROCESSES * THREADS) {
        if (waitpid(-1, NULL, WNOHANG) > 0)
            fail("a process ended");
        doze(500000);
    }
}

static void end_processes(const pid_t *pids)
{
    for (int i = 0; i < PROCESSES; i++)
        kill(pids[i], SIGKILL);
    for (int i = 0; i < PROCESSES; i++)
        waitpid(pids[i], NULL, 0);
}

static void await_items(struct buffer *buffer, long count)
{
    while (atomic_load(&buffer->taken) < count) {
        if (waitpid(-1, NULL, WNOHANG) > 0)
            fail("a process ended");
        doze(500000);
    }
}

static void measure(const struct place *place, enum how how)
{
    static const char *const names[] = { "cond", "late", "polling" };
    const char *x = names[how];
    struct wire *asking = wire_open(place->address);
    struct buffer *buffer = mmap(NULL, sizeof *buffer, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct party party = { .buffer = buffer, .how = how };
    pid_t pids[PROCESSES];
    start_processes(place, &party, pids);
    atomic_store(&buffer->go, 1);
    await_items(buffer, WARM);
    struct server_cost before = server_cost(asking, place->server);
    long began_with = atomic_load(&buffer->taken);
    int64_t began = now_ns();
    while (now_ns() - began < place->ms * 1000000)
        doze(500000);
    double items = (double)(atomic_load(&buffer->taken) - began_with), seconds = (double)(now_ns() - began) / 1e9;
    struct server_cost spent = server_spent(asking, place->server, before);
    end_processes(pids);
    items = items > 0 ? items : 1;
    tell(items / seconds, "items.%s", x);
    tell((double)spent.asked / items, "asked.%s", x);
    tell((double)spent.cpu_ns / 1e3 / items, "itemcpu.%s", x);
    munmap(buffer, sizeof *buffer);
    wire_close(asking);
}

int main(int argc, char **argv)
{
    struct place place;
    (void)place_read(&place, argc, argv, "");
    for (enum how how = SIGNALS; how <= POLLS; how++)
        measure(&place, how);
    return 0;
}
