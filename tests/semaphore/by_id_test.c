/* SPDX-License-Identifier: MIT */
/*
 * by_id_test.c - permits with ids are asked about and extended by their ids, by who took them and by others
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 17
 */
#include "client/client.h"
#include "log.h"
#include "news.h"
#include "proxy.h"

#include <string.h>

enum { LEASE_MS = 2500, OTHER_MS = 4500, TOTAL = 4 };

static lk_client_t *client;
static lk_sem_t *pool, *elsewhere;
static char id[LK_PERMIT_ID];

static const lk_semattr_t leased = { .size = sizeof leased, .leased = 1, .lease_ms = LEASE_MS };

static void open_pool(struct world *w)
{
    world_allow(w, "latchkey:*");
    client = world_client(w, "");
    pool = world_sem(w, client, "pool", TOTAL, &leased);
    elsewhere = world_sem(w, world_client(w, ""), "pool", TOTAL, &leased);
}

/* Of the lease that the server has. */
static int64_t server_left(struct world *w)
{
    return world_int(w, "EVAL %s 1 latchkey:permits:{pool} %s",
                     "local t = redis.call('TIME') return (redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0) - t[1] * 1000 "
                     "- math.floor(t[2] / 1000)",
                     id);
}

WORK(extend, arg, lk_sem_extendid(pool, id, 60000))

/* Any thread of the client that took it, which renews it with that lease from then on. */
static void who_took_it_sets_its_lease(struct world *w)
{
    int64_t ms;
    open_pool(w);
    assert_lk(0, lk_sem_acquireid(pool, 0, id));
    assert_lk(0, lk_sem_checkid(pool, id));
    assert_lk(0, lk_sem_remainingid(pool, id, &ms));
    assert_between(ms, 1, LEASE_MS);
    assert_int_equal(0, in_thread(extend, NULL));
    assert_lk(0, lk_sem_remainingid(pool, id, &ms));
    assert_between(ms, LEASE_MS + 1, 60000);
    assert_between(server_left(w), 60000 - SLACK_MS, 60000);
    assert_lk(0, lk_sem_extendid(pool, id, OTHER_MS));
    int64_t left_ms = server_left(w), before_ms;
    assert_between(left_ms, 1, OTHER_MS);
    do {
        before_ms = left_ms;
        sleep_ms(10);
        left_ms = server_left(w);
    } while (left_ms > 0 && left_ms <= before_ms);
    assert_between(left_ms, LEASE_MS + 1, OTHER_MS); /* it was renewed */
    assert_lk(0, lk_sem_remainingid(pool, id, &ms));
    assert_between(ms, 1, OTHER_MS);
    assert_lk(0, lk_sem_releaseid(pool, id));
    assert_lk(EPERM, lk_sem_remainingid(pool, id, &ms));
    assert_lk(EPERM, lk_sem_checkid(pool, id));
    assert_lk(EPERM, lk_sem_extendid(pool, id, LEASE_MS));
    assert_int_equal(0, world_int(w, "EVAL %s 1 latchkey:permits:{pool} %s",
                                  "return redis.call('ZSCORE', KEYS[1], ARGV[1]) and 1 or 0", id));
}

/* Others may ask the server, and let it last; what its client believes is never cut short. */
static void others_only_let_it_last(struct world *w)
{
    int64_t ms, theirs_ms;
    open_pool(w);
    assert_lk(0, lk_sem_acquireid(pool, 0, id));
    assert_lk(0, lk_sem_extendid(pool, id, 30000));
    assert_lk(0, lk_sem_checkid(elsewhere, id));
    assert_lk(0, lk_sem_extendid(elsewhere, id, 100));
    assert_between(server_left(w), 30000 - SLACK_MS, 30000);
    assert_lk(0, lk_sem_remainingid(elsewhere, id, &theirs_ms));
    assert_lk(0, lk_sem_remainingid(pool, id, &ms));
    assert_between(theirs_ms, ms, 30000);
    assert_lk(0, lk_sem_extendid(elsewhere, id, 80000));
    assert_between(server_left(w), 80000 - SLACK_MS, 80000);
    assert_lk(0, lk_sem_remainingid(pool, id, &ms));
    assert_between(ms, 1, 30000);
    assert_lk(0, lk_sem_releaseid(elsewhere, id));
    assert_lk(EPERM, lk_sem_extendid(elsewhere, id, 80000));
    assert_lk(EPERM, lk_sem_checkid(pool, id));
}

