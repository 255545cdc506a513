/* SPDX-License-Identifier: MIT */
/*
 * growth.c - what grows with the number of objects, holds and waiters of one client, and who else notices
 *
 *   objects.<n>            p50 us of a pair of one mutex, while the client has n objects
 *   renewal.cpu.<n>        server's processor time, us, of renewing one of n holds
 *   renewal.stall.<n>      meanwhile the longest that a PING of somebody else took, us
 *   far.lost.<n>           of n holds of 6 s, those that are lost at a round trip of 100 ms
 *   reading.cpu.<n>        processor time of the server, in percent, while n threads wait to read
 *   reading.stall.<n>      the longest PING while they are let in, us
 *   reading.script.<n>     the longest script, us
 *   permits.cpu.<n>, permits.stall.<n>, permits.script.<n>    likewise n threads that wait for a permit each
 *   broadcast.cpu.<n>, broadcast.stall.<n>, broadcast.script.<n>    likewise for a condition
 *   broadcast.asked.<n>    commands of each of them and of the broadcast, from that on until each had the mutex
 *   signal.asked.<n>       commands of a signal, its unlock and the thread that it wakes, of n that wait
 *   barrier.asked.<n>      commands of each of n threads that meet at a barrier
 *   idle.asks              commands per second of a client that waits for a mutex
 *   idle.connections       connections of a client while nobody waits
 */
#include "measure.h"
#include "relay.h"
#include "server.h"
#include "subject.h"
#include "wire.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STACK = 64 << 10, IDLE_MAX = 50 };

static void sleep_ms(int64_t ms)
{
    struct timespec pause = { ms / 1000, ms % 1000 * 1000000 };
    nanosleep(&pause, NULL);
}

/* --- a bystander: pings all the time, and remembers the slowest answer -------------------------------------- */

struct bystander {
    pthread_t id;
    struct wire *wire;
    atomic_int over;
    _Atomic int64_t worst_ns;
    double longest_us; /* of the commands that it found in the log */
};

/* The longest command in the server's log of slow ones, us: each entry is *6, its number, its time, how long it took. The log
   keeps 128 of them. */
static double longest_command(struct wire *wire)
{
    struct wire_reply reply = wire_ask(wire, WORDS("SLOWLOG", "GET", "128"));
    char *text = strndup(reply.bytes, reply.length);
    double longest = 0;
    for (char *at = text; (at = strstr(at, "*6\r\n:")) != NULL; at++) {
        long long number, when, took;
        if (sscanf(at, "*6\r\n:%lld\r\n:%lld\r\n:%lld", &number, &when, &took) == 3 && (double)took > longest)
            longest = (double)took;
    }
    free(text);
    return longest;
}

static void read_log(struct bystander *self)
{
    double longest_us = longest_command(self->wire);
    wire_ask(self->wire, WORDS("SLOWLOG", "RESET"));
    if (longest_us > self->longest_us)
        self->longest_us = longest_us;
}

static void *stand_by(void *arg)
{
    enum { LOG_EVERY = 16 };
    struct bystander *self = arg;
    for (int i = 1; !atomic_load(&self->over); i++) {
        int64_t began = now_ns();
        wire_ask(self->wire, WORDS("PING"));
        int64_t took = now_ns() - began;
        if (took > atomic_load(&self->worst_ns))
            atomic_store(&self->worst_ns, took);
        if (i % LOG_EVERY == 0)
            read_log(self);
        struct timespec pause = { 0, 200000 };
        nanosleep(&pause, NULL);
    }
    read_log(self);
    return NULL;
}

static void bystander_begin(struct bystander *self, const struct place *place)
{
    self->wire = wire_open(place->address);
    atomic_store(&self->over, 0);
    atomic_store(&self->worst_ns, 0);
    self->longest_us = 0;
    wire_ask(self->wire, WORDS("CONFIG", "SET", "slowlog-log-slower-than", "20"));
    wire_ask(self->wire, WORDS("SLOWLOG", "RESET"));
    if (pthread_create(&self->id, NULL, stand_by, self) != 0)
        fail("thread");
}

