/* SPDX-License-Identifier: MIT */
/*
 * redlock_test.c - every allocation and every system call on the way of a redlock fails: held by a majority or not at
 * all, and at none of the servers anything is left
 *
 * labels: memory
 * simulated: yes
 * seconds: 22
 * processors: 2
 * support: failing
 */
#include "failing/failing.h"
#include "quorum.h"

static const lk_redlockattr_t fenced = { .size = sizeof fenced, .fenced = 1, .longest_lease_ms = -1,
                                         .node_timeout_ms = 300 };

static struct quorum *nodes;
static lk_client_t *client;
static lk_redlock_t *r;

static bool nothing_is_left(void)
{
    return quorum_having(nodes, "jobs") + quorum_having(nodes, "another") == 0;
}

/* It works at all servers, and all is given back there. */
static void works(lk_client_t *whose)
{
    lk_redlock_t all;
    assert_lk(0, lk_redlock_init(&all, whose, "jobs", &fenced));
    quorum_lockall(nodes, &all, "jobs");
    assert_lk(0, lk_redlock_unlock(&all));
    assert_lk(0, lk_redlock_destroy(&all));
    eventually(nothing_is_left(), FAILING_LEASE_MS);
}

/* All servers are connected, and know the scripts. */
static void begin(struct world *w)
{
    client = quorum_client(nodes, failing_options());
    r = quorum_redlock(w, client, "jobs", &fenced);
    works(client);
}

static void end(struct world *w)
{
    failing_end();
    works(client);
    world_close(w, client);
}

static int take(int64_t limit_ms)
{
    return tried(0, lk_redlock_lockfor(r, limit_ms), ENOMEM, UNREACHABLE, ETIMEDOUT);
}

static void give(void)
{
    tried(0, lk_redlock_unlock(r), UNREACHABLE, ESTALE);
}

static void open_url(struct world *w)
{
    lk_client_t *opened = NULL;
    const char *url = quorum_url(nodes, failing_options());
    (void)w;
    failing_begin();
    int rc = tried(0, lk_client_open(&opened, url), ENOMEM, ENOTCONN);
    failing_end();
    if (rc != 0)
        assert_lk(0, open_patiently(&opened, quorum_url(nodes, "lease=3s&connect_timeout=3s")));
    works(opened);
    assert_lk(0, lk_client_close(opened));
}

static void lock_and_look(struct world *w)
{
    lk_redlock_t another;
    uint64_t token;
    begin(w);
    failing_begin();
    if (tried(0, lk_redlock_init(&another, client, "another", &fenced), ENOMEM) == 0)
        tried(0, lk_redlock_destroy(&another));
    if (take(failing_patience_ms()) == 0) {
        assert_that(spared(quorum_having(nodes, "jobs")) >= 2);
        tried(0, lk_redlock_token(r, &token), ESTALE);
        give();
    }
    end(w);
}

/* Made and used for an owner: the owner can be freed whatever failed. */
static void lock_for_an_owner(struct world *w)
{
    lk_how_t how = { .size = sizeof how, .lease_ms = FAILING_LEASE_MS };
    begin(w);
    failing_begin();
    how.timeout_ms = failing_patience_ms();
    if (tried(0, lk_owner_new(client, &how.owner), ENOMEM) == 0) {
        if (tried(0, lk_redlock_lockwith(r, &how), ENOMEM, UNREACHABLE, ETIMEDOUT) == 0) {
            tried(0, lk_redlock_checkby(r, how.owner), ENOMEM, UNREACHABLE, ESTALE);
            tried(0, lk_redlock_unlockby(r, how.owner), UNREACHABLE, ESTALE);
        }
        failing_end();
        assert_lk(0, lk_owner_free(how.owner));
    }
    end(w);
}

static void extend_and_look(struct world *w)
{
    lk_redlockinfo_t info = LK_REDLOCKINFO_INIT;
    int64_t left_ms;
    begin(w);
    assert_lk(0, lk_redlock_lock(r));
    eventually(lk_redlock_extend(r, FAILING_LEASE_MS) == 0, FAILING_LONG_MS); /* the watchdog has its connections */
    failing_begin();
    tried(0, lk_redlock_lockfor(r, failing_patience_ms()), UNREACHABLE, ESTALE);
    tried(0, lk_redlock_unlock(r), ESTALE);
    tried(0, lk_redlock_extend(r, FAILING_LEASE_MS), UNREACHABLE, ESTALE);
    tried(0, lk_redlock_check(r), ENOMEM, UNREACHABLE, ESTALE);
    tried(0, lk_redlock_info(r, &info), ENOMEM, UNREACHABLE);
    tried(0, lk_redlock_remaining(r, &left_ms), ESTALE);
    give();
    end(w);
}

static void close_while_holding(struct world *w)
{
    begin(w);
    assert_lk(0, lk_redlock_lock(r));
    failing_begin();
    tried(0, close_by_hand(w, client), EIO);
    failing_end();
    world_close(w, r);
    eventually(nothing_is_left(), FAILING_LONG_MS);
}

static void all_of(struct world *w, enum failing kind)
{
    nodes = quorum_begin(w, 3);
    failing_sparsely(9); /* there are many, as each run asks three servers for everything */
    each_failure(w, "open", kind, open_url);
    if (kind == FAIL_ALLOCATION)
        failing_sparsely(1);
    each_failure(w, "lock", kind, lock_and_look);
    each_failure(w, "owner", kind, lock_for_an_owner);
    each_failure(w, "extend", kind, extend_and_look);
    each_failure(w, "close", kind, close_while_holding);
    world_close(w, nodes);
}

int main(void)
{
    return all_failures(all_of);
}