static int take_and_stay(struct world *w, void *shared)
{
    open_pool(w);
    assert_lk(0, lk_sem_acquireid(pool, 0, shared));
    world_ready(w);
    sleep_ms(60000);
    return 0;
}

/* One whose process was killed is kept by who knows its id. */
static void the_permit_of_a_dead_process_is_kept(struct world *w)
{
    char *shared = world_shared(w, LK_PERMIT_ID);
    int64_t ms;
    pid_t taker = world_fork(w, take_and_stay, shared);
    open_pool(w);
    world_kill(w, taker);
    strcpy(id, shared);
    assert_lk(0, lk_sem_extendid(pool, id, 2 * LEASE_MS));
    sleep_ms(LEASE_MS + 200);
    assert_lk(0, lk_sem_checkid(pool, id));
    assert_lk(0, lk_sem_remainingid(pool, id, &ms));
    assert_between(ms, 1, LEASE_MS);
    sleep_ms(LEASE_MS);
    assert_lk(ESTALE, lk_sem_checkid(pool, id));
    assert_lk(ESTALE, lk_sem_remainingid(pool, id, &ms));
    assert_lk(ESTALE, lk_sem_extendid(pool, id, LEASE_MS)); /* never revived */
    assert_lk(ESTALE, lk_sem_releaseid(pool, id));
}

/* A permit that was given back elsewhere is known to be, before its next renewal; that is no loss to report. */
static void a_check_finds_it_given_back(struct world *w)
{
    struct news news_of;
    int64_t ms;
    open_pool(w);
    news_listen(&news_of, client, "pool");
    assert_lk(0, lk_sem_acquireid(pool, 0, id));
    assert_lk(0, lk_sem_extendid(pool, id, 60000));
    assert_lk(0, lk_sem_releaseid(elsewhere, id));
    assert_lk(0, lk_sem_remainingid(pool, id, &ms)); /* cannot know yet */
    assert_lk(EPERM, lk_sem_checkid(pool, id));
    int rc = lk_sem_remainingid(pool, id, &ms);
    assert_true(rc == ESTALE || rc == EPERM);
    eventually(news(&news_of, LK_EVENT_LOST) == 1, 3000);
    assert_int_equal(LK_REASON_RELEASED, news_reason(&news_of));
}

/* The other client has a connection again after a fault. */
static void connected(void)
{
    eventually(lk_sem_checkid(elsewhere, id) == 0, 5000);
}

/* Lost answers: asked again where the connection was cut; unknown where none came, and nothing is cut short. */
static void answers_get_lost(struct world *w)
{
    int64_t ms;
    world_allow(w, "latchkey:*");
    struct proxy *p = proxy_begin(w);
    pool = world_sem(w, world_client(w, ""), "pool", TOTAL, &leased);
    elsewhere = world_sem(w, proxy_client(p, "command_timeout=1s"), "pool", TOTAL, &leased);
    assert_lk(0, lk_sem_acquireid(pool, 0, id));
    assert_lk(0, lk_sem_extendid(pool, id, 60000));
    assert_lk(0, lk_sem_extendid(elsewhere, id, 100));
    proxy_once(p, PROXY_CUT_REPLY, 1, "pool");
    assert_lk(0, lk_sem_extendid(elsewhere, id, 90000));
    assert_between(server_left(w), 90000 - SLACK_MS, 90000);
    proxy_once(p, PROXY_DROP_REPLY, 1, "pool");
    assert_lk(EIO, lk_sem_extendid(elsewhere, id, 90000));
    connected();
    proxy_once(p, PROXY_CUT_REPLY, 1, "pool");
    assert_lk(0, lk_sem_checkid(elsewhere, id));
    proxy_once(p, PROXY_DROP_REPLY, 1, "pool");
    assert_lk(EIO, lk_sem_checkid(elsewhere, id));
    connected();
    proxy_once(p, PROXY_DROP_REPLY, 1, "pool");
    assert_lk(EIO, lk_sem_remainingid(elsewhere, id, &ms));
    connected();
    assert_lk(0, lk_sem_remainingid(elsewhere, id, &ms));
    assert_between(ms, 60000, 90000);
    proxy_once(p, PROXY_HOLD_REQUEST, 1, "pool");
    assert_lk(EIO, lk_sem_extendid(elsewhere, id, 900000));
    sleep_ms(1100); /* its deadline */
    proxy_release(p);
    sleep_ms(100);
    assert_between(server_left(w), 60000, 90000); /* a late copy does nothing */
    assert_lk(0, lk_sem_releaseid(pool, id));
}