/* Tells the longest PING, and the longest script unless `script` is NULL. */
static void bystander_end(struct bystander *self, const char *stall, const char *script, int n)
{
    atomic_store(&self->over, 1);
    pthread_join(self->id, NULL);
    tell((double)atomic_load(&self->worst_ns) / 1e3, "%s.%d", stall, n);
    if (script != NULL)
        tell(self->longest_us, "%s.%d", script, n);
    wire_ask(self->wire, WORDS("CONFIG", "SET", "slowlog-log-slower-than", "-1"));
    wire_close(self->wire);
}

/* --- many objects ------------------------------------------------------------------------------------------------ */

static struct subject *many(lk_client_t *client, const char *what, int n)
{
    struct subject *all = calloc((size_t)n, sizeof *all);
    for (int i = 0; i < n; i++) {
        char name[48];
        snprintf(name, sizeof name, "%s-%d", what, i);
        subject_init(&all[i], &subject_kinds[0], client, name);
    }
    return all;
}

static void objects(const struct place *place, int n)
{
    enum { SAMPLES = 4000 };
    static int64_t pair_ns[SAMPLES];
    lk_client_t *client = open_client(place->url);
    struct subject *all = many(client, "object", n);
    int samples = 0;
    for (int64_t end = now_ns() + place->ms * 1000000; samples == 0 || (samples < SAMPLES && now_ns() < end);) {
        int64_t began = now_ns();
        subject_pair(&all[n - 1]);
        pair_ns[samples++] = now_ns() - began;
    }
    tell(median_us(pair_ns, samples), "objects.%d", n);
    for (int i = 0; i < n; i++)
        subject_destroy(&all[i]);
    free(all);
    if (lk_client_close(client) != 0)
        fail("close");
}

/* --- many holds: leases of 3 s, so each is renewed once a second -------------------------------------------------- */

static void renewals(const struct place *place, int n)
{
    enum { SPAN_MS = 3000, LEASE_MS = 3000 };
    char url[300];
    struct bystander bystander;
    snprintf(url, sizeof url, "%.*s?lease=3s", (int)strcspn(place->url, "?"), place->url);
    lk_client_t *client = open_client(url);
    struct wire *asking = wire_open(place->address);
    struct subject *all = many(client, "hold", n);
    for (int i = 0; i < n; i++)
        if (all[i].kind->take(&all[i]) != 0)
            fail("lock");
    bystander_begin(&bystander, place);
    struct server_cost before = server_cost(asking, place->server);
    sleep_ms(SPAN_MS);
    struct server_cost spent = server_spent(asking, place->server, before);
    bystander_end(&bystander, "renewal.stall", NULL, n);
    tell((double)spent.cpu_ns / 1e3 / ((double)n * SPAN_MS / (LEASE_MS / 3.0)), "renewal.cpu.%d", n);
    for (int i = 0; i < n; i++)
        if (all[i].kind->give(&all[i]) != 0)
            fail("a hold was lost");
    for (int i = 0; i < n; i++)
        subject_destroy(&all[i]);
    free(all);
    wire_close(asking);
    lk_client_close(client);
}

/* The delay begins when all are held, or taking them one after the other would last for half an hour. */
static void far_holds(const struct place *place, int n)
{
    enum { SPAN_MS = 12000, ONE_WAY_MS = 50 };
    char url[300];
    int lost = 0;
    struct relay *relay = relay_begin(place->address);
    snprintf(url, sizeof url, "unix://%s?lease=6s", relay_path(relay));
    lk_client_t *client = open_client(url);
    struct subject *all = many(client, "far", n);
    for (int i = 0; i < n; i++)
        if (all[i].kind->take(&all[i]) != 0)
            fail("lock");
    relay_delay(relay, ONE_WAY_MS);
    sleep_ms(SPAN_MS);
    relay_delay(relay, 0);
    for (int i = 0; i < n; i++)
        lost += all[i].kind->give(&all[i]) != 0;
    tell(lost, "far.lost.%d", n);
    for (int i = 0; i < n; i++)
        all[i].kind->destroy(&all[i]);
    free(all);
    lk_client_close(client);
    relay_end(relay);
}

