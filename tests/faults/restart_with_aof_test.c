/* SPDX-License-Identifier: MIT */
/*
 * restart_with_aof_test.c - F29: the server is killed and comes back with its data
 *
 * Holders and waiters notice nothing, and what could not be sent is said to be not sent. One that comes back
 * without: restart_empty_test.c. With appendfsync everysec a write may wait two seconds for a slow disk after it
 * was acknowledged, and is lost then: not so here.
 *
 * labels: memory
 * simulated: yes
 */
#include "news.h"
#include "subject.h"

enum { AWAY_MS = 300, WAKES_MS = 1500 };

/* Away for less than what remains of any lease, and than a command may take. */
static const char times[] = "lease=6s&command_timeout=1200ms&poll=200ms&retry_max=50ms";

/* Takes it, and gives it back while the server is away. */
struct giver {
    struct subject *subject;
    struct gate taken, away;
};

static int take_and_give_later(void *arg)
{
    struct giver *giver = arg;
    int rc = subject_take(giver->subject, PATIENT_MS);
    gate_open(&giver->taken);
    while (!gate_is_open(&giver->away))
        sleep_ms(1);
    return rc != 0 ? rc : subject_give(giver->subject);
}

/* Told at the first attempt that nothing could be sent; then the library goes on, or it is the caller's to repeat. */
static void settle_given(struct world *w, struct subject *given, int code)
{
    assert_true(code == 0 || code == ENOTCONN);
    if (code == ENOTCONN && !given->kind->leased) {
        assert_int_equal(1, subject_held(w, given));
        assert_lk(0, subject_give(given));
    }
    eventually(subject_held(w, given) == 0, WAKES_MS + 4 * SLACK_MS);
}

static void restarted(struct world *w, const struct subject_kind *kind)
{
    struct giver giver = { 0 };
    struct worker waiting, calling, giving;
    lk_client_t *one = world_client(w, times), *other = world_client(w, times);
    struct subject *held = world_subject(w, one, kind, "held");
    struct subject *kept = world_subject(w, one, subject_keeper(kind), "kept");
    struct subject *patient = world_subject(w, other, kind, "kept");
    struct subject *called = world_subject(w, other, kind, "called");
    giver.subject = world_subject(w, one, kind, "given");
    struct news *n = news_of(w, one, "held");
    assert_lk(0, subject_take(held, PATIENT_MS));
    uint64_t token = subject_token(held);
    assert_lk(0, subject_take(kept, PATIENT_MS));
    worker_start(&giving, take_and_give_later, &giver);
    gate_pass(&giver.taken);
    worker_start(&waiting, subject_visit, patient);
    eventually(subject_queued(w, patient) == 1, PATIENT_MS);

    world_kill_server(w);
    gate_open(&giver.away);
    worker_start(&calling, subject_visit, called);
    sleep_ms(AWAY_MS);
    world_restart_server(w);

    settle_given(w, giver.subject, worker_join(&giving));
    assert_int_equal(0, worker_join(&calling));
    assert_int_equal(1, subject_held(w, held));
    assert_int_equal(1, subject_held(w, kept));
    assert_int_equal(1, subject_queued(w, patient));
    int64_t began_ms = now_ms();
    assert_lk(0, subject_give(kept));
    assert_int_equal(0, worker_join(&waiting));
    assert_between(now_ms() - began_ms, 0, WAKES_MS + 4 * SLACK_MS);
    assert_true(subject_token(held) == token);
    assert_lk(0, subject_give(held));
    assert_int_equal(0, news(n, LK_EVENT_LOST));
    assert_int_equal(news(n, LK_EVENT_AT_RISK), news(n, LK_EVENT_RECOVERED));
    struct subject *all[] = { held, kept, patient, called, giver.subject };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(0, subject_held(w, all[i]));
        assert_int_equal(0, subject_queued(w, all[i]));
        assert_lk(0, subject_take(all[i], PATIENT_MS));
        assert_true(!kind->fenced || i != 0 || subject_token(all[i]) > token);
        assert_lk(0, subject_give(all[i]));
    }
}

static void nobody_notices(void)
{
    for_each_subject("--appendonly yes --appendfsync always", restarted);
}

static int count_down(void *arg)
{
    return lk_latch_countdown(arg);
}

static void a_latch_keeps_its_count(void)
{
    struct world *w = world_begin("--appendonly yes --appendfsync always");
    struct worker waiter, counter;
    unsigned count;
    lk_client_t *client = world_client(w, times);
    lk_latch_t *gate = world_latch(w, client, "gate");
    assert_lk(0, lk_latch_trysetcount(gate, 3));
    assert_lk(0, lk_latch_countdown(gate));
    worker_start(&waiter, await_latch_patiently, gate);
    eventually(world_elements(w, "PUBSUB CHANNELS *gate*") == 1, PATIENT_MS);
    world_kill_server(w);
    worker_start(&counter, count_down, gate);
    sleep_ms(AWAY_MS);
    world_restart_server(w);
    int code = worker_join(&counter);
    assert_true(code == 0 || code == ENOTCONN);
    assert_lk(0, lk_latch_getcount(gate, &count));
    assert_int_equal(code == 0 ? 1 : 2, count);
    assert_lk(0, lk_latch_countdownby(gate, count));
    assert_int_equal(0, worker_join(&waiter));
    world_end(w);
}

int main(void)
{
    return plain_run(nobody_notices, a_latch_keeps_its_count);
}
