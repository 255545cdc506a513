/* SPDX-License-Identifier: MIT */
/*
 * thread_ended_test.c - F52, F53: a thread ends while it holds; its number is given to another thread
 *
 * labels: threads memory
 * simulated: yes
 */
#include "news.h"
#include "subject.h"

enum { LEASE_MS = 1500, LATER = 200 };

#define OPTIONS "lease=1500ms&command_timeout=450ms&poll=200ms"

static int take(void *arg)
{
    return subject_take(arg, 1000);
}

/* What it was doing may be half done: its hold lasts to the end of its lease, is lost then, and told once. */
static void a_thread_ends(struct world *w, const struct subject_kind *kind)
{
    lk_client_t *ours = world_client(w, OPTIONS), *theirs = world_client(w, OPTIONS);
    struct news *n = news_of(w, ours, "thing");
    struct subject *mine = world_subject(w, ours, kind, "thing");
    struct subject *keeper = world_subject(w, theirs, subject_keeper(kind), "thing");
    assert_lk(0, in_thread(take, mine));
    int64_t began_ms = now_ms(), left_ms = world_leaseleft(w, "thing");
    assert_lk(ETIMEDOUT, subject_take(keeper, 0));
    if (subject_keeper(kind) == kind)
        assert_lk(ETIMEDOUT, subject_take(mine, 0));
    for (int i = 0; i < LATER; i++) { /* threads to come, among them some with the same number */
        int rc = in_thread(give_subject, mine);
        assert_int_equal(kind->leased ? EPERM : 0, rc);
        if (!kind->leased)
            break; /* a bare permit is nobody's: any thread may give it back */
    }
    assert_lk(0, subject_take(keeper, LEASE_MS + SLACK_MS));
    assert_between(now_ms() - began_ms, kind->leased ? left_ms - LEASE_MS / 100 - 10 : 0, LEASE_MS + 2 * SLACK_MS);
    if (kind->leased) {
        eventually(news(n, LK_EVENT_LOST) == 1, 5000);
        assert_int_equal(LK_REASON_THREAD_EXIT, news_reason(n));
        assert_int_equal(kind->number, news_kind(n));
    }
    assert_lk(0, subject_give(keeper));
    assert_lk(0, subject_take(mine, 1000)); /* the object is as good as before */
    assert_lk(0, subject_give(mine));
    world_close(w, NULL);
    assert_int_equal(kind->leased, news(n, LK_EVENT_LOST));
}

int main(void)
{
    return subject_run(a_thread_ends);
}
