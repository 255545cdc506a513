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
    if (event->type > LK_EVENT_LOST)
        return; /* of a wait, or a hold that is long */
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
    assert_lk(0, lk_once_destroy(&rig->work));
    assert_lk(0, lk_once_destroy(&rig->their_work));
    assert_lk(0, lk_barrier_destroy(&rig->stage));
    assert_lk(0, lk_barrier_destroy(&rig->lasting));
    assert_lk(0, lk_barrier_destroy(&rig->their_stage));
    lk_client_close(rig->here); /* EIO if a copy of something may still be under way */
    assert_lk(0, lk_client_close(rig->there));
    free(rig);
}

static void begin_work(struct rig *rig)
{
    static const lk_onceattr_t lasting = { .size = sizeof lasting, .lease_ms = RIG_LONG_MS };
    world_allow(rig->w, "latchkey:done:*");
    assert_lk(0, lk_once_init(&rig->work, rig->here, "thing-work", &lasting));
    assert_lk(0, lk_once_init(&rig->their_work, rig->there, "thing-work", &lasting));
}

static void begin_stage(struct rig *rig)
{
    static const lk_barrierattr_t lasting = { .size = sizeof lasting, .lease_ms = RIG_LONG_MS };
    world_allow(rig->w, "latchkey:*:{thing-stage}");
    assert_lk(0, lk_barrier_init(&rig->stage, rig->here, "thing-stage", 2, NULL));
    assert_lk(0, lk_barrier_init(&rig->lasting, rig->here, "thing-stage", 2, &lasting));
    assert_lk(0, lk_barrier_init(&rig->their_stage, rig->there, "thing-stage", 2, NULL));
}

struct rig *rig_begin(struct world *w, const char *url, const char *options)
{
    struct rig *rig = calloc(1, sizeof *rig);
    assert_that(rig != NULL);
    rig->w = w;
    assert_lk(0, open_patiently(&rig->here, url));
    rig->there = world_open(w, options);
    for (int i = 0; i < RIG_PLACES; i++) {
        struct place *place = &rig->places[i];
        const struct subject_kind *kind = i < RIG_PLACES - 1 ? &subject_kinds[i] : &subject_run_kind;
        char name[32];
        snprintf(name, sizeof name, "thing-%d", i);
        subject_init(w, &place->mine, kind, rig->here, name, 0);
        subject_init(w, &place->patient, kind, rig->here, name, RIG_LONG_MS);
        subject_init(w, &place->theirs, subject_keeper(kind), rig->there, name, 0);
    }
    world_allow(w, "latchkey:opened:*");
    assert_lk(0, lk_latch_init(&rig->gate, rig->here, "gate", NULL));
    assert_lk(0, lk_latch_init(&rig->their_gate, rig->there, "gate", NULL));
    begin_stage(rig);
    begin_work(rig);
    assert_lk(0, lk_client_addlistener(rig->here, hear, rig, NULL));
    world_at_end(w, NULL, rig, end_rig);
    rig_works(rig); /* both have all their connections, and the server knows the scripts */
    return rig;
}

struct rig *rig_begin_behind(struct world *w, struct proxy **p, const char *options)
{
    *p = proxy_begin(w);
    return rig_begin(w, proxy_url(*p, options), "lease=10s&command_timeout=2s&poll=200ms");
}

bool place_here(const struct rig *rig, const struct place *place)
{
    if (place == rig->places + RIG_PLACES)
        return false;
    print_message("             %s\n", place->mine.kind->name);
    return true;
}

/* --- the barrier ------------------------------------------------------------------------------------------ */

static int run_party(void *arg)
{
    struct party *party = arg;
    party->came_ms = now_ms();
    party->result = lk_barrier_waitfor(party->barrier, party->timeout_ms);
    __atomic_store_n(&party->went_ms, now_ms(), __ATOMIC_RELEASE);
    return 0;
}

void party_start(struct party *party, lk_barrier_t *barrier, int64_t timeout_ms)
{
    *party = (struct party){ .barrier = barrier, .timeout_ms = timeout_ms };
    worker_start(&party->worker, run_party, party);
}

int party_join(struct party *party)
{
    worker_join(&party->worker);
    return party->result;
}

