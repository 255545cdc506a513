/* SPDX-License-Identifier: MIT */
/* robbery.c - a server that forgets what it granted */
#include "robbery.h"

#include "news.h"

#include <stdio.h>
#include <string.h>

#define LATE_MS (4 * SLACK_MS) /* several processes and threads have their turn within each bound */

enum {
    COMMAND_MS = 450,
    WAKES_MS = 1000, /* poll, back-off and handshake after a restart */
};

static const struct robbery *list, *present; /* bodies of for_each_subject() have no argument */

static int lease_ms(void)
{
    return present->lease_ms != 0 ? present->lease_ms : 1500;
}

static lk_client_t *open_client(struct world *w)
{
    char options[128];
    snprintf(options, sizeof options,
             "lease=%dms&command_timeout=%dms&poll=100ms&retry_max=50ms&connect_timeout=1400ms", lease_ms(),
             COMMAND_MS);
    return world_client(w, options);
}

void robbery_key(const struct subject *s, char *key)
{
    bool rwlock = strcmp(subject_keeper(s->kind)->name, "writer") == 0;
    bool permits = strcmp(s->kind->name, "leased semaphore") == 0;
    if (rwlock || permits)
        snprintf(key, 80, "latchkey:%s:{%s}", rwlock ? "rw" : "permits", s->name);
    else
        snprintf(key, 80, "%s", s->name);
}

static void commit(struct world *w, const struct subject *s)
{
    char key[80];
    robbery_key(s, key);
    present->commit(w, key);
}

static void take(struct world *w, struct subject *s, uint64_t *token)
{
    if (present->prepare != NULL)
        present->prepare(w);
    assert_lk(0, subject_take(s, PATIENT_MS));
    assert_int_equal(1, subject_held(w, s));
    if (s->kind->fenced)
        assert_lk(0, s->kind->token(s, token));
}

static void make_good(struct world *w)
{
    if (present->make_good != NULL)
        present->make_good(w);
}

/* By its next renewal the robbed holder knows, and is told once. */
static void learn_of_it(struct subject *s, const struct news *n, int losses)
{
    int64_t ms;
    eventually(subject_remaining(s, &ms) == ESTALE, lease_ms() / 3 + COMMAND_MS + LATE_MS);
    eventually(news(n, LK_EVENT_LOST) == losses, LATE_MS);
    assert_int_equal(LK_REASON_GONE, news_reason(n));
}

/* --- nobody waits -------------------------------------------------------------------------------------------- */

/* A number that is set anew counts all permits as free: one more is granted than should be, and no second. */
static void a_number_begins_anew(struct world *w, struct subject *mine)
{
    uint64_t none;
    take(w, mine, &none);
    commit(w, mine);
    assert_lk(0, subject_take(mine, PATIENT_MS));
    assert_lk(ETIMEDOUT, subject_take(mine, 0));
    assert_int_equal(1, subject_held(w, mine));
    assert_lk(0, subject_give(mine));
}

static void a_hold_is_not_made_anew(struct world *w, struct subject *mine, const struct news *n)
{
    uint64_t token = 0, later = 0;
    take(w, mine, &token);
    commit(w, mine);
    learn_of_it(mine, n, 1); /* by renewal */
    assert_int_equal(0, subject_held(w, mine));
    assert_lk(ESTALE, subject_give(mine));
    assert_lk(EPERM, subject_give(mine));
    make_good(w);

    take(w, mine, &later);
    assert_true(!mine->kind->fenced || later > token); /* though the server may know nothing of the first */
    commit(w, mine);
    assert_lk(ESTALE, subject_give(mine)); /* by unlock */
    assert_lk(EPERM, subject_give(mine));
    eventually(news(n, LK_EVENT_LOST) == 2, LATE_MS);
    assert_int_equal(0, subject_held(w, mine));
}

static void nobody_waits(struct world *w, const struct subject_kind *kind)
{
    lk_client_t *client = open_client(w);
    struct subject *mine = world_subject(w, client, kind, "alone");
    if (kind->leased)
        a_hold_is_not_made_anew(w, mine, news_of(w, client, "alone"));
    else
        a_number_begins_anew(w, mine);
    make_good(w);
    world_close(w, client);
}

/* --- somebody waits -------------------------------------------------------------------------------------------- */

/* The one who gets it, on a thread of its own. */
struct thief {
    struct subject *subject;
    struct gate in, out;
    uint64_t token;
    int taken, remaining; /* codes */
};

static int steal(void *arg)
{
    struct thief *thief = arg;
    struct subject *s = thief->subject;
    int64_t ms;
    thief->taken = subject_take(s, PATIENT_MS);
    if (thief->taken == 0 && s->kind->fenced)
        thief->taken = s->kind->token(s, &thief->token);
    gate_open(&thief->in);
    while (thief->taken == 0 && !gate_is_open(&thief->out))
        sleep_ms(2);
    thief->remaining = subject_remaining(s, &ms);
    return thief->taken != 0 ? thief->taken : subject_give(s);
}

