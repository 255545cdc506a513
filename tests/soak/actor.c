/* SPDX-License-Identifier: MIT */
/*
 * actor.c - one client process of a soak: soak_actor DIR PROCESS INCARNATION PARENT
 *
 * Its main thread starts the others, starts them again when the nemesis made them end, and finally closes
 * the client and counts what is left. It may be killed or stopped at any time.
 */
#include "pulse.h"
#include "record.h"
#include "shells.h"
#include "table.h"
#include "worker.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

struct actor {
    struct table *table;
    lk_client_t *client;
    struct shells *shells;
    struct tape tape; /* of the main thread */
    struct tape news; /* of the listener */
    uint64_t heard;   /* losses, by the listener; atomic builtins */
    lk_events_t *queue;
    uint64_t fetched; /* losses, from the queue */
    struct pulse pulse;
    int process;
    struct worker_thread workers[THREADS_MAX];
};

static void rest(void)
{
    nanosleep(&(struct timespec){ 0, 5 * NS_PER_MS }, NULL);
}

static int count_entries(const char *dir)
{
    DIR *d = opendir(dir);
    int count = -3; /* "." and "..", and the descriptor of the folder itself */
    while (d != NULL && readdir(d) != NULL)
        count++;
    closedir(d);
    return count;
}

static void count_process(struct record *record)
{
    record->limit_ms = count_entries("/proc/self/task") + 1;
    record->permits = (uint16_t)count_entries("/proc/self/fd");
}

/* Runs on a thread of the library. */
static void heard(const lk_event_t *event, void *arg)
{
    struct actor *actor = arg;
    uint32_t object = 0, instance = 0;
    if (event->type == LK_EVENT_LOST)
        __atomic_add_fetch(&actor->heard, event->count, __ATOMIC_RELAXED);
    if (event->type != LK_EVENT_LOST || object_named(event->name, &object, &instance) != 0)
        return;
    struct record *record = tape_begin(&actor->news, OP_LOST, object, instance);
    if (record == NULL)
        return;
    record->token = event->token;
    record->hold = (uint32_t)event->owner;
    tape_end(record, event->reason);
}

static void fetch(struct actor *actor)
{
    lk_event_t event = LK_EVENT_INIT;
    while (lk_events_next(actor->queue, &event) == 0)
        if (event.type == LK_EVENT_LOST)
            actor->fetched += event.count;
}

/* There may be no server just now. */
static int open_client(struct actor *actor)
{
    int code;
    do {
        code = lk_client_open(&actor->client, actor->table->urls[actor->process]);
        if (code != 0)
            rest();
    } while (code != 0 && __atomic_load_n(&actor->table->phase, __ATOMIC_ACQUIRE) != STOP);
    return code;
}

static void start(struct worker_thread *worker)
{
    __atomic_store_n(&worker->ended, 0, __ATOMIC_RELEASE);
    if (pthread_create(&worker->thread_id, NULL, worker_thread_run, worker) != 0)
        abort();
}

/* What the nemesis wants of a thread that waits, and those that ended by its wish. */
static void look_after(struct actor *actor, struct worker_thread *worker)
{
    enum wish *wish = &actor->table->wishes[actor->process][worker->thread];
    if (__atomic_load_n(wish, __ATOMIC_ACQUIRE) == WISH_CANCEL) {
        pthread_cancel(worker->thread_id);
        __atomic_store_n(wish, WISH_NONE, __ATOMIC_RELEASE);
    }
    if (__atomic_load_n(&worker->ended, __ATOMIC_ACQUIRE) &&
        __atomic_load_n(&actor->table->phase, __ATOMIC_ACQUIRE) != STOP) {
        pthread_join(worker->thread_id, NULL);
        start(worker);
    }
}

static int run(struct actor *actor, const char *dir, int incarnation)
{
    struct table *table = actor->table;
    for (int i = 0; i < table->threads; i++) {
        struct worker_thread *worker = &actor->workers[i];
        *worker = (struct worker_thread){
            .table = table, .shells = actor->shells, .process = actor->process, .incarnation = incarnation, .thread = i
        };
        if (!tape_open(&worker->tape, dir, actor->process, incarnation, i))
            return 1;
        start(worker);
    }
    while (__atomic_load_n(&table->phase, __ATOMIC_ACQUIRE) != STOP) {
        for (int i = 0; i < table->threads; i++)
            look_after(actor, &actor->workers[i]);
        fetch(actor);
        rest();
    }
    for (int i = 0; i < table->threads; i++)
        pthread_join(actor->workers[i].thread_id, NULL);
    return 0;
}

/* What the close told is in the queue, too. */
static void close_queue(struct actor *actor)
{
    fetch(actor);
    struct record *record = tape_begin(&actor->tape, OP_HEARD, 0, 0);
    if (record == NULL)
        return;
    record->limit_ms = (int32_t)__atomic_load_n(&actor->heard, __ATOMIC_RELAXED);
    record->token = actor->fetched;
    tape_end(record, lk_events_close(actor->queue));
}

/*
 * The listener stays, as the close tells it what is left to tell. The record's time is that of the close alone; what is
 * left of the process is counted after shells and pulse.
 */
static void close_client(struct actor *actor)
{
    struct record *record = tape_begin(&actor->tape, OP_CLOSE, 0, 0);
    int code = lk_client_close(actor->client);
    if (record != NULL)
        tape_end(record, code);
    close_queue(actor);
    int destroyed = shells_end(actor->shells);
    for (int i = 0; i < THREADS_MAX; i++)
        if (lk_owner_free(actor->workers[i].owner) != 0)
            destroyed = EBUSY;
    pulse_end(&actor->pulse);
    if (record == NULL)
        return;
    if (destroyed != 0)
        record->code = (int16_t)destroyed;
    for (int tries = 0; tries < 300; tries++) { /* a joined thread may still be listed */
        count_process(record);
        if (record->limit_ms == actor->tape.records[0].limit_ms)
            break;
        rest();
    }
}

static void *nothing(void *arg)
{
    return arg;
}

int main(int argc, char **argv)
{
    static struct actor actor;
    pthread_t first;
    if (argc != 5 || (actor.table = table_open(argv[1])) == NULL)
        return 2;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != atoi(argv[4]))
        return 2;
    actor.process = atoi(argv[2]);
    if (!tape_open(&actor.tape, argv[1], actor.process, atoi(argv[3]), THREADS_MAX) ||
        !tape_open(&actor.news, argv[1], actor.process, atoi(argv[3]), THREADS_MAX + 3))
        return 2;
    pthread_create(&first, NULL, nothing, NULL); /* a sanitizer's own thread comes with the first one */
    pthread_join(first, NULL);
    lk_addlog(NULL, LK_LOG_ERROR, NULL, NULL);
    struct record *opened = tape_begin(&actor.tape, OP_OPEN, 0, 0);
    count_process(opened);
    if (!pulse_begin(&actor.pulse, actor.table, argv[1], actor.process, atoi(argv[3])))
        return 2;
    int code = open_client(&actor);
    tape_end(opened, code);
    if (code != 0) { /* the soak ended before there was a server again */
        pulse_end(&actor.pulse);
        return 0;
    }
    actor.shells = shells_begin(actor.client, actor.table->lease_ms);
    if (lk_client_addlistener(actor.client, heard, &actor, NULL) != 0 ||
        lk_events_open(actor.client, &actor.queue) != 0 || run(&actor, argv[1], atoi(argv[3])) != 0)
        return 2;
    close_client(&actor);
    return 0;
}
