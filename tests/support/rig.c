/* SPDX-License-Identifier: MIT */
/* rig.c - see rig.h */
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long a place in a queue may outlive its waiter. */
enum { QUEUED_MS = 6000 };

static void hear(const lk_event_t *event, void *arg)
{
    struct rig *rig = arg;
    int *count = event->type == LK_EVENT_LOST        ? &rig->lost
                 : event->type == LK_EVENT_RECOVERED ? &rig->recovered
                                                     : &rig->at_risk;
    __atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST);
}

int rig_count(const int *events)
{
    return __atomic_load_n(events, __ATOMIC_SEQ_CST);
}

static void end_rig(void *ended)
{
    struct rig *rig = ended;
    for (int i = 0; i < RIG_PLACES; i++) {
        assert_lk(0, subject_destroy(&rig->places[i].mine));
        assert_lk(0, subject_destroy(&rig->places[i].patient));
        assert_lk(0, subject_destroy(&rig->places[i].theirs));
    }
    assert_lk(0, lk_latch_destroy(&rig->gate));
    assert_lk(0, lk_latch_destroy(&rig->their_gate));
    lk_client_close(rig->here); /* EIO if a copy of something may still be under way */
    assert_lk(0, lk_client_close(rig->there));
    free(rig);
}

struct rig *rig_begin(struct world *w, const char *url, const char *options)
{
    struct rig *rig = calloc(1, sizeof *rig);
    assert_that(rig != NULL);
    rig->w = w;
    assert_lk(0, lk_client_open(&rig->here, url));
    rig->there = world_open(w, options);
    for (int i = 0; i < RIG_PLACES; i++) {
        struct place *place = &rig->places[i];
        const struct subject_kind *kind = &subject_kinds[i];
        char name[32];
        snprintf(name, sizeof name, "thing-%d", i);
        subject_init(w, &place->mine, kind, rig->here, name, 0);
        subject_init(w, &place->patient, kind, rig->here, name, RIG_LONG_MS);
        subject_init(w, &place->theirs, subject_keeper(kind), rig->there, name, 0);
    }
    world_allow(w, "latchkey:opened:*");
    assert_lk(0, lk_latch_init(&rig->gate, rig->here, "gate", NULL));
    assert_lk(0, lk_latch_init(&rig->their_gate, rig->there, "gate", NULL));
    assert_lk(0, lk_client_addlistener(rig->here, hear, rig, NULL));
    world_at_end(w, NULL, rig, end_rig);
    rig_works(rig); /* both have all their connections, and the server knows the scripts */
    return rig;
}

struct rig *rig_begin_behind(struct world *w, struct proxy **p, const char *options)
{
    *p = proxy_begin(w);
    return rig_begin(w, proxy_url(*p, options), options);
}

bool place_here(const struct rig *rig, const struct place *place)
{
    if (place == rig->places + RIG_PLACES)
        return false;
    print_message("             %s\n", place->mine.kind->name);
    return true;
}

/* --- looking ---------------------------------------------------------------------------------------------- */

void rig_connected(struct rig *rig)
{
    unsigned count;
    eventually(lk_latch_getcount(&rig->gate, &count) == 0, 5000);
}

void place_take(struct place *place)
{
    uint64_t token;
    assert_lk(0, subject_take(&place->mine, 5000));
    if (!place->mine.kind->fenced)
        return;
    assert_lk(0, place->mine.kind->token(&place->mine, &token));
    assert_true(token > place->token);
    place->token = token;
}

void rig_works(struct rig *rig)
{
    for (int i = 0; i < RIG_PLACES; i++) {
        struct place *place = &rig->places[i];
        struct errand errand;
        eventually(subject_held(rig->w, &place->mine) == 0, RIG_LEASE_MS + RIG_SLACK_MS);
        eventually(subject_queued(rig->w, &place->mine) == 0, QUEUED_MS + RIG_SLACK_MS);
        place_take(place);
        assert_int_equal(1, subject_held(rig->w, &place->mine));
        errand_start(&errand, &place->theirs, 5000);
        eventually(subject_queued(rig->w, &place->mine) == 1, 1000 + RIG_SLACK_MS);
        int gave = subject_give(&place->mine);
        errand_join(&errand);
        assert_lk(0, errand.took);
        assert_true(gave == 0 || gave == EIO); /* EIO: so busy a machine that 200 ms were not enough */
        assert_true(errand.gave == 0 || errand.gave == EIO);
        eventually(subject_held(rig->w, &place->mine) == 0, RIG_SLACK_MS);
    }
    assert_lk(0, lk_latch_trysetcount(&rig->gate, 1));
    assert_lk(0, lk_latch_countdown(&rig->their_gate));
    assert_lk(0, lk_latch_waitfor(&rig->gate, 5000));
}