/* The robbed holder's unlock does not touch the hold of the one who has it now. */
static void find_out(struct world *w, struct subject *mine, const struct news *n, struct thief *thief)
{
    if (!mine->kind->leased)
        return; /* it has no way to know */
    learn_of_it(mine, n, 1);
    assert_lk(ESTALE, subject_give(mine));
    assert_lk(EPERM, subject_give(mine));
    assert_int_equal(1, subject_held(w, thief->subject));
}

static void somebody_waits(struct world *w, const struct subject_kind *kind)
{
    static struct thief thief; /* a test that failed leaves its thread behind, which goes on with it */
    struct worker worker;
    uint64_t token = 0;
    lk_client_t *one = open_client(w), *other = open_client(w);
    struct subject *mine = world_subject(w, one, kind, "wanted");
    struct news *n = news_of(w, one, "wanted");
    thief = (struct thief){ .subject = world_subject(w, other, subject_keeper(kind), "wanted") };
    take(w, mine, &token);
    worker_start(&worker, steal, &thief);
    eventually(subject_queued(w, thief.subject) == 1, PATIENT_MS);

    commit(w, mine);
    eventually(gate_is_open(&thief.in), WAKES_MS + LATE_MS);
    find_out(w, mine, n, &thief);
    assert_true(!kind->fenced || thief.token > token);
    gate_open(&thief.out);
    assert_int_equal(0, worker_join(&worker));
    assert_int_equal(0, thief.remaining);
    assert_int_equal(0, subject_held(w, mine));
    assert_int_equal(0, subject_queued(w, mine));
    make_good(w);
    world_close(w, one);
    world_close(w, other);
}

static void the_robbed_holder_learns_of_it(struct world *w, const struct subject_kind *kind)
{
    for (present = list; present->name != NULL; present++) {
        if (present->leases_only && !kind->leased)
            continue;
        print_message("                 %s\n", present->name);
        nobody_waits(w, kind);
        somebody_waits(w, kind);
    }
}

/* --- latches ----------------------------------------------------------------------------------------------------- */

static int64_t listeners(struct world *w)
{
    return world_elements(w, "PUBSUB CHANNELS *gate*");
}

/* Only a waiter that knows of the count listens, and nobody hears of a count from before it. */
static void rob_a_latch(struct world *w)
{
    struct worker waiter;
    lk_client_t *client = open_client(w);
    lk_latch_t *gate = world_latch(w, client, "gate");
    if (present->prepare != NULL)
        present->prepare(w);
    assert_lk(0, lk_latch_trysetcount(gate, 2));
    worker_start(&waiter, await_latch_patiently, gate);
    eventually(listeners(w) == 1, PATIENT_MS);
    assert_lk(0, lk_latch_countdown(gate));
    present->commit(w, "gate");
    int64_t lost_ms = now_ms();
    assert_int_equal(ESTALE, worker_join(&waiter));
    assert_between(now_ms() - lost_ms, 0, WAKES_MS + LATE_MS);
    assert_lk(ENOENT, lk_latch_countdown(gate));
    assert_lk(ENOENT, lk_latch_waitfor(gate, PATIENT_MS));
    make_good(w);
    world_close(w, client);
    eventually(listeners(w) == 0, PATIENT_MS);
}

/* A latch that is not there any more is not open: who waits is told that nobody knows. */
static void an_absent_latch_is_not_open(struct world *w)
{
    for (present = list; present->name != NULL; present++)
        if (!present->leases_only)
            rob_a_latch(w);
}

/* --- runs ---------------------------------------------------------------------------------------------------------- */

/* The one who runs it next, on a thread of its own, until the robbed one has learned of it. */
struct next {
    lk_once_t *once;
    struct gate begun, learned;
};

static int run_next(void *arg)
{
    struct next *next = arg;
    int rc;
    do
        rc = lk_once_begin(next->once, PATIENT_MS);
    while (rc == ENOSPC); /* a server that evicts may be full, with nothing left to evict */
    gate_open(&next->begun);
    while (rc == 0 && !gate_is_open(&next->learned))
        sleep_ms(2);
    return rc != 0 ? rc : lk_once_end(next->once, "by the next");
}

static void prepare(struct world *w)
{
    if (present->prepare != NULL)
        present->prepare(w);
}

