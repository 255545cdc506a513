/* SPDX-License-Identifier: MIT */
/*
 * actor.c - one client process of a soak: soak_actor DIR PROCESS INCARNATION PARENT
 *
 * Its main thread starts the others, starts them again when the nemesis made them end, and finally closes the client
 * and counts what is left. It may be killed or stopped at any time.
 *
 * The pulse is a thread that only sleeps. It notes how late it was: so the checker knows of a machine that stood still.
 */
#include "actor.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#define LATE_NS (50 * NS_PER_MS)

struct actor {
    struct table *table;
    lk_client_t *client;
    struct things *things;
    struct tape tape;   /* of the main thread */
    struct tape news;   /* of the listener */
    struct tape pulses; /* of the pulse */
    uint64_t heard;     /* losses, by the listener; atomic builtins */
    lk_events_t *queue;
    uint64_t fetched; /* losses, from the queue */
    pthread_t pulse;
    bool over; /* for the pulse; atomic builtins */
    int process;
    struct worker workers[THREADS_MAX];
};

static enum phase phase_of(struct actor *actor)
{
    return __atomic_load_n(&actor->table->phase, __ATOMIC_ACQUIRE);
}

/* --- the pulse ---------------------------------------------------------------------------------------------------- */

static void *run_pulse(void *arg)
{
    struct actor *actor = arg;
    while (!__atomic_load_n(&actor->over, __ATOMIC_ACQUIRE)) {
        int64_t since_ns = now_ns();
        nap();
        struct record *record = now_ns() - since_ns < LATE_NS ? NULL : tape_begin(&actor->pulses, OP_LATE, 0, 0);
        if (record == NULL)
            continue;
        record->invoke_ns = since_ns;
        tape_end(record, 0);
    }
    return NULL;
}

static void end_pulse(struct actor *actor)
{
    __atomic_store_n(&actor->over, true, __ATOMIC_RELEASE);
    pthread_join(actor->pulse, NULL);
}

/* --- losses ------------------------------------------------------------------------------------------------------- */

/* Runs on a thread of the library. */
static void heard(const lk_event_t *event, void *arg)
{
    struct actor *actor = arg;
    uint32_t object = 0, instance = 0;
    if (event->type != LK_EVENT_LOST)
        return;
    __atomic_add_fetch(&actor->heard, event->count, __ATOMIC_RELAXED);
    if (object_named(event->name, &object, &instance) != 0)
        return;
    struct record *record = tape_begin(&actor->news, OP_LOST, object, instance);
    if (record == NULL)
        return;
    record->token = event->token;
    tape_end(record, event->reason);
}

static void fetch(struct actor *actor)
{
    lk_event_t event = LK_EVENT_INIT;
    while (lk_events_next(actor->queue, &event) == 0)
        if (event.type == LK_EVENT_LOST)
            actor->fetched += event.count;
}

/* --- from the beginning to the end -------------------------------------------------------------------------------- */

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

/* There may be no server just now. */
static int open_client(struct actor *actor)
{
    int code;
    do {
        code = lk_client_open(&actor->client, actor->table->urls[actor->process]);
        if (code != 0)
            nap();
    } while (code != 0 && phase_of(actor) != STOP);
    return code;
}

static void start(struct worker *worker)
{
    __atomic_store_n(&worker->ended, 0, __ATOMIC_RELEASE);
    if (pthread_create(&worker->id, NULL, worker_run, worker) != 0)
        abort();
}

/* What the nemesis wants of a thread that waits, and those that ended by its wish. */
static void look_after(struct actor *actor, struct worker *worker)
{
    enum wish *wish = &actor->table->wishes[actor->process][worker->thread];
    if (__atomic_load_n(wish, __ATOMIC_ACQUIRE) == WISH_CANCEL) {
        pthread_cancel(worker->id);
        __atomic_store_n(wish, WISH_NONE, __ATOMIC_RELEASE);
    }
    if (__atomic_load_n(&worker->ended, __ATOMIC_ACQUIRE) && phase_of(actor) != STOP) {
        pthread_join(worker->id, NULL);
        start(worker);
    }
}

static void run(struct actor *actor, const char *dir, int incarnation)
{
    int threads = actor->table->threads;
    for (int i = 0; i < threads; i++) {
        struct worker *worker = &actor->workers[i];
        *worker = (struct worker){ .table = actor->table,
                                   .things = actor->things,
                                   .process = actor->process,
                                   .incarnation = incarnation,
                                   .thread = i };
        if (!tape_open(&worker->tape, dir, actor->process, incarnation, i) ||
            lk_owner_new(actor->client, &worker->owner) != 0)
            abort();
        start(worker);
    }
    while (phase_of(actor) != STOP) {
        for (int i = 0; i < threads; i++)
            look_after(actor, &actor->workers[i]);
        fetch(actor);
        nap();
    }
    for (int i = 0; i < threads; i++)
        pthread_join(actor->workers[i].id, NULL);
}

/* What the close told is in the queue, too. */
static void close_queue(struct actor *actor)
{
    fetch(actor);
    struct record *record = tape_begin(&actor->tape, OP_HEARD, 0, 0);
    record->limit_ms = (int32_t)__atomic_load_n(&actor->heard, __ATOMIC_RELAXED);
    record->token = actor->fetched;
    tape_end(record, lk_events_close(actor->queue));
}

/* The record's time is that of the close alone; what is left of the process is counted after all else. */
static void close_client(struct actor *actor)
{
    struct record *record = tape_begin(&actor->tape, OP_CLOSE, 0, 0);
    tape_end(record, lk_client_close(actor->client));
    close_queue(actor);
    int destroyed = things_end(actor->things);
    for (int i = 0; i < THREADS_MAX; i++)
        if (lk_owner_free(actor->workers[i].owner) != 0)
            destroyed = EBUSY;
    end_pulse(actor);
    if (destroyed != 0)
        record->code = (int16_t)destroyed;
    for (int tries = 0; tries < 300; tries++) { /* a joined thread may still be listed */
        count_process(record);
        if (record->limit_ms == actor->tape.records[0].limit_ms)
            break;
        nap();
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
    if (argc != 5 || (actor.table = table_map(argv[1], false)) == NULL)
        return 2;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int incarnation = atoi(argv[3]);
    actor.process = atoi(argv[2]);
    if (getppid() != atoi(argv[4]) || !tape_open(&actor.tape, argv[1], actor.process, incarnation, THREADS_MAX) ||
        !tape_open(&actor.news, argv[1], actor.process, incarnation, THREADS_MAX + 1) ||
        !tape_open(&actor.pulses, argv[1], actor.process, incarnation, THREADS_MAX + 2))
        return 2;
    pthread_create(&first, NULL, nothing, NULL); /* a sanitizer's own thread comes with the first one */
    pthread_join(first, NULL);
    lk_addlog(NULL, LK_LOG_ERROR, NULL, NULL);
    struct record *opened = tape_begin(&actor.tape, OP_OPEN, 0, 0);
    count_process(opened);
    if (pthread_create(&actor.pulse, NULL, run_pulse, &actor) != 0)
        return 2;
    int code = open_client(&actor);
    tape_end(opened, code);
    if (code != 0) { /* the soak ended before there was a server again */
        end_pulse(&actor);
        return 0;
    }
    actor.things = things_begin(actor.client);
    if (lk_client_addlistener(actor.client, heard, &actor, NULL) != 0 ||
        lk_events_open(actor.client, &actor.queue) != 0)
        return 2;
    run(&actor, argv[1], incarnation);
    close_client(&actor);
    return 0;
}
