/* SPDX-License-Identifier: MIT */
/*
 * messages_test.c - waiters of a cluster hear that they were granted, each at the node of its slot, also after a move
 *
 * labels: threads
 * simulated: yes
 * seconds: 40
 */
#include "cluster.h"
#include "subject.h"

#include <stdlib.h>
#include <string.h>

/* Who polls, and does not hear, comes too late. */
#define OPTIONS "lease=60s&poll=60s&command_timeout=2s"
enum { SOON_MS = 12000 };

static int64_t heard_at(struct cluster *c, int node)
{
    return cluster_int(c, node, "EVAL %s 0", "return #redis.call('PUBSUB', 'SHARDCHANNELS', 'latchkey:client:*')");
}

/* Does who waits for it hear messages there? */
static bool is_heard(struct cluster *c, int node, const struct subject *s)
{
    return cluster_int(c, node, "EVAL %s 0 %s",
                       "return #redis.call('PUBSUB', 'SHARDCHANNELS', 'latchkey:client:*{' .. ARGV[1] .. '}')",
                       s->name) == 1;
}

/* Messages that a client heard so far. */
static long long heard_by(lk_client_t *client)
{
    static const char name[] = "\"messages\":";
    char *json = NULL;
    assert_lk(0, lk_client_stats(client, &json));
    const char *at = strstr(json, name);
    assert_non_null(at);
    long long count = strtoll(at + sizeof name - 1, NULL, 10);
    lk_free(json);
    return count;
}

static void hand_over(struct cluster *c, int node, struct subject *from, struct subject *to)
{
    struct errand errand;
    errand_start(&errand, to, 6 * SOON_MS);
    eventually(cluster_int(c, node, "EVAL %s 1 %s", to->kind->queued, to->name) == 1, SOON_MS);
    eventually(is_heard(c, node, to), SOON_MS);
    sleep_ms(200);
    assert_lk(0, subject_give(from));
    errand_join(&errand);
    assert_lk(0, errand.took);
    assert_lk(0, errand.gave);
    assert_true(errand.took_ms - errand.began_ms < 2 * SOON_MS);
}

/* Of each kind, and of a latch; nothing is said to all nodes. */
static void waiters_hear(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    lk_client_t *one = cluster_client(c, OPTIONS), *other = cluster_client(c, OPTIONS);
    for (const struct subject_kind *kind = subject_kinds; kind->name != NULL; kind++) {
        int node = (int)(kind - subject_kinds) % CLUSTER_MASTERS;
        const char *name = cluster_name(c, node, kind->fenced ? "fenced" : "other");
        struct subject *mine = world_subject(w, one, subject_keeper(kind), name);
        struct subject *theirs = world_subject(w, other, kind, name);
        assert_lk(0, subject_take(mine, SOON_MS));
        long long heard = heard_by(other);
        hand_over(c, node, mine, theirs);
        assert_true(heard_by(other) > heard);
    }
    for (int node = 0; node < CLUSTER_MASTERS; node++)
        assert_null(strstr(cluster_str(c, node, "INFO commandstats"), "cmdstat_publish:"));
}

/* A slot moves while somebody waits: it is granted there what is given back there. */
static void a_waiter_follows(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    lk_client_t *one = cluster_client(c, OPTIONS), *other = cluster_client(c, OPTIONS);
    const char *name = cluster_name(c, 0, "orders");
    struct subject *mine = world_subject(w, one, subject_kinds, name),
                   *theirs = world_subject(w, other, subject_kinds, name);
    struct errand errand;
    assert_lk(0, subject_take(mine, SOON_MS));
    errand_start(&errand, theirs, 6 * SOON_MS);
    eventually(heard_at(c, 0) == 1, SOON_MS);
    sleep_ms(200);
    cluster_move(c, cluster_slot(c, name), 0, 1);
    eventually(heard_at(c, 1) == 1, SOON_MS);
    assert_int_equal(0, heard_at(c, 0));
    sleep_ms(200);
    int64_t gave_ms = now_ms();
    assert_lk(0, subject_give(mine));
    errand_join(&errand);
    assert_lk(0, errand.took);
    assert_lk(0, errand.gave);
    assert_between(errand.took_ms - gave_ms, 0, SOON_MS);
}

/*
 * Given back while the waiter's subscription is on its way to the next node, where it comes too early for it: once it is
 * heard there it asks.
 */
static void nothing_is_missed_on_the_way(struct world *w)
{
    static const int after_ms[] = { 0, 10, 50, 100, 120, 150 };
    struct cluster *c = cluster_begin(w, false);
    lk_client_t *one = cluster_client(c, OPTIONS), *other = cluster_client(c, OPTIONS);
    const char *name = cluster_name(c, 0, "orders");
    struct subject *mine = world_subject(w, one, &subject_kinds[1], name),
                   *theirs = world_subject(w, other, &subject_kinds[1], name);
    for (int i = 0; i < 6; i++) {
        struct errand errand;
        assert_lk(0, subject_take(mine, SOON_MS));
        errand_start(&errand, theirs, 6 * SOON_MS);
        eventually(heard_at(c, i % 2) == 1, SOON_MS);
        cluster_move(c, cluster_slot(c, name), i % 2, 1 - i % 2);
        sleep_ms(after_ms[i]);
        int64_t gave_ms = now_ms();
        assert_lk(0, subject_give(mine));
        errand_join(&errand);
        assert_lk(0, errand.took);
        assert_lk(0, errand.gave);
        assert_between(errand.took_ms - gave_ms, -SLACK_MS, SOON_MS);
    }
}

int main(void)
{
    return world_run(waiters_hear, a_waiter_follows, nothing_is_missed_on_the_way);
}
