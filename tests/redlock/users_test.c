/* SPDX-License-Identifier: MIT */
/*
 * users_test.c - a server of a quorum that refuses the user, or some right, is one that does not vote; when so many refuse
 * that there is no majority, calls say so, and why
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 10
 */
#include "news.h"
#include "quorum.h"
#include "rights.h"

#include <stdio.h>
#include <string.h>

#define TIMES "lease=6s&command_timeout=1900ms&retry_max=50ms&prefix=shop:"
#define SHORT_MS 2500
#define SHORT_TIMES "lease=2500ms&command_timeout=800ms&retry_max=50ms&prefix=shop:" /* where a loss is awaited */

enum { NODES = 3 };

static const lk_redlockattr_t no_wait = { .size = sizeof no_wait, .fenced = 1, .longest_lease_ms = -1,
                                          .node_timeout_ms = 300 };

/* With the rule of docs/security.md. */
static void make_the_user(struct quorum *q, int node)
{
    struct words rights;
    rights_documented(&rights);
    quorum_str(q, node, "ACL SETUSER app reset on >secret resetkeys resetchannels -@all");
    for (int i = 0; i < rights.count; i++)
        quorum_str(q, node, "ACL SETUSER app %s", strcmp(rights.at[i], "~PREFIX*") == 0 ? "~shop:*" : rights.at[i]);
}

static struct quorum *begin(struct world *w)
{
    struct quorum *q = quorum_begin(w, NODES);
    for (int node = 0; node < NODES; node++)
        make_the_user(q, node);
    return q;
}

static lk_client_t *client_of(struct world *w, struct quorum *q, const char *times)
{
    return world_client_at(w, q, quorum_url_as(q, "app:secret@", times));
}

static void say(struct quorum *q, int nodes, const char *rule)
{
    for (int node = 0; node < nodes; node++)
        quorum_str(q, node, "ACL SETUSER app %s", rule);
}

static void says(const char *words)
{
    assert_says(words);
    assert_null(strstr(lk_errortext(), "secret"));
}

static void works(lk_redlock_t *r)
{
    uint64_t token;
    assert_lk(0, lk_redlock_lockfor(r, QUORUM_WITHIN_MS));
    assert_lk(0, lk_redlock_token(r, &token));
    assert_lk(0, lk_redlock_check(r));
    assert_lk(0, lk_redlock_extend(r, 6000));
    assert_lk(0, lk_redlock_unlock(r));
}

/* At one the user is missing a right that each script has, or one in the middle of it; at two there is no majority. */
static void who_refuses_has_no_vote(struct world *w)
{
    static const char *const rights[] = { "evalsha", "hset", "pexpire", "set" };
    struct quorum *q = begin(w);
    lk_redlock_t *r = quorum_redlock(w, client_of(w, q, TIMES), "jobs", &no_wait);
    char taken[32], given[32];
    quorum_lockall(q, r, "shop:jobs");
    assert_lk(0, lk_redlock_unlock(r));
    for (size_t i = 0; i < sizeof rights / sizeof *rights; i++) {
        snprintf(taken, sizeof taken, "-%s", rights[i]);
        snprintf(given, sizeof given, "+%s", rights[i]);
        say(q, 1, taken);
        works(r);
        say(q, 2, taken);
        assert_answer(EACCES, lk_redlock_trylock(r));
        says(i == 0 ? "evalsha" : "server 1: ERR "); /* the words behind it differ between servers */
        assert_lk(EACCES, lk_redlock_lockfor(r, QUORUM_WITHIN_MS));
        assert_lk(EACCES, lk_redlock_lock(r));
        say(q, 2, given);
        eventually(quorum_having(q, "shop:jobs") == 0, QUORUM_WITHIN_MS);
        works(r);
    }
}

/* Refused when connecting. */
static void who_does_not_let_us_in_has_no_vote(struct world *w)
{
    lk_client_t *client = NULL;
    struct quorum *q = begin(w);
    quorum_str(q, 0, "ACL SETUSER app resetpass >another");
    lk_redlock_t *r = quorum_redlock(w, client_of(w, q, TIMES), "jobs", &no_wait);
    works(r);
    quorum_str(q, 1, "ACL SETUSER app -hset");
    quorum_str(q, 1, "CLIENT KILL USER app");
    eventually(lk_redlock_trylock(r) == EACCES, QUORUM_WITHIN_MS);
    says("server 1: ");
    says("WRONGPASS");
    assert_lk(EACCES, open_patiently(&client, quorum_url_as(q, "app:secret@", TIMES)));
    says("+hset");
    say(q, 2, "resetpass");
    say(q, 2, ">secret");
    say(q, 2, "+hset");
    eventually(lk_redlock_trylock(r) == 0, QUORUM_WITHIN_MS);
    assert_lk(0, lk_redlock_unlock(r));
    eventually(quorum_having(q, "shop:jobs") == 0, QUORUM_WITHIN_MS);
}