/* It is not made anew: the next one runs it, and its end counts; who was robbed completes nothing. */
static void rob_a_runner(struct world *w, lk_once_t *mine, lk_once_t *theirs)
{
    static struct next next; /* a test that failed leaves its thread behind, which goes on with it */
    struct worker waiter;
    int64_t ms;
    char *text;
    next = (struct next){ .once = theirs };
    prepare(w);
    assert_lk(0, lk_once_begin(mine, PATIENT_MS));
    worker_start(&waiter, run_next, &next);
    eventually(world_elements(w, "PUBSUB CHANNELS latchkey:ran:*") == 1, PATIENT_MS);
    present->commit(w, "latchkey:run:{work}");
    eventually(gate_is_open(&next.begun), WAKES_MS + LATE_MS);
    eventually(lk_once_remaining(mine, &ms) == ESTALE, lease_ms() / 3 + COMMAND_MS + LATE_MS);
    assert_lk(ESTALE, lk_once_end(mine, "by the robbed"));
    assert_lk(EPERM, lk_once_end(mine, "by the robbed"));
    gate_open(&next.learned);
    assert_int_equal(0, worker_join(&waiter));
    assert_lk(0, lk_once_result(mine, &text));
    assert_string_equal("by the next", text);
    lk_free(text);
    make_good(w);
}

/* What is forgotten is run again, with a larger token: who writes to the same place with the old one is refused. */
static void forget_a_run(struct world *w, lk_once_t *mine)
{
    uint64_t before, after;
    prepare(w);
    assert_lk(0, lk_once_begin(mine, PATIENT_MS));
    assert_lk(0, lk_once_token(mine, &before));
    assert_lk(0, lk_once_end(mine, NULL));
    present->commit(w, "latchkey:done:{work}");
    assert_lk(0, lk_once_begin(mine, PATIENT_MS));
    assert_lk(0, lk_once_token(mine, &after));
    assert_true(after > before);
    assert_lk(0, lk_once_end(mine, NULL));
    assert_lk(0, lk_once_reset(mine));
    make_good(w);
}

static void a_run_is_begun_anew(struct world *w)
{
    world_allow(w, "latchkey:done:*"); /* for a minute after a reset */
    for (present = list; present->name != NULL; present++) {
        lk_client_t *one = open_client(w), *other = open_client(w);
        lk_once_t *mine = world_once(w, one, "work", NULL);
        rob_a_runner(w, mine, world_once(w, other, "work", NULL));
        assert_lk(0, lk_once_reset(mine));
        if (!present->leases_only)
            forget_a_run(w, mine);
        world_close(w, one);
        world_close(w, other);
    }
}

/* --- barriers ------------------------------------------------------------------------------------------------------- */

static int meet(void *barrier)
{
    int rc = lk_barrier_waitfor(barrier, PATIENT_MS);
    if (rc != 0 && rc != LK_BARRIER_SERIAL)
        print_message("             %s\n", lk_errortext());
    return rc;
}

static void begin_round(struct world *w, struct worker *party, lk_barrier_t *barrier)
{
    eventually(world_int(w, "ZCARD latchkey:parties:{stage}") == 0, PATIENT_MS); /* none is left of the last one */
    worker_start(party, meet, barrier);
    eventually(world_int(w, "ZCARD latchkey:parties:{stage}") == 1, PATIENT_MS);
    lk_barrierinfo_t info = LK_BARRIERINFO_INIT;
    assert_lk(0, lk_barrier_info(barrier, &info)); /* by the same connection: now the party knows that it has come */
}

/* Nobody waits on for a round that the server does not know, or for a party that it does not know. */
static void rob_a_party(struct world *w, lk_barrier_t *mine, lk_barrier_t *theirs, const char *key)
{
    struct worker party;
    prepare(w);
    begin_round(w, &party, mine);
    present->commit(w, key);
    int64_t lost_ms = now_ms();
    int rc = worker_join(&party);
    assert_true(rc == ESTALE || rc == ECANCELED); /* the second where a lease is over by the server's clock */
    assert_between(now_ms() - lost_ms, 0, lease_ms() / 3 + COMMAND_MS + WAKES_MS + LATE_MS);
    lk_barrierinfo_t info = LK_BARRIERINFO_INIT;
    if (lk_barrier_info(theirs, &info) == 0 && info.broken) /* a round that the server knows */
        assert_lk(0, lk_barrier_reset(theirs));
    begin_round(w, &party, mine);
    assert_int_equal(LK_BARRIER_SERIAL, meet(theirs));
    assert_int_equal(0, worker_join(&party));
    make_good(w);
}

static void a_round_begins_anew(struct world *w)
{
    world_allow(w, "latchkey:*:{stage}");
    for (present = list; present->name != NULL; present++) {
        lk_client_t *one = open_client(w), *other = open_client(w);
        lk_barrier_t *mine = world_barrier(w, one, "stage", 2, NULL), *theirs = world_barrier(w, other, "stage", 2, NULL);
        rob_a_party(w, mine, theirs, "latchkey:barrier:{stage}");
        rob_a_party(w, mine, theirs, "latchkey:parties:{stage}");
        world_close(w, one);
        world_close(w, other);
    }
}

int robbery_tests(const struct robbery *robberies)
{
    list = robberies;
    int failed = subject_run(the_robbed_holder_learns_of_it);
    return failed + world_run(an_absent_latch_is_not_open, a_run_is_begun_anew, a_round_begins_anew);
}
