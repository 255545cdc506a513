/* SPDX-License-Identifier: MIT */
/*
 * min_replicas_test.c - F32: how long a master that is cut off serves those who still reach it
 *
 * The figures in docs/configuration.md are from here. The Sentinels are gone: whoever looks for a master anew finds no
 * other one.
 *
 * labels: threads
 * simulated: yes
 * seconds: 28
 */
#include "failover.h"
#include "subject.h"

#include <stdio.h>

enum { LONG_MS = 6000, LEASE_MS = 2000, LAG_MS = 1000, CRON_MS = 1000 /* how often a master looks who is there */ };

/* The replicas are silent: their connections do not end. */
static void fall_silent(struct failover *f, int node)
{
    (void)node;
    failover_stop(f, 1);
    failover_stop(f, 2);
}

static void speak_again(struct failover *f, int node)
{
    (void)node;
    failover_cont(f, 1);
    failover_cont(f, 2);
}

static const struct fault {
    const char *name;
    void (*begin)(struct failover *f, int node);
    void (*end)(struct failover *f, int node);
} cut_off = { "links that end", failover_cutoff, failover_heal },
  silence = { "links that are silent", fall_silent, speak_again };

/*
 * What a master granted it may refuse to take back, as it looks now and then who is there; and one that stood still for
 * longer than a call waits has not answered. It ends with its lease then.
 */
static void give_back(lk_mutex_t *job)
{
    int rc = lk_mutex_unlock(job);
    if (rc != 0 && rc != ENOTCONN && rc != EIO && rc != ESTALE)
        fail_msg("an unlock returned %s: %s", code_name(rc), lk_errortext());
}

/* When it was asked that, at most LONG_MS after the fault. */
static int64_t asked_at(int64_t began_ms)
{
    int64_t at_ms = now_ms() - began_ms;
    return at_ms < LONG_MS ? at_ms : LONG_MS;
}

/* How long after a fault does it grant and renew? At most LONG_MS: then it is asked for the last time. */
static int64_t serves_for_ms(struct world *w, const struct fault *fault, const char *options, const char *settings)
{
    char all[96], name[16];
    struct failover *f = failover_begin(w, NULL);
    if (settings[0] != '\0')
        failover_configure(f, settings);
    failover_sync(f, 0);
    for (int i = 0; i < FAILOVER_SENTINELS; i++)
        failover_killsentinel(f, i);
    snprintf(all, sizeof all, "lease=2s&command_timeout=300ms%s", options);
    lk_client_t *client = world_client_at(w, f, failover_listurl(f, all));
    lk_mutex_t *held = world_mutex(w, client, "held", NULL);
    int64_t granted_ms = 0, renewed_ms = 0, at_ms = 0, left_ms = 1;
    eventually(lk_mutex_lock(held) == 0, PATIENT_MS); /* replicas may be slow to acknowledge it */
    fault->begin(f, 0);
    int64_t began_ms = now_ms();
    for (int i = 0; at_ms < LONG_MS; i++) {
        snprintf(name, sizeof name, "job %d", i % 1000);
        lk_mutex_t *job = world_mutex(w, client, name, NULL);
        at_ms = asked_at(began_ms);
        if (lk_mutex_trylock(job) == 0) {
            granted_ms = at_ms;
            give_back(job);
        }
        int64_t looked_ms = asked_at(began_ms);
        if (lk_mutex_remaining(held, &left_ms) == 0 && left_ms > 0)
            renewed_ms = looked_ms;
        world_close(w, job);
        sleep_ms(50);
    }
    print_message("%s, \"%s%s\": it granted for %lld ms, and a hold there was good for %lld ms\n", fault->name,
                  settings, options, (long long)granted_ms, (long long)renewed_ms);
    fault->end(f, 0);
    (void)lk_mutex_unlock(held);
    world_close(w, client);
    return granted_ms > renewed_ms ? granted_ms : renewed_ms;
}

#define MIN_REPLICAS "CONFIG SET min-replicas-to-write 1 min-replicas-max-lag 1"

static void it_serves_as_long_as_it_is_cut_off(struct world *w)
{
    assert_between(serves_for_ms(w, &cut_off, "", ""), LONG_MS - 1000, LONG_MS);
}

static void min_replicas_end_it_soon(struct world *w)
{
    assert_between(serves_for_ms(w, &cut_off, "", MIN_REPLICAS), 0, LEASE_MS + SLACK_MS);
}

static void min_replicas_end_a_silent_one_later(struct world *w)
{
    assert_between(serves_for_ms(w, &silence, "", MIN_REPLICAS), 0, 2 * LAG_MS + CRON_MS + LEASE_MS + SLACK_MS);
}

static void wait_replicas_end_both_with_the_lease(struct world *w)
{
    assert_between(serves_for_ms(w, &silence, "&wait_replicas=1", ""), 0, LEASE_MS + SLACK_MS);
}

int main(void)
{
    return world_run(it_serves_as_long_as_it_is_cut_off, min_replicas_end_it_soon, min_replicas_end_a_silent_one_later,
                     wait_replicas_end_both_with_the_lease);
}