static void bad_input_is_refused(struct world *w)
{
    int64_t ms = 4711;
    lk_how_t how = LK_HOW_INIT;
    open_pool(w);
    lk_sem_t *plain = world_sem(w, client, "plain", 0, NULL);
    strcpy(id, "0123456789abcdef0123456789abcdef");
    assert_lk(EINVAL, lk_sem_checkid(pool, "abc"));
    assert_lk(EINVAL, lk_sem_checkid(pool, NULL));
    assert_lk(EINVAL, lk_sem_remainingid(pool, id, NULL));
    assert_lk(EINVAL, lk_sem_remainingid(pool, "0123456789ABCDEF0123456789ABCDEF", &ms));
    assert_lk(EINVAL, lk_sem_extendid(pool, id, 99));
    assert_lk(EINVAL, lk_sem_extendid(pool, id, 24LL * 60 * 60 * 1000 + 1));
    assert_lk(EPERM, lk_sem_checkid(pool, id));
    assert_lk(EPERM, lk_sem_remainingid(pool, id, &ms));
    assert_lk(EPERM, lk_sem_extendid(pool, id, LEASE_MS));
    assert_lk(ENOTSUP, lk_sem_checkid(plain, id));
    assert_lk(ENOTSUP, lk_sem_remainingid(plain, id, &ms));
    assert_lk(ENOTSUP, lk_sem_extendid(plain, id, LEASE_MS));
    assert_int_equal(4711, ms);
    how.owner = world_newowner(w, client);
    assert_lk(EINVAL, lk_sem_acquireidwith(pool, &how, id));
}

static struct timespec in_ms(clockid_t clock, int64_t ms)
{
    struct timespec at;
    clock_gettime(clock, &at);
    ms += at.tv_nsec / 1000000;
    at.tv_sec += ms / 1000;
    at.tv_nsec = ms % 1000 * 1000000;
    return at;
}

static int give_later(void *arg)
{
    (void)arg;
    sleep_ms(100);
    return lk_sem_releaseid(elsewhere, id);
}

/* Each form of acquire ends at its limit, with nothing taken and nobody queued, and takes what is free before. */
static void limits_are_kept(struct world *w)
{
    static const struct timespec bad = { .tv_sec = 1, .tv_nsec = -1 }, past = { .tv_sec = 1 };
    char other[LK_PERMIT_ID];
    struct worker giver;
    lk_how_t how = LK_HOW_INIT;
    int64_t ms;
    open_pool(w);
    assert_lk(EINVAL, lk_sem_timedacquireid(pool, &bad, id));
    assert_lk(EINVAL, lk_sem_timedacquire(pool, 2, &bad));
    assert_lk(EINVAL, lk_sem_clockacquire(pool, 2, (clockid_t)4711, &past));
    assert_lk(EINVAL, lk_sem_clockacquireid(pool, (clockid_t)4711, &past, id));
    assert_lk(EINVAL, lk_sem_timedacquireid(pool, &past, NULL));
    assert_lk(EINVAL, lk_sem_timedacquire(pool, 0, &past));
    assert_lk(0, lk_sem_timedacquireid(pool, &past, id)); /* free all the same */
    assert_lk(0, lk_sem_timedacquire(pool, TOTAL - 1, &past));
    assert_lk(0, lk_sem_extendid(pool, id, 30000));
    assert_lk(0, lk_sem_extend(pool, 30000));
    for (int i = 0; i < 5; i++) {
        const clockid_t clock = i % 2 == 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
        const struct timespec at = in_ms(clock, 150);
        how.timeout_ms = 150;
        int64_t began_ms = now_ms();
        assert_lk(ETIMEDOUT, i == 0   ? lk_sem_timedacquire(pool, 2, &at)
                             : i == 1 ? lk_sem_clockacquire(pool, 2, clock, &at)
                             : i == 2 ? lk_sem_timedacquireid(pool, &at, other)
                             : i == 3 ? lk_sem_clockacquireid(pool, clock, &at, other)
                                      : lk_sem_acquireidwith(pool, &how, other));
        assert_between(now_ms() - began_ms, 148, 150 + SLACK_MS);
        assert_false(world_exists(w, "latchkey:queue:permits:{pool}"));
    }
    worker_start(&giver, give_later, NULL);
    const struct timespec at = in_ms(CLOCK_MONOTONIC, 5000);
    assert_lk(0, lk_sem_clockacquireid(pool, CLOCK_MONOTONIC, &at, other));
    assert_int_equal(0, worker_join(&giver));
    assert_lk(EPERM, lk_sem_checkid(pool, id)); /* which ends it here */
    assert_lk(0, lk_sem_releaseid(pool, other));
    how.lease_ms = 1500;
    how.fixed = 1;
    assert_lk(0, lk_sem_acquireidwith(pool, &how, id));
    assert_lk(0, lk_sem_remainingid(pool, id, &ms));
    assert_between(ms, 1, 1500);
    sleep_ms(1550);
    assert_lk(ESTALE, lk_sem_releaseid(pool, id));
    assert_lk(0, lk_sem_release(pool, TOTAL - 1));
}