/* --- many waiting threads of one process --------------------------------------------------------------------------- */

struct gate {
    struct subject *wanted;
    atomic_int here, through;
};

static void *wait_at(void *arg)
{
    struct gate *gate = arg;
    atomic_fetch_add(&gate->here, 1);
    subject_pair(gate->wanted);
    atomic_fetch_add(&gate->through, 1);
    return NULL;
}

static pthread_t *start_waiters(struct gate *gate, int n)
{
    pthread_t *ids = calloc((size_t)n, sizeof *ids);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK);
    for (int i = 0; i < n; i++)
        if (pthread_create(&ids[i], &small, wait_at, gate) != 0)
            fail("thread");
    pthread_attr_destroy(&small);
    while (atomic_load(&gate->here) < n)
        sleep_ms(1);
    return ids;
}

/* What n threads cost that wait for `wanted`, which `let_in` keeps from them until it is given back. */
static void waiters(const struct place *place, const char *what, struct subject *wanted, int n,
                    void (*let_in)(void *arg), void *arg)
{
    enum { SETTLE_MS = 1000, SPAN_MS = 3000 };
    char stall[40], script[40];
    struct gate gate = { .wanted = wanted };
    struct bystander bystander;
    struct wire *asking = wire_open(place->address);
    pthread_t *ids = start_waiters(&gate, n);
    sleep_ms(SETTLE_MS);
    struct server_cost before = server_cost(asking, place->server);
    sleep_ms(SPAN_MS);
    struct server_cost spent = server_spent(asking, place->server, before);
    tell((double)spent.cpu_ns / (SPAN_MS * 1e4), "%s.cpu.%d", what, n);
    bystander_begin(&bystander, place);
    let_in(arg);
    for (int i = 0; i < n; i++)
        pthread_join(ids[i], NULL);
    snprintf(stall, sizeof stall, "%s.stall", what);
    snprintf(script, sizeof script, "%s.script", what);
    bystander_end(&bystander, stall, script, n);
    free(ids);
    wire_close(asking);
}

static void give_back(void *arg)
{
    struct subject *held = arg;
    if (held->kind->give(held) != 0)
        fail("give");
}

static void readers(const struct place *place, int n)
{
    lk_client_t *writing = open_client(place->url), *reading = open_client(place->url);
    struct subject writer, reader;
    subject_init(&writer, subject_kind("wrlock"), writing, "many-readers");
    subject_init(&reader, subject_kind("rdlock"), reading, "many-readers");
    if (writer.kind->take(&writer) != 0)
        fail("wrlock");
    waiters(place, "reading", &reader, n, give_back, &writer);
    subject_destroy(&writer);
    subject_destroy(&reader);
    lk_client_close(writing);
    lk_client_close(reading);
}

struct permits {
    lk_sem_t *sem;
    unsigned n;
};

static void release_all(void *arg)
{
    struct permits *permits = arg;
    if (lk_sem_release(permits->sem, permits->n) != 0)
        fail("release");
}

static void permits(const struct place *place, int n)
{
    lk_client_t *client = open_client(place->url);
    struct subject taken;
    struct permits all = { &taken.sem, (unsigned)n };
    char name[40];
    snprintf(name, sizeof name, "many-permits-%lld", (long long)now_ns());
    subject_init(&taken, subject_kind("sem"), client, name);
    for (int have = 5; have > 0; have--) /* as many as subject_init() begins with */
        if (lk_sem_wait(&taken.sem) != 0)
            fail("sem_wait");
    waiters(place, "permits", &taken, n, release_all, &all);
    subject_destroy(&taken);
    lk_client_close(client);
}

/* --- conditions and barriers ------------------------------------------------------------------------------------------ */

