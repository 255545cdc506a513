/* SPDX-License-Identifier: MIT */
/*
 * several.c - one thread: a pair of several locks at once, and of one lock on several masters, beside one lock on one
 *
 *   multi.us.<n>         median of a pair of n mutexes at once; 1: of one by itself
 *   multi.pairs.<n>      pairs per second of that
 *   redlock.us.one       median of a pair of a mutex at the first of the masters
 *   redlock.us.<n>       of a redlock at the first n of them
 *   redlock.pairs.<n>    pairs per second of that
 *
 * All of one server take turns, and so do those of the masters, so that they see the same noise.
 */
#include "measure.h"
#include "subject.h"

#include <stdio.h>
#include <string.h>

enum { SAMPLES = 5000, WARM = 50, MOST = 8, WAYS_MAX = 4 };

struct way {
    char name[16];
    int (*pair)(struct way *way);
    lk_client_t *client; /* NULL: another way's */
    lk_mutex_t mutexes[MOST];
    int count;
    lk_multi_t multi;
    lk_redlock_t redlock;
    int64_t ns[SAMPLES], sum_ns;
};

/* --- what is measured --------------------------------------------------------------------------------------------- */

static int pair_one(struct way *way)
{
    int rc = lk_mutex_lock(&way->mutexes[0]);
    return rc != 0 ? rc : lk_mutex_unlock(&way->mutexes[0]);
}

static int pair_multi(struct way *way)
{
    int rc = lk_multi_lock(&way->multi);
    return rc != 0 ? rc : lk_multi_unlock(&way->multi);
}

static int pair_redlock(struct way *way)
{
    int rc = lk_redlock_lock(&way->redlock);
    return rc != 0 ? rc : lk_redlock_unlock(&way->redlock);
}

static void init_mutexes(struct way *way, lk_client_t *client, int count)
{
    char name[32];
    for (way->count = 0; way->count < count; way->count++) {
        snprintf(name, sizeof name, "%s-%d", way->name, way->count);
        if (lk_mutex_init(&way->mutexes[way->count], client, name, NULL) != 0)
            fail(name);
    }
}

static void init_one(struct way *way, const char *name, lk_client_t *client)
{
    snprintf(way->name, sizeof way->name, "%s", name);
    way->pair = pair_one;
    init_mutexes(way, client, 1);
}

static void init_multi(struct way *way, lk_client_t *client, int count)
{
    snprintf(way->name, sizeof way->name, "%d", count);
    way->pair = pair_multi;
    init_mutexes(way, client, count);
    if (lk_multi_init(&way->multi) != 0)
        fail("several at once");
    for (int i = 0; i < count; i++)
        if (lk_multi_addmutex(&way->multi, &way->mutexes[i]) != 0)
            fail("several at once");
}

static void init_redlock(struct way *way, char **masters, int count)
{
    static const lk_redlockattr_t attr = {
        .size = sizeof attr,
        .node_timeout_ms = 6000, /* see PATIENCE */
        .longest_lease_ms = -1,  /* they started a moment ago */
    };
    char url[400] = "redis-quorum://";
    for (int i = 0; i < count; i++)
        snprintf(url + strlen(url), sizeof url - strlen(url), "%s%s", i > 0 ? "," : "", masters[i]);
    snprintf(url + strlen(url), sizeof url - strlen(url), "?" PATIENCE);
    snprintf(way->name, sizeof way->name, "%d", count);
    way->pair = pair_redlock;
    way->client = open_client(url);
    if (lk_redlock_init(&way->redlock, way->client, "orders", &attr) != 0)
        fail(url);
}

static void end(struct way *way)
{
    int rc = 0;
    if (way->pair == pair_multi)
        rc |= lk_multi_destroy(&way->multi);
    if (way->pair == pair_redlock)
        rc |= lk_redlock_destroy(&way->redlock);
    for (int i = 0; i < way->count; i++)
        rc |= lk_mutex_destroy(&way->mutexes[i]);
    if (way->client != NULL)
        rc |= lk_client_close(way->client);
    if (rc != 0)
        fail(way->name);
}

/* --- turns ------------------------------------------------------------------------------------------------------------ */

static void take_turn(struct way *way, int sample)
{
    int64_t began = now_ns();
    if (way->pair(way) != 0)
        fail(way->name);
    way->ns[sample] = now_ns() - began;
}

static void measure(struct way *ways, int count, int64_t ms, const char *what)
{
    int samples = 0;
    int64_t until = now_ns() + ms * 1000000;
    for (int turn = 0; samples < SAMPLES && (turn <= WARM || now_ns() < until); turn++) {
        for (int i = 0; i < count; i++)
            take_turn(&ways[i], samples);
        samples += turn >= WARM; /* what came before is overwritten */
    }
    for (int i = 0; i < count; i++) {
        for (int sample = 0; sample < samples; sample++)
            ways[i].sum_ns += ways[i].ns[sample];
        tell(1e9 * samples / (double)ways[i].sum_ns, "%s.pairs.%s", what, ways[i].name);
        tell(median_us(ways[i].ns, samples), "%s.us.%s", what, ways[i].name);
        end(&ways[i]);
    }
}

static void measure_multi(const struct place *place)
{
    static struct way ways[WAYS_MAX];
    lk_client_t *client = open_client(place->url);
    init_one(&ways[0], "1", client);
    for (int i = 1; i < WAYS_MAX; i++)
        init_multi(&ways[i], client, 1 << i);
    measure(ways, WAYS_MAX, place->ms, "multi");
    if (lk_client_close(client) != 0)
        fail(place->url);
}

static void measure_redlock(const struct place *place, char **masters, int count)
{
    static struct way ways[WAYS_MAX];
    char url[120];
    int made = 1;
    snprintf(url, sizeof url, "redis://%s?" PATIENCE, masters[0]);
    ways[0].client = open_client(url);
    init_one(&ways[0], "one", ways[0].client);
    for (int nodes = 3; nodes <= count && made < WAYS_MAX; nodes += 2)
        init_redlock(&ways[made++], masters, nodes);
    measure(ways, made, place->ms, "redlock");
}

int main(int argc, char **argv)
{
    struct place place;
    int at = place_read(&place, argc, argv, "[MASTER...]");
    measure_multi(&place);
    if (at < argc)
        measure_redlock(&place, argv + at, argc - at);
    return 0;
}
