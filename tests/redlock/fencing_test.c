/* SPDX-License-Identifier: MIT */
/*
 * fencing_test.c - tokens rise, whichever majority grants, as a majority learns the largest one before the lock returns
 *
 * labels: threads
 * simulated: yes
 */
#include "quorum.h"

#define TIMES "lease=10s&command_timeout=2500ms" /* where two of five are away, none of the others may be late */
#define TOKEN "redisson_lock_token:{jobs}"

static const lk_redlockattr_t fenced = { .size = sizeof fenced, .fenced = 1, .longest_lease_ms = -1,
                                          .node_timeout_ms = 300 };
static const lk_redlockattr_t unfenced = { .size = sizeof unfenced, .longest_lease_ms = -1 };

/* Take it, and say its token. */
static uint64_t token_of(lk_redlock_t *r)
{
    uint64_t token = 0;
    assert_lk(0, lk_redlock_lockfor(r, 10000));
    assert_lk(0, lk_redlock_token(r, &token));
    assert_lk(0, lk_redlock_unlock(r));
    return token;
}

static int servers_with_token(struct quorum *q, uint64_t token)
{
    int count = 0;
    for (int i = 0; i < 5; i++)
        count += quorum_int(q, i, "GET " TOKEN) >= (int64_t)token;
    return count;
}

static void a_majority_knows_the_largest_token(struct world *w)
{
    struct quorum *q = quorum_begin(w, 5);
    lk_redlock_t *r = quorum_redlock(w, quorum_client(q, TIMES), "jobs", &fenced);
    quorum_int(q, 3, "SET " TOKEN " 4000000000000000 EX 1000"); /* far ahead: its clock was, once */
    quorum_stop(q, 0); /* so that the other three are the majority */
    quorum_stop(q, 1);
    uint64_t token = token_of(r);
    assert_true(token > 4000000000000000);
    quorum_cont(q, 1); /* a majority of the four has one that was told of that token */
    quorum_int(q, 3, "DEL " TOKEN);
    for (int i = 0; i < 5; i++) {
        uint64_t next = token_of(r);
        assert_true(next > token);
        token = next;
    }
    quorum_cont(q, 0);
    assert_true(servers_with_token(q, token) >= 3);
}

/* Clocks differ by years, and another minority is away each time. */
static void tokens_rise_whoever_grants(struct world *w)
{
    struct quorum *q = quorum_begin(w, 5);
    lk_client_t *clients[2] = { quorum_client(q, TIMES), quorum_client(q, TIMES) };
    lk_redlock_t *r[2] = { quorum_redlock(w, clients[0], "jobs", &fenced),
                           quorum_redlock(w, clients[1], "jobs", &fenced) };
    uint64_t token = 0;
    for (int i = 0; i < 5; i++)
        quorum_int(q, i, "EVAL %s 1 " TOKEN " %d", "return redis.call('SET', KEYS[1], ARGV[1] .. '000000000000', 'EX', '1000') and 1",
                   2000 + 700 * i);
    for (int i = 0; i < 10; i++) {
        int a = i % 5, b = (i + 2) % 5;
        quorum_stop(q, a);
        quorum_stop(q, b);
        uint64_t next = token_of(r[i % 2]);
        assert_true(next > token);
        token = next;
        quorum_cont(q, a);
        quorum_cont(q, b);
    }
    eventually(quorum_having(q, "jobs") == 0, 5000);
}

static void without_the_attribute_there_is_none(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    lk_redlock_t *r = quorum_redlock(w, quorum_client(q, TIMES), "jobs", &unfenced);
    uint64_t token;
    assert_lk(EPERM, lk_redlock_token(r, &token));
    assert_lk(0, lk_redlock_lock(r));
    assert_lk(ENOTSUP, lk_redlock_token(r, &token));
    assert_lk(0, lk_redlock_unlock(r));
}

int main(void)
{
    return world_run(a_majority_knows_the_largest_token, tokens_rise_whoever_grants,
                     without_the_attribute_there_is_none);
}
