/* SPDX-License-Identifier: MIT */
/*
 * orders.c - one read-write lock that many readers and writers want all the time: what does each order make of it?
 *
 * Each has a client of its own, as a process would, and comes back at once.
 *
 *   together.<order>                     readers that are in at once, on average while any is
 *   reads.<order>, writes.<order>        how many a second
 *   wait.read.<order>, wait.write.<order>    the longest, ms; a wait that is not over counts as well
 */
#include "measure.h"

#include <latchkey/latchkey.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { READERS = 16, WRITERS = 8, ALL = READERS + WRITERS, HOLD_MS = 2, LONG_MS = 3000 };

struct visitor {
    pthread_t thread;
    lk_client_t *client;
    lk_rwlock_t lock;
    struct scene *scene;
    int64_t longest_ns, visits;
    bool writes;
};

struct scene {
    atomic_bool begun, over;
    pthread_mutex_t mu; /* what follows */
    int inside;         /* readers */
    int64_t since_ns, read_ns, any_ns;
    int64_t ends_ns; /* written before it begins */
    struct visitor visitors[ALL];
};

static const struct order {
    const char *name;
    int prefer;
} orders[] = { { "fair", LK_RWLOCK_PREFER_FAIR },
               { "phase_fair", LK_RWLOCK_PREFER_PHASE_FAIR },
               { "reader", LK_RWLOCK_PREFER_READER },
               { "writer", LK_RWLOCK_PREFER_WRITER } };

static void sleep_ms(int64_t ms)
{
    struct timespec pause = { ms / 1000, ms % 1000 * 1000000 };
    nanosleep(&pause, NULL);
}

/* A reader came, 1, or goes, -1. */
static void count(struct scene *scene, int change)
{
    pthread_mutex_lock(&scene->mu);
    int64_t now = now_ns(), past = now - scene->since_ns;
    scene->read_ns += past * scene->inside;
    scene->any_ns += scene->inside > 0 ? past : 0;
    scene->inside += change;
    scene->since_ns = now;
    pthread_mutex_unlock(&scene->mu);
}

static void visit(struct visitor *self)
{
    int64_t began = now_ns();
    int rc = self->writes ? lk_rwlock_wrlockfor(&self->lock, LONG_MS) : lk_rwlock_rdlockfor(&self->lock, LONG_MS);
    int64_t now = now_ns(), waited = (now < self->scene->ends_ns ? now : self->scene->ends_ns) - began;
    if (waited > self->longest_ns)
        self->longest_ns = waited;
    if (rc == ETIMEDOUT)
        return;
    if (rc != 0)
        fail("lock");
    if (!self->writes)
        count(self->scene, 1);
    sleep_ms(HOLD_MS);
    if (!self->writes)
        count(self->scene, -1);
    self->visits += !atomic_load(&self->scene->over);
    if (lk_rwlock_unlock(&self->lock) != 0)
        fail("unlock");
}

static void *come_and_go(void *arg)
{
    struct visitor *self = arg;
    while (!atomic_load(&self->scene->begun))
        sleep_ms(1);
    while (!atomic_load(&self->scene->over))
        visit(self);
    return NULL;
}

static void arrive(struct visitor *self, const struct place *place, const struct order *order)
{
    const lk_rwlockattr_t attr = { .size = sizeof attr, .prefer = order->prefer };
    if (lk_client_open(&self->client, place->url) != 0 ||
        lk_rwlock_init(&self->lock, self->client, order->name, &attr) != 0 || lk_rwlock_rdlock(&self->lock) != 0 ||
        lk_rwlock_unlock(&self->lock) != 0) /* scripts are known, nobody's first call is slow */
        fail(order->name);
    if (pthread_create(&self->thread, NULL, come_and_go, self) != 0)
        fail("thread");
}

static void depart(struct visitor *self)
{
    pthread_join(self->thread, NULL);
    if (lk_rwlock_destroy(&self->lock) != 0 || lk_client_close(self->client) != 0)
        fail("close");
}

static void tell_all(const struct scene *scene, const struct order *order, double seconds)
{
    double visits[2] = { 0 }, longest[2] = { 0 };
    for (const struct visitor *v = scene->visitors; v < scene->visitors + ALL; v++) {
        visits[v->writes] += (double)v->visits;
        if ((double)v->longest_ns > longest[v->writes])
            longest[v->writes] = (double)v->longest_ns;
    }
    tell(scene->any_ns > 0 ? (double)scene->read_ns / (double)scene->any_ns : 0, "together.%s", order->name);
    tell(visits[0] / seconds, "reads.%s", order->name);
    tell(visits[1] / seconds, "writes.%s", order->name);
    tell(longest[0] / 1e6, "wait.read.%s", order->name);
    tell(longest[1] / 1e6, "wait.write.%s", order->name);
}

static void measure(const struct place *place, const struct order *order)
{
    struct scene *scene = calloc(1, sizeof *scene);
    pthread_mutex_init(&scene->mu, NULL);
    for (int i = 0; i < ALL; i++) {
        scene->visitors[i].scene = scene;
        scene->visitors[i].writes = i % 3 == 2;
        arrive(&scene->visitors[i], place, order);
    }
    scene->ends_ns = now_ns() + place->ms * 1000000;
    atomic_store(&scene->begun, true);
    sleep_ms(place->ms);
    atomic_store(&scene->over, true);
    for (int i = 0; i < ALL; i++)
        depart(&scene->visitors[i]);
    tell_all(scene, order, (double)place->ms / 1e3);
    free(scene);
}

int main(int argc, char **argv)
{
    struct place place;
    place_read(&place, argc, argv, "");
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        measure(&place, &orders[i]);
    return 0;
}