/* A mutex that is taken by waiting for a condition. */
struct crowd {
    struct subject entry; /* its mutex */
    lk_cond_t some;
    struct server_cost before; /* the broadcast */
    struct wire *asking;
    pid_t server;
};

static int take_when_told(struct subject *entry)
{
    struct crowd *crowd = (struct crowd *)entry;
    int rc = lk_mutex_lock(&entry->mutex);
    return rc != 0 ? rc : lk_cond_wait(&crowd->some, &entry->mutex);
}

static int give_entry(struct subject *entry)
{
    return lk_mutex_unlock(&entry->mutex);
}

static const struct subject_kind told = { .name = "told", .take = take_when_told, .give = give_entry };

static void crowd_begin(struct crowd *crowd, const struct place *place, lk_client_t *client)
{
    char name[40];
    snprintf(name, sizeof name, "crowd-%lld", (long long)now_ns());
    *crowd = (struct crowd){ .entry.kind = &told, .asking = wire_open(place->address), .server = place->server };
    if (lk_mutex_init(&crowd->entry.mutex, client, name, NULL) != 0 ||
        lk_cond_init(&crowd->some, client, name, NULL) != 0)
        fail("crowd");
}

static void crowd_end(struct crowd *crowd)
{
    lk_cond_destroy(&crowd->some);
    lk_mutex_destroy(&crowd->entry.mutex);
    wire_close(crowd->asking);
}

static void wake_all(void *arg)
{
    struct crowd *crowd = arg;
    if (lk_mutex_lock(&crowd->entry.mutex) != 0)
        fail("lock");
    crowd->before = server_cost(crowd->asking, crowd->server);
    if (lk_cond_broadcast(&crowd->some) != 0)
        fail("broadcast");
    if (lk_mutex_unlock(&crowd->entry.mutex) != 0)
        fail("unlock");
}

static void broadcast(const struct place *place, int n)
{
    lk_client_t *client = open_client(place->url);
    struct crowd crowd;
    crowd_begin(&crowd, place, client);
    waiters(place, "broadcast", &crowd.entry, n, wake_all, &crowd);
    struct server_cost spent = server_spent(crowd.asking, crowd.server, crowd.before);
    tell((double)spent.scripts / n, "broadcast.asked.%d", n);
    crowd_end(&crowd);
    lk_client_close(client);
}

/* One after the other, so that each finds one less. Who still waits then is woken at once. */
static void signals(const struct place *place, int n)
{
    enum { SETTLE_MS = 1000, PAUSE_MS = 100, SIGNALS_MAX = 20 };
    lk_client_t *client = open_client(place->url);
    struct crowd crowd;
    struct gate gate = { .wanted = &crowd.entry };
    int count = n < SIGNALS_MAX ? n : SIGNALS_MAX;
    double asked = 0;
    crowd_begin(&crowd, place, client);
    pthread_t *ids = start_waiters(&gate, n);
    sleep_ms(SETTLE_MS);
    for (int i = 0; i < count; i++) {
        if (lk_mutex_lock(&crowd.entry.mutex) != 0)
            fail("lock");
        struct server_cost before = server_cost(crowd.asking, crowd.server);
        if (lk_cond_signal(&crowd.some) != 0 || lk_mutex_unlock(&crowd.entry.mutex) != 0)
            fail("signal");
        while (atomic_load(&gate.through) <= i)
            sleep_ms(1);
        asked += (double)server_spent(crowd.asking, crowd.server, before).scripts;
        sleep_ms(PAUSE_MS);
    }
    tell(asked / count, "signal.asked.%d", n);
    wake_all(&crowd);
    for (int i = 0; i < n; i++)
        pthread_join(ids[i], NULL);
    free(ids);
    crowd_end(&crowd);
    lk_client_close(client);
}

enum { MEETINGS = 20 };

static void *meet_often(void *barrier)
{
    for (int i = 0; i < MEETINGS; i++) {
        int rc = lk_barrier_wait(barrier);
        if (rc != 0 && rc != LK_BARRIER_SERIAL)
            fail("barrier");
    }
    return NULL;
}