/* Of who is away nobody knows what it would say. */
static void one_that_refuses_and_one_that_is_away_are_no_refusal(struct world *w)
{
    struct quorum *q = begin(w);
    lk_redlock_t *r = quorum_redlock(w, client_of(w, q, TIMES), "jobs", &no_wait);
    works(r);
    say(q, 1, "-evalsha");
    quorum_kill(q, 2);
    eventually(lk_redlock_trylock(r) == ENOTCONN && strstr(lk_errortext(), "evalsha") != NULL, QUORUM_WITHIN_MS);
    says("evalsha");
    say(q, 1, "+evalsha");
    assert_lk(0, lk_redlock_lockfor(r, QUORUM_WITHIN_MS));
    assert_lk(0, lk_redlock_unlock(r));
    quorum_start(q, 2); /* it may have to be told of a question that it did not answer */
    make_the_user(q, 2);
}

/* Of five two are away, and of the three that refuse two are slower than the first. */
static void a_refusal_is_not_missed_as_others_are_away(struct world *w)
{
    static const lk_redlockattr_t patient = { .size = sizeof patient, .longest_lease_ms = -1, .node_timeout_ms = 1200 };
    struct quorum *q = quorum_begin(w, 5);
    for (int node = 0; node < 5; node++)
        make_the_user(q, node);
    lk_redlock_t *r = quorum_redlock(w, client_of(w, q, TIMES), "jobs", &patient);
    quorum_lockall(q, r, "shop:jobs");
    assert_lk(0, lk_redlock_unlock(r));
    quorum_kill(q, 3);
    quorum_kill(q, 4);
    eventually(lk_redlock_trylock(r) == 0 && lk_redlock_unlock(r) == 0, QUORUM_WITHIN_MS);
    say(q, 3, "-hset");
    quorum_str(q, 1, "CLIENT PAUSE 100 ALL");
    quorum_str(q, 2, "CLIENT PAUSE 100 ALL");
    assert_lk(EACCES, lk_redlock_trylock(r));
    says("server 1: ERR ");
    say(q, 3, "+hset");
    for (int node = 3; node < 5; node++) { /* for what is still to be given back there */
        quorum_start(q, node);
        make_the_user(q, node);
    }
}

/* While it is held: at one nobody notices, at two it is lost with its lease, and calls say why. */
static void what_is_held_needs_a_majority_that_does_not_refuse(struct world *w)
{
    struct quorum *q = begin(w);
    lk_client_t *client = client_of(w, q, SHORT_TIMES);
    lk_redlock_t *r = quorum_redlock(w, client, "jobs", &no_wait), *s = quorum_redlock(w, client, "more", &no_wait);
    lk_redlockinfo_t info = LK_REDLOCKINFO_INIT;
    struct news *n = news_of(w, client, "jobs");
    quorum_lockall(q, r, "shop:jobs");
    quorum_lockall(q, s, "shop:more");
    say(q, 1, "-evalsha");
    for (int64_t until_ms = now_ms() + 3000; now_ms() < until_ms; sleep_ms(200))
        assert_answer(0, lk_redlock_check(r)); /* longer than the lease */
    assert_same(0, news(n, LK_EVENT_LOST));
    say(q, NODES, "-evalsha");
    assert_answer(EACCES, lk_redlock_check(r));
    says("evalsha");
    assert_answer(EACCES, lk_redlock_info(r, &info));
    says("evalsha");
    assert_lk(EIO, lk_redlock_unlock(s));
    says("evalsha");
    eventually(news(n, LK_EVENT_LOST) == 1, SHORT_MS + SLACK_MS);
    assert_lk(ESTALE, lk_redlock_unlock(r));
    say(q, NODES, "+evalsha");
    works(s);
    works(r);
}

int main(void)
{
    return world_run(who_refuses_has_no_vote, who_does_not_let_us_in_has_no_vote,
                     one_that_refuses_and_one_that_is_away_are_no_refusal, a_refusal_is_not_missed_as_others_are_away,
                     what_is_held_needs_a_majority_that_does_not_refuse);
}