int64_t rig_parties(const struct rig *rig)
{
    return world_int(rig->w, "EVAL %s 0",
                     "local t = redis.call('TIME') return redis.call('ZCOUNT', 'latchkey:parties:{thing-stage}', "
                     "'(' .. t[1] * 1000 + math.floor(t[2] / 1000), '+inf')");
}

int rig_meet(struct rig *rig)
{
    return lk_barrier_waitfor(&rig->their_stage, 10000);
}

static bool is_broken(struct rig *rig)
{
    lk_barrierinfo_t info = LK_BARRIERINFO_INIT;
    return lk_barrier_info(&rig->their_stage, &info) == 0 && info.broken;
}

void rig_mend(struct rig *rig, int64_t within_ms)
{
    eventually(is_broken(rig), within_ms);
    assert_lk(0, lk_barrier_reset(&rig->their_stage));
}

/* On a busy machine its coming may have no answer in time: it went, and the round breaks. */
static bool has_gone(const struct party *party)
{
    return __atomic_load_n(&party->went_ms, __ATOMIC_ACQUIRE) != 0;
}

void party_wait(struct rig *rig, struct party *party, lk_barrier_t *barrier, int64_t timeout_ms)
{
    for (;;) {
        party_start(party, barrier, timeout_ms);
        eventually(rig_parties(rig) == 1 || has_gone(party), 5000);
        for (int64_t until_ms = now_ms() + RIG_COMMAND_MS + 20; now_ms() < until_ms && !has_gone(party); sleep_ms(2))
            ;
        if (!has_gone(party))
            return;
        assert_lk(EIO, party_join(party));
        rig_mend(rig, RIG_SLACK_MS);
    }
}

static void they_meet(struct rig *rig)
{
    struct party party;
    eventually(rig_parties(rig) == 0, RIG_LEASE_MS + RIG_SLACK_MS);
    party_wait(rig, &party, &rig->stage, 10000);
    assert_int_equal(LK_BARRIER_SERIAL, rig_meet(rig));
    assert_lk(0, party_join(&party));
}

/* --- the run that is ended -------------------------------------------------------------------------------------- */

void rig_done(struct rig *rig, const char *result, int64_t within_ms)
{
    char *text;
    eventually(lk_once_begin(&rig->their_work, 0) == EALREADY, within_ms);
    assert_lk(0, lk_once_result(&rig->their_work, &text));
    assert_string_equal(result, text);
    lk_free(text);
    assert_lk(0, lk_once_reset(&rig->their_work));
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

bool rig_gave(int code, int64_t ms)
{
    return code == 0 || ((code == EIO || code == ENOTCONN) && ms >= RIG_COMMAND_MS);
}

/* Only of a counting semaphore ENOTCONN leaves it to its caller. */
void place_give(struct rig *rig, struct subject *subject)
{
    int code;
    bool again;
    do {
        int64_t began_ms = now_ms();
        code = subject_give(subject);
        if (!rig_gave(code, now_ms() - began_ms))
            assert_lk(0, code);
        again = code == ENOTCONN && !subject->kind->leased;
    } while (again);
    if (code != 0)
        eventually(subject_held(rig->w, subject) == 0, RIG_LEASE_MS + RIG_SLACK_MS);
}

void errand_had_it(struct errand *errand)
{
    assert_lk(0, errand->took);
    if (!rig_gave(errand->gave, errand->gave_ms - errand->took_ms))
        assert_lk(0, errand->gave);
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
        eventually(errand_waits(rig->w, &errand), 5000);
        int64_t began_ms = now_ms();
        int gave = subject_give(&place->mine);
        assert_true(rig_gave(gave, now_ms() - began_ms));
        if (gave == ENOTCONN && !place->mine.kind->leased)
            place_give(rig, &place->mine);
        errand_join(&errand);
        errand_had_it(&errand);
        eventually(subject_held(rig->w, &place->mine) == 0, RIG_SLACK_MS);
    }
    int set;
    eventually((set = lk_latch_trysetcount(&rig->gate, 1)) == 0 || set == EEXIST, 5000); /* EEXIST: set, and unseen */
    assert_lk(0, lk_latch_countdown(&rig->their_gate));
    assert_lk(0, lk_latch_waitfor(&rig->gate, 5000));
    they_meet(rig);
}