static void barrier(const struct place *place, int n)
{
    char name[40];
    lk_barrier_t all;
    lk_client_t *client = open_client(place->url);
    struct wire *asking = wire_open(place->address);
    pthread_t *ids = calloc((size_t)n, sizeof *ids);
    snprintf(name, sizeof name, "barrier-%lld", (long long)now_ns());
    if (lk_barrier_init(&all, client, name, (unsigned)n, NULL) != 0)
        fail("barrier");
    struct server_cost before = server_cost(asking, place->server);
    for (int i = 0; i < n; i++)
        if (pthread_create(&ids[i], NULL, meet_often, &all) != 0)
            fail("thread");
    for (int i = 0; i < n; i++)
        pthread_join(ids[i], NULL);
    tell((double)server_spent(asking, place->server, before).scripts / MEETINGS / n, "barrier.asked.%d", n);
    free(ids);
    wire_close(asking);
    lk_barrier_destroy(&all);
    lk_client_close(client);
}

/* --- clients that do nothing ------------------------------------------------------------------------------------------ */

static double connections(struct wire *asking)
{
    struct wire_reply reply = wire_ask(asking, WORDS("INFO", "clients"));
    char *text = strndup(reply.bytes, reply.length);
    const char *at = strstr(text, "connected_clients:");
    double count = at == NULL ? 0 : strtod(at + strlen("connected_clients:"), NULL);
    free(text);
    return count;
}

static void *wait_once(void *arg)
{
    subject_pair(arg);
    return NULL;
}

static void idle(const struct place *place, int n)
{
    enum { SETTLE_MS = 6000, SPAN_MS = 20000 }; /* who waits for long rests */
    if (n > IDLE_MAX)
        fail("idle");
    struct wire *asking = wire_open(place->address);
    lk_client_t *clients[IDLE_MAX], *holding = open_client(place->url);
    struct subject held, wanted[IDLE_MAX];
    pthread_t ids[IDLE_MAX];
    subject_init(&held, &subject_kinds[0], holding, "idle");
    double before_clients = connections(asking);
    for (int i = 0; i < n; i++) {
        clients[i] = open_client(place->url);
        subject_init(&wanted[i], &subject_kinds[0], clients[i], "idle");
        subject_pair(&wanted[i]);
    }
    tell((connections(asking) - before_clients) / n, "idle.connections");
    if (held.kind->take(&held) != 0)
        fail("lock");
    for (int i = 0; i < n; i++)
        if (pthread_create(&ids[i], NULL, wait_once, &wanted[i]) != 0)
            fail("thread");
    sleep_ms(SETTLE_MS);
    struct server_cost before = server_cost(asking, place->server);
    sleep_ms(SPAN_MS);
    struct server_cost spent = server_spent(asking, place->server, before);
    tell((double)spent.asked / n / (SPAN_MS / 1e3), "idle.asks");
    give_back(&held);
    for (int i = 0; i < n; i++) {
        pthread_join(ids[i], NULL);
        subject_destroy(&wanted[i]);
        lk_client_close(clients[i]);
    }
    subject_destroy(&held);
    lk_client_close(holding);
    wire_close(asking);
}

static const struct question {
    const char *name;
    void (*ask)(const struct place *place, int n);
} questions[] = {
    { "objects", objects }, { "renewals", renewals }, { "far", far_holds },
    { "readers", readers }, { "permits", permits },   { "idle", idle },
    { "broadcast", broadcast }, { "signals", signals }, { "barrier", barrier },
};

int main(int argc, char **argv)
{
    struct place place;
    int at = place_read(&place, argc, argv, "objects|renewals|far|readers|permits|idle|broadcast|signals|barrier N ...");
    for (; at + 1 < argc; at += 2)
        for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
            if (strcmp(argv[at], questions[i].name) == 0)
                questions[i].ask(&place, (int)strtol(argv[at + 1], NULL, 10));
    return 0;
}
