/* SPDX-License-Identifier: MIT */
/*
 * closed_test.c - F63, F64: a client is closed under its holders and waiters; mistakes have codes
 *
 * labels: threads memory
 * simulated: yes
 */
#include "subject.h"

enum { COMMAND_MS = 500, LONG_MS = 2000 /* a busy machine has time */, WAITERS = 3 };

#define OPTIONS "lease=2s&command_timeout=500ms&poll=200ms"
#define PATIENTLY "lease=20s&command_timeout=2s&poll=200ms"

static int wait_for_it(void *arg)
{
    return subject_take(arg, LK_FOREVER);
}

/* Those who wait are told, what is held is released, nothing is left; the object goes on answering. */
static void clients_are_closed(struct world *w, const struct subject_kind *kind)
{
    lk_client_t *ours = world_open(w, PATIENTLY), *theirs = world_client(w, PATIENTLY);
    struct worker workers[WAITERS];
    struct subject *mine = world_subject(w, ours, kind, "thing");
    struct subject *held = world_subject(w, ours, kind, "other");
    struct subject *keeper = world_subject(w, theirs, subject_keeper(kind), "thing");
    assert_lk(0, subject_take(keeper, 0));
    assert_lk(0, subject_take(held, 0));
    for (int i = 0; i < WAITERS; i++)
        worker_start(&workers[i], wait_for_it, mine);
    eventually(subject_queued(w, mine) >= 1, 5000);
    sleep_ms(50);
    int64_t began_ms = now_ms();
    assert_lk(0, lk_client_close(ours));
    assert_between(now_ms() - began_ms, 0, 2 * LONG_MS + SLACK_MS);
    for (int i = 0; i < WAITERS; i++)
        assert_int_equal(ECANCELED, worker_join(&workers[i]));
    assert_int_equal(0, subject_queued(w, mine));
    assert_int_equal(kind->leased ? 0 : 1, subject_held(w, held)); /* a bare permit is nobody's */
    assert_lk(ECANCELED, subject_take(mine, 0));
    assert_lk(ECANCELED, subject_give(held));
    assert_lk(0, subject_give(keeper));
    if (!kind->leased)
        world_redis(w, "DEL other");
}

/* The same while the server stands still: within two command timeouts, and it says what is left. */
static void clients_are_closed_without_a_server(struct world *w, const struct subject_kind *kind)
{
    lk_client_t *ours = world_open(w, OPTIONS);
    struct subject *held = world_subject(w, ours, kind, "thing");
    assert_lk(0, subject_take(held, 0));
    world_stop_server(w);
    int64_t began_ms = now_ms();
    assert_lk(kind->leased ? EIO : 0, lk_client_close(ours));
    assert_between(now_ms() - began_ms, 0, 2 * COMMAND_MS + SLACK_MS);
    world_cont_server(w);
    if (kind->leased)
        eventually(subject_held(w, held) == 0, 3000 + SLACK_MS);
    else
        world_redis(w, "DEL thing");
}

/* Who does not hold it can neither give it back nor speak for it, and gets no figures. */
static int fail_to_speak(void *arg)
{
    struct subject *s = arg;
    int64_t ms = 4711;
    uint64_t token = 4711;
    bool refused = subject_give(s) == EPERM && subject_remaining(s, &ms) == EPERM && subject_check(s) == EPERM &&
                   subject_extend(s, 60000) == EPERM;
    if (s->kind->fenced)
        refused = refused && s->kind->token(s, &token) == EPERM;
    return refused && ms == 4711 && token == 4711 ? 0 : -1;
}

/* Not the holder, twice, or while it is used: a code, and nothing changes. */
static void callers_make_mistakes(struct world *w, const struct subject_kind *kind)
{
    lk_client_t *ours = world_open(w, PATIENTLY);
    struct worker worker;
    struct subject *mine = world_subject(w, ours, kind, "thing");
    if (kind->leased)
        assert_int_equal(0, fail_to_speak(mine));
    assert_lk(0, subject_take(mine, 0));
    if (kind->leased) {
        assert_int_equal(0, in_thread(fail_to_speak, mine));
        assert_lk(0, subject_check(mine));
        assert_int_equal(1, subject_held(w, mine));
        assert_lk(EBUSY, subject_destroy(mine));
    }
    if (subject_keeper(kind) == kind) {
        worker_start(&worker, wait_for_it, mine);
        eventually(subject_queued(w, mine) == 1, 5000);
        assert_lk(EBUSY, subject_destroy(mine));
        assert_lk(0, subject_give(mine));
        assert_int_equal(0, worker_join(&worker)); /* that thread has it, and is gone */
        if (!kind->leased)
            assert_lk(0, subject_give(mine));
    } else {
        assert_lk(0, subject_give(mine));
    }
    if (kind->leased)
        assert_int_equal(0, fail_to_speak(mine));
    assert_lk(0, lk_client_close(ours));
}

int main(void)
{
    return subject_run(clients_are_closed, clients_are_closed_without_a_server, callers_make_mistakes);
}