enum { BATCH = 50, ROUNDS = 4 };

static int warnings; /* atomic builtins */

static void count_warnings(void *arg, int level, const char *line)
{
    (void)arg;
    (void)level;
    if (strstr(line, " lost") != NULL)
        __atomic_add_fetch(&warnings, 1, __ATOMIC_SEQ_CST);
}

static size_t holds_of(lk_client_t *of)
{
    struct lk__link *lists[] = { &of->dog.leases, &of->dog.lost };
    size_t holds = 0;
    lk__mu_lock(&of->dog.mu);
    for (int i = 0; i < 2; i++)
        for (struct lk__link *l = lk__list_first(lists[i]); l != NULL; l = lk__list_next(lists[i], l))
            holds++;
    lk__mu_unlock(&of->dog.mu);
    return holds;
}

static void nothing_of_them_stays(struct world *w)
{
    const lk_semattr_t attr = { .size = sizeof attr, .leased = 1 };
    lk_client_t *taker = world_client(w, "lease=3s"), *giver = world_client(w, "");
    static char ids[BATCH][LK_PERMIT_ID];
    struct news permit_news;
    warnings = 0;
    log_to(count_warnings, LK_LOG_WARNING, NULL);
    news_listen(&permit_news, taker, "permits");
    lk_sem_t *taken = world_sem(w, taker, "permits", BATCH, &attr);
    lk_sem_t *given = world_sem(w, giver, "permits", BATCH, &attr);
    world_allow(w, "latchkey:total:*");
    for (int round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < BATCH; i++)
            assert_lk(0, lk_sem_acquireid(taken, 5000, ids[i]));
        assert_in_range(holds_of(taker), 1, 2 * BATCH);
        for (int i = 0; i < BATCH; i++)
            assert_lk(0, lk_sem_releaseid(given, ids[i]));
        eventually(news(&permit_news, LK_EVENT_LOST) == round * BATCH, 8 * LEASE_MS);
        assert_int_equal(LK_REASON_RELEASED, news_reason(&permit_news));
    }
    assert_lk(0, lk_sem_acquireid(taken, 5000, ids[0]));
    assert_in_range(holds_of(taker), 1, 2);
    assert_lk(0, lk_sem_releaseid(taken, ids[0]));
    assert_lk(EPERM, lk_sem_releaseid(taken, ids[1]));
    assert_int_equal(0, holds_of(taker));
    assert_int_equal(0, __atomic_load_n(&warnings, __ATOMIC_SEQ_CST));
    world_close(w, taker);
    world_close(w, giver);
    log_to(NULL, LK_LOG_WARNING, NULL);
}

int main(void)
{
    return world_run(who_took_it_sets_its_lease, others_only_let_it_last, the_permit_of_a_dead_process_is_kept,
                     a_check_finds_it_given_back, answers_get_lost, bad_input_is_refused, limits_are_kept,
                     nothing_of_them_stays);
}
