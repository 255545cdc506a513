/* SPDX-License-Identifier: MIT */
/*
 * signalled_test.c - F57, F58: a signal each millisecond; peers that closed
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 22
 */
#include "process.h"
#include "subject.h"

#include <signal.h>

enum { LEASE_MS = 3000, HELD_MS = 1200 };

#define OPTIONS "lease=3s&command_timeout=900ms&poll=200ms"

static int round_of(struct subject *mine, struct subject *keeper)
{
    int rc = subject_take(mine, 2000);
    if (rc == 0)
        rc = subject_give(mine);
    if (rc == 0)
        rc = subject_take(keeper, 2000);
    if (rc == 0)
        rc = subject_give(keeper);
    return rc;
}

/* No call ends, fails or takes longer because of them. */
static void signals_come_in_storms(struct world *w, const struct subject_kind *kind)
{
    static const int flags[] = { 0, SA_RESTART };
    lk_client_t *ours = world_client(w, OPTIONS), *theirs = world_client(w, OPTIONS);
    struct subject *mine = world_subject(w, ours, kind, "thing");
    struct subject *keeper = world_subject(w, theirs, subject_keeper(kind), "thing");
    for (int i = 0; i < 2; i++) {
        int rc = 0;
        int64_t left_ms;
        int before = alarms();
        alarm_each_ms(1, flags[i]);
        for (int n = 0; n < 30 && rc == 0; n++)
            rc = round_of(mine, keeper);
        alarm_each_ms(0, 0);
        assert_int_equal(0, rc);
        int64_t asked_ms = now_ms();
        assert_lk(0, subject_take(keeper, 1000));
        alarm_each_ms(1, flags[i]);
        int64_t began_ms = now_ms();
        rc = subject_take(mine, HELD_MS);
        int64_t took_ms = now_ms() - began_ms;
        alarm_each_ms(0, 0);
        assert_int_equal(ETIMEDOUT, rc);
        assert_between(took_ms, HELD_MS, HELD_MS + SLACK_MS);
        assert_true(alarms() - before > 50);
        eventually(subject_remaining(keeper, &left_ms) == 0 && left_ms > LEASE_MS - (now_ms() - asked_ms), LEASE_MS);
        assert_lk(0, subject_give(keeper));
    }
}

/* A closed peer is a code or not noticed, never a signal; the program's disposition stays its own. */
static void peers_close(struct world *w, const struct subject_kind *kind)
{
    lk_client_t *client = world_client(w, OPTIONS);
    struct sigaction before, after;
    struct subject *mine = world_subject(w, client, kind, "thing");
    sigaction(SIGPIPE, NULL, &before);
    for (int i = 0; i < 10; i++) {
        world_killcommands(w);
        assert_lk(0, subject_take(mine, 1000));
        world_killcommands(w);
        assert_lk(0, subject_give(mine));
    }
    sigaction(SIGPIPE, NULL, &after);
    assert_true(before.sa_handler == SIG_DFL && after.sa_handler == SIG_DFL);
}

int main(void)
{
    return subject_run(signals_come_in_storms, peers_close);
}
