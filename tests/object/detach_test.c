/* SPDX-License-Identifier: MIT */
/*
 * detach_test.c - a hold that nobody renews keeps no object alive: it ends at the server, and nobody is told
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 16
 */
#include "news.h"
#include "subject.h"

enum { LEASE_MS = 1500 };

#define OPTIONS "lease=1500ms&command_timeout=490ms&poll=200ms"

static int take(void *subject)
{
    return subject_take(subject, 1000);
}

/* It ends with its lease, not before; whoever comes then finds it free. */
static void ends_with_its_lease(struct subject *rival, int64_t began_ms)
{
    assert_lk(ETIMEDOUT, subject_take(rival, 0));
    assert_lk(0, subject_take(rival, LEASE_MS + SLACK_MS));
    assert_between(now_ms() - began_ms, LEASE_MS / 2, LEASE_MS + SLACK_MS);
    assert_lk(0, subject_give(rival));
}

/* Its thread ended: nobody can give it back any more. */
static void an_orphan_is_detached(struct world *w, const struct subject_kind *kind)
{
    struct subject orphan;
    if (!kind->leased)
        return;
    lk_client_t *ours = world_client(w, OPTIONS);
    struct news *n = news_of(w, ours, "thing");
    struct subject *rival = world_subject(w, world_client(w, OPTIONS), subject_keeper(kind), "thing");
    subject_init(w, &orphan, kind, ours, "thing", 0);
    int64_t began_ms = now_ms();
    assert_lk(0, in_thread(take, &orphan));
    assert_lk(0, subject_destroy(&orphan));
    ends_with_its_lease(rival, began_ms);

    subject_init(w, &orphan, kind, ours, "thing", 0); /* a new object knows nothing of it */
    assert_lk(EPERM, subject_give(&orphan));
    assert_lk(0, take(&orphan));
    assert_lk(0, subject_give(&orphan));
    assert_lk(0, subject_destroy(&orphan));
    world_close(w, ours);
    for (int type = LK_EVENT_AT_RISK; type <= LK_EVENT_LOST; type++)
        assert_int_equal(0, news(n, type));
}

/* What has happened before is told: the loss came first. */
static void a_lost_orphan_was_told(struct world *w, const struct subject_kind *kind)
{
    struct subject orphan;
    if (!kind->leased)
        return;
    lk_client_t *ours = world_client(w, OPTIONS);
    struct news *n = news_of(w, ours, "thing");
    subject_init(w, &orphan, kind, ours, "thing", 0);
    assert_lk(0, in_thread(take, &orphan));
    eventually(news(n, LK_EVENT_LOST) == 1, LEASE_MS + SLACK_MS);
    assert_lk(0, subject_destroy(&orphan));
    world_close(w, ours);
    assert_int_equal(1, news(n, LK_EVENT_LOST));
    assert_int_equal(LK_REASON_THREAD_EXIT, news_reason(n));
}

/* A thread that lives and renews is another matter. */
static void a_hold_of_a_thread_keeps_its_object(struct world *w, const struct subject_kind *kind)
{
    struct subject held;
    if (!kind->leased)
        return;
    subject_init(w, &held, kind, world_client(w, OPTIONS), "thing", 0);
    assert_lk(0, take(&held));
    assert_lk(EBUSY, subject_destroy(&held));
    assert_lk(0, subject_give(&held));
    assert_lk(0, subject_destroy(&held));
}

int main(void)
{
    return subject_run(an_orphan_is_detached, a_lost_orphan_was_told, a_hold_of_a_thread_keeps_its_object);
}
