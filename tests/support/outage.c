/* SPDX-License-Identifier: MIT */
/* outage.c - a server that serves nobody for a while */
#include "outage.h"

#include "news.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#define LATE_MS (4 * SLACK_MS) /* several processes and threads have their turn within each bound */

enum {
    POLL_MS = 150,
    SHORT_LEASE_MS = 6000, /* at risk two thirds of it after a renewal, and lost almost 2 s later */
    SHORT_COMMAND_MS = 500,
    LONG_LEASE_MS = 1500,
    LONG_COMMAND_MS = 400,
    GIVEN_LEASE_MS = 20000, /* of what is given back: it is not to go by itself, nor before it is given back */
    BACK_MS = 1000,         /* until everybody has a connection again and has asked: back-off, handshake, poll */
    IMPATIENT_MS = 300,
    HURRIED_MS = 1200,
};

static const char short_times[] = "lease=6s&command_timeout=500ms&poll=150ms&retry_max=50ms",
                  long_times[] = "lease=1500ms&command_timeout=400ms&poll=150ms&retry_max=50ms&connect_timeout=1400ms",
                  later_times[] = "lease=8s&command_timeout=2s&poll=150ms&retry_max=50ms"; /* of who comes afterwards */

static const struct outage *present; /* bodies of for_all() have no argument */

static lk_client_t *client_of(struct world *w, const char *options)
{
    char url[256];
    if (present->user == NULL)
        return world_client(w, options);
    snprintf(url, sizeof url, "unix://%s@%s?%s", present->user, w->socket, options);
    return world_client_at(w, NULL, url);
}

/* What a call said that the outage met, and when. */
struct refusal {
    int code;
    int64_t took_ms;
    char words[256];
};

/* The last answer may have been too late on a busy machine; then it is that what is said. */
static bool is_said(const char *text)
{
    const char *const *words = present->words;
    return strstr(text, "did not answer") != NULL || words[0] == NULL || strstr(text, words[0]) != NULL ||
           (words[1] != NULL && strstr(text, words[1]) != NULL);
}

/*
 * Refused with the right code, in words that name the reason, within the time. On a busy machine any answer may
 * come too late, so EIO or ENOTCONN is right if one was waited for as long as a command may take.
 */
static void assert_refused(const struct refusal *refusal, int64_t least_ms, int64_t most_ms)
{
    bool starved = refusal->took_ms >= (most_ms < LONG_COMMAND_MS ? most_ms : LONG_COMMAND_MS);
    bool unknown = (refusal->code == EIO || refusal->code == ENOTCONN) && (present->unsure || starved);
    if (refusal->code != present->code && !unknown)
        assert_failed(__FILE__, __LINE__, "refused with %s, not %s: %s", code_name(refusal->code),
                      code_name(present->code), refusal->words);
    if (!unknown && !is_said(refusal->words))
        assert_failed(__FILE__, __LINE__, "no word of the reason: %s", refusal->words);
    assert_between(refusal->took_ms, least_ms, most_ms + LATE_MS);
}

/* Keep what the call that began then said; in the thread that made it. */
static void keep_words(struct refusal *refusal, int code, int64_t began_ms)
{
    refusal->code = code;
    refusal->took_ms = now_ms() - began_ms;
    snprintf(refusal->words, sizeof refusal->words, "%s", lk_errortext());
}

/* --- after the outage ------------------------------------------------------------------------------------------ */

/* Until the client of the subject is served again: before that, each attempt to connect that fails is an answer. */
static void await_service(struct subject *subject)
{
    unsigned waiters;
    for (int64_t until_ms = now_ms() + BACK_MS + LATE_MS; now_ms() < until_ms; sleep_ms(2))
        if (subject_queue(subject, NULL, 0, &waiters) == 0)
            return;
}

/*
 * Give back what is held, when the client is served; `refusal` is what that said. On a busy machine the answer may be
 * too late: then the library goes on with it, and only a counting semaphore's "nothing was done" leaves it to its caller.
 */
static int give_back(struct subject *subject, struct refusal *refusal)
{
    bool starved;
    await_service(subject);
    do {
        int64_t began_ms = now_ms();
        keep_words(refusal, subject_give(subject), began_ms);
        starved = refusal->took_ms >= LONG_COMMAND_MS;
    } while (refusal->code == ENOTCONN && starved && !subject->kind->leased);
    return starved && (refusal->code == EIO || refusal->code == ENOTCONN) ? 0 : refusal->code;
}

static void assert_gives_back(struct subject *subject)
{
    struct refusal refusal;
    int rc = give_back(subject, &refusal);
    if (rc != 0)
        assert_failed(__FILE__, __LINE__, "%s is given back with %s in %d ms: %s", subject->name, code_name(rc),
                      (int)refusal.took_ms, refusal.words);
}

/* --- threads that wait ------------------------------------------------------------------------------------ */

struct waiter {
    struct subject *subject;
    int64_t timeout_ms;
    struct refusal refusal, given; /* what taking it said, and then giving it back */
    struct worker worker;
};

static int wait_and_give(void *arg)
{
    struct waiter *waiter = arg;
    int64_t began_ms = now_ms();
    int rc = subject_take(waiter->subject, waiter->timeout_ms);
    keep_words(&waiter->refusal, rc, began_ms);
    return rc != 0 ? rc : give_back(waiter->subject, &waiter->given);
}

static void begin_waiting(struct waiter *waiter, struct subject *subject, int64_t timeout_ms)
{
    *waiter = (struct waiter){ .subject = subject, .timeout_ms = timeout_ms };
    worker_start(&waiter->worker, wait_and_give, waiter);
}

/* It ended with `code`; 0: it got what it waited for, and gave it back. */
static void assert_ended(struct waiter *waiter, int code)
{
    int rc = worker_join(&waiter->worker);
    const struct refusal *taken = &waiter->refusal, *given = &waiter->given;
    if (rc != code)
        assert_failed(__FILE__, __LINE__, "%s, not %s: taken with %s in %d ms (%s), given back with %s in %d ms (%s)",
                      code_name(rc), code_name(code), code_name(taken->code), (int)taken->took_ms, taken->words,
                      code_name(given->code), (int)given->took_ms, given->words);
}

/* --- the stage -------------------------------------------------------------------------------------------- */

struct stage {
    struct world *w;
    lk_client_t *one, *other;
    struct subject held, given, kept; /* of client one, all held as it begins */
    struct subject hurried, patient;  /* want `kept` */
    struct subject tried, called;     /* free */
    struct news news;                 /* of `held` */
};

static void enter(struct stage *s, struct world *w, const struct subject_kind *kind, const char *times)
{
    const struct subject_kind *keeper = subject_keeper(kind);
    s->w = w;
    if (present->prepare != NULL)
        present->prepare(w);
    s->one = client_of(w, times);
    s->other = client_of(w, times);
    subject_init(w, &s->held, kind, s->one, "held", 0);
    subject_init(w, &s->given, kind, s->one, "given", GIVEN_LEASE_MS);
    subject_init(w, &s->kept, keeper, s->one, "kept", 0);
    subject_init(w, &s->hurried, kind, s->one, "kept", 0);
    subject_init(w, &s->patient, kind, s->other, "kept", 0);
    subject_init(w, &s->tried, kind, s->other, "tried", 0);
    subject_init(w, &s->called, kind, s->other, "called", 0);
    news_listen(&s->news, s->one, "held");
    assert_lk(0, subject_take(&s->held, PATIENT_MS));
    assert_lk(0, subject_take(&s->given, PATIENT_MS));
    assert_lk(0, subject_take(&s->kept, PATIENT_MS));
}

/* Everything works again, and nothing is left that would not go by itself. */
static void leave(struct stage *s)
{
    struct subject *all[] = { &s->held, &s->given, &s->kept, &s->hurried, &s->patient, &s->tried, &s->called };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_lk(0, subject_take(all[i], PATIENT_MS));
        assert_same(1, subject_held(s->w, all[i]));
        assert_gives_back(all[i]);
        /* It may have gone to a waiter that gave up in the outage: the library gives that back, too. */
        eventually(subject_held(s->w, all[i]) == 0, BACK_MS + LATE_MS);
        eventually(subject_queued(s->w, all[i]) == 0, BACK_MS + LATE_MS);
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_lk(0, subject_destroy(all[i]));
}

/* An acquire in flight: not before its limit, not later than it and one command timeout. */
static void try_in_vain(struct subject *subject, int64_t timeout_ms, int64_t command_ms)
{
    struct refusal refusal;
    int64_t began_ms = now_ms();
    keep_words(&refusal, subject_take(subject, timeout_ms), began_ms);
    assert_refused(&refusal, present->ends_tries || present->unsure ? 0 : timeout_ms, timeout_ms + command_ms);
    if (subject->kind->leased)
        assert_lk(EPERM, subject_give(subject)); /* whatever the server may have done */
}

/* A release in flight returns within one command timeout; returns its code. */
static int give_in_vain(struct subject *subject, int64_t command_ms)
{
    struct refusal refusal;
    int64_t began_ms = now_ms();
    keep_words(&refusal, subject_give(subject), began_ms);
    assert_refused(&refusal, 0, command_ms);
    return refusal.code;
}

/*
 * What was given back in the outage is given back after it: by the library, long before its lease ends; only
 * a counting semaphore that says "nothing was done" leaves it to its caller. And once.
 */
static void settle_given(struct stage *s, int code)
{
    if (!s->given.kind->leased && code != EIO) {
        assert_same(1, subject_held(s->w, &s->given));
        assert_gives_back(&s->given);
    }
    eventually(subject_held(s->w, &s->given) == 0, BACK_MS + LATE_MS);
}

/* --- scenarios ------------------------------------------------------------------------------------------------ */

static void survive(struct world *w, const struct subject_kind *kind)
{
    static struct stage s; /* a test that failed leaves threads behind, which go on with it */
    static struct waiter patient, called;
    int64_t left_ms;
    enter(&s, w, kind, short_times);
    uint64_t token = subject_token(&s.held);
    begin_waiting(&patient, &s.patient, PATIENT_MS);
    eventually(subject_queued(w, &s.patient) == 1, PATIENT_MS);

    present->begin(w);
    try_in_vain(&s.tried, 0, SHORT_COMMAND_MS);
    begin_waiting(&called, &s.called, PATIENT_MS);
    int given = give_in_vain(&s.given, SHORT_COMMAND_MS);
    if (kind->leased) {
        assert_lk(EPERM, subject_give(&s.given));
        eventually(news(&s.news, LK_EVENT_AT_RISK) == 1, 2 * SHORT_LEASE_MS / 3 + LATE_MS);
        assert_lk(0, subject_remaining(&s.held, &left_ms));
    }
    if (present->ends_tries) {
        worker_join(&called.worker);
        assert_refused(&called.refusal, 0, BACK_MS);
    }
    if (present->ends_waits)
        assert_ended(&patient, present->code);
    present->end(w);

    if (kind->leased)
        eventually(news(&s.news, LK_EVENT_RECOVERED) == 1, BACK_MS + LATE_MS);
    settle_given(&s, given);
    if (!present->ends_tries)
        assert_ended(&called, 0);
    int64_t began_ms = now_ms();
    assert_gives_back(&s.kept);
    if (!present->ends_waits)
        assert_ended(&patient, 0);
    assert_between(now_ms() - began_ms, 0, BACK_MS + LATE_MS);
    eventually(subject_held(w, &s.tried) == 0, BACK_MS + LATE_MS);

    assert_lk(0, subject_remaining(&s.held, &left_ms));
    assert_that(subject_token(&s.held) == token);
    assert_gives_back(&s.held);
    assert_same(kind->leased, news(&s.news, LK_EVENT_AT_RISK));
    assert_same(kind->leased, news(&s.news, LK_EVENT_RECOVERED));
    assert_same(0, news(&s.news, LK_EVENT_LOST));
    leave(&s);
}

/* The loss is known at the end of the lease by this machine's clock: not before, and without any answer. */
static void learn_of_the_loss(struct stage *s, int64_t least_ms, int64_t began_ms)
{
    int64_t left_ms;
    uint64_t token;
    eventually(news(&s->news, LK_EVENT_LOST) == 1, LONG_LEASE_MS + LATE_MS);
    assert_between(now_ms() - began_ms, least_ms, LONG_LEASE_MS + LATE_MS);
    assert_same(LK_REASON_EXPIRED, news_reason(&s->news));
    int64_t asked_ms = now_ms();
    assert_lk(ESTALE, subject_remaining(&s->held, &left_ms));
    if (s->held.kind->fenced)
        assert_lk(ESTALE, s->held.kind->token(&s->held, &token));
    assert_lk(ESTALE, subject_give(&s->held));
    assert_lk(EPERM, subject_give(&s->held));
    assert_between(now_ms() - asked_ms, 0, LATE_MS);
}

/* A wait that ends in the outage: not before its limit, not later than it and one command timeout. */
static void leave_in_vain(struct waiter *hurried, int64_t began_ms)
{
    int64_t least_ms = present->ends_waits ? 0 : HURRIED_MS;
    worker_join(&hurried->worker);
    assert_between(now_ms() - began_ms, least_ms, PATIENT_MS);
    assert_between(hurried->refusal.took_ms, least_ms, HURRIED_MS + LONG_COMMAND_MS + LATE_MS);
    if (hurried->refusal.code != EIO) /* still queued, so perhaps granted meanwhile: "unknown" is right */
        assert_refused(&hurried->refusal, 0, PATIENT_MS);
}

static void outlive(struct world *w, const struct subject_kind *kind)
{
    static struct stage s;
    static struct waiter hurried, patient;
    int64_t left_ms;
    enter(&s, w, kind, long_times);
    uint64_t token = subject_token(&s.held);
    begin_waiting(&patient, &s.patient, PATIENT_MS);
    eventually(subject_queued(w, &s.patient) == 1, PATIENT_MS);
    int64_t waits_ms = now_ms();
    begin_waiting(&hurried, &s.hurried, HURRIED_MS);
    eventually(subject_queued(w, &s.hurried) == 2, HURRIED_MS);
    eventually(news(&s.news, LK_EVENT_RECOVERED) == news(&s.news, LK_EVENT_AT_RISK), LATE_MS); /* on a busy machine */
    int risks = news(&s.news, LK_EVENT_AT_RISK);
    assert_lk(0, subject_remaining(&s.held, &left_ms));
    int64_t began_ms = now_ms();

    present->begin(w);
    try_in_vain(&s.tried, IMPATIENT_MS, LONG_COMMAND_MS);
    int given = give_in_vain(&s.given, LONG_COMMAND_MS);
    if (kind->leased) {
        learn_of_the_loss(&s, left_ms - 10, began_ms);
        eventually(subject_remaining(&s.kept, &left_ms) == ESTALE, LONG_LEASE_MS);
    } else {
        sleep_ms(LONG_LEASE_MS);
    }
    leave_in_vain(&hurried, waits_ms);
    present->end(w);

    settle_given(&s, given);
    if (!kind->leased) {
        assert_gives_back(&s.held);
        assert_gives_back(&s.kept);
    } else {
        assert_lk(ESTALE, subject_give(&s.kept));
    }
    assert_ended(&patient, present->ends_waits ? present->code : 0);
    eventually(subject_held(w, &s.held) == 0, BACK_MS + LATE_MS);
    eventually(subject_held(w, &s.tried) == 0, BACK_MS + LATE_MS);
    /* A listener without time hears of the loss only. */
    assert_between(news(&s.news, LK_EVENT_AT_RISK), risks, risks + 1);
    assert_same(risks, news(&s.news, LK_EVENT_RECOVERED));
    assert_same(kind->leased, news(&s.news, LK_EVENT_LOST));
    assert_lk(0, subject_take(&s.held, PATIENT_MS));
    if (kind->fenced)
        assert_that(subject_token(&s.held) > token);
    assert_gives_back(&s.held);
    leave(&s);
}

/* --- latches: no lease, so nothing is lost; counted once, or not at all when told so ---------------------------- */

static unsigned count_of(lk_latch_t *latch)
{
    unsigned count = 0;
    eventually(lk_latch_getcount(latch, &count) == 0, BACK_MS + LATE_MS);
    return count;
}

/* Was the answer awaited for as long as a command may take, on a busy machine? Then that is what the call says. */
static bool came_late(int code, int64_t began_ms)
{
    return (code == EIO || code == ENOTCONN) && now_ms() - began_ms >= LONG_COMMAND_MS;
}

/* A count that should be set already may be, and is in the end. */
static void settle_fresh(lk_latch_t *fresh, int code)
{
    unsigned count = count_of(fresh);
    assert_true(count == 0 || (code == EIO && count == 3));
    int64_t began_ms = now_ms();
    int set = lk_latch_trysetcount(fresh, 3);
    if (!came_late(set, began_ms))
        assert_lk(count == 0 ? 0 : EEXIST, set);
    else if (count_of(fresh) == 0)
        eventually(lk_latch_trysetcount(fresh, 3) == 0 || count_of(fresh) == 3, BACK_MS + LATE_MS);
    assert_int_equal(3, count_of(fresh));
    int deleted;
    do {
        began_ms = now_ms();
        deleted = lk_latch_delete(fresh);
    } while (deleted == ENOTCONN && came_late(deleted, began_ms));
    if (!came_late(deleted, began_ms))
        assert_lk(0, deleted);
    eventually(count_of(fresh) == 0, BACK_MS + LATE_MS);
}

/* So much less: what got no answer counts once, in the end, and what was not sent is sent again. */
static void count_down(lk_latch_t *gate, unsigned by)
{
    unsigned before = count_of(gate);
    int64_t began_ms;
    int rc;
    do {
        began_ms = now_ms();
        rc = lk_latch_countdownby(gate, by);
    } while (rc == ENOTCONN && came_late(rc, began_ms));
    if (!came_late(rc, began_ms))
        assert_lk(0, rc);
    eventually(count_of(gate) == before - by, BACK_MS + LATE_MS);
}

static void a_latch_counts_exactly(void)
{
    const struct outage *outage = present;
    struct refusal set, waited, counted;
    struct worker waiter;
    struct world *w = world_begin(outage->server_args);
    if (outage->prepare != NULL)
        outage->prepare(w);
    lk_client_t *client = client_of(w, long_times);
    lk_latch_t *gate = world_latch(w, client, "gate"), *fresh = world_latch(w, client, "fresh");
    assert_lk(0, lk_latch_trysetcount(gate, 3));
    worker_start(&waiter, await_latch_patiently, gate);
    eventually(world_elements(w, "PUBSUB CHANNELS *gate*") == 1, PATIENT_MS);

    outage->begin(w);
    int64_t began_ms = now_ms();
    keep_words(&set, lk_latch_trysetcount(fresh, 3), began_ms);
    assert_refused(&set, 0, LONG_COMMAND_MS);
    began_ms = now_ms();
    keep_words(&waited, lk_latch_waitfor(gate, IMPATIENT_MS), began_ms);
    if (outage->reads_pass)
        assert_int_equal(ETIMEDOUT, waited.code);
    else
        assert_refused(&waited, 0, IMPATIENT_MS + LONG_COMMAND_MS);
    began_ms = now_ms();
    keep_words(&counted, lk_latch_countdown(gate), began_ms);
    assert_refused(&counted, 0, LONG_COMMAND_MS);
    if (outage->ends_tries)
        assert_int_equal(outage->code, worker_join(&waiter));
    outage->end(w);

    settle_fresh(fresh, set.code);
    unsigned count = counted.code == EIO ? 2 : 3; /* what got no answer counts once, in the end */
    eventually(count_of(gate) == count, BACK_MS + LATE_MS);
    sleep_ms(2 * LONG_COMMAND_MS); /* no copy comes late */
    assert_int_equal(count, count_of(gate));
    count_down(gate, count - 1);
    eventually(lk_latch_waitfor(gate, 0) == ETIMEDOUT, BACK_MS + LATE_MS);
    count_down(gate, 1);
    if (!outage->ends_tries)
        assert_int_equal(0, worker_join(&waiter));
    world_end(w);
}

/* --- runs: held as a lock is, and completed once, or not at all when told so ------------------------------------- */

static const lk_onceattr_t given_run = { .size = sizeof given_run, .lease_ms = GIVEN_LEASE_MS };

static void begin_outage(struct world **w, lk_client_t **one, lk_client_t **other, const char *other_times)
{
    *w = world_begin(present->server_args);
    world_allow(*w, "latchkey:*");
    if (present->prepare != NULL)
        present->prepare(*w);
    *one = client_of(*w, long_times);
    *other = client_of(*w, other_times);
}

/* Run it as the next one, and complete it: on a busy machine the library goes on with that. */
static int run_next(void *once)
{
    int rc = lk_once_begin(once, PATIENT_MS);
    if (rc != 0)
        return rc == EALREADY ? 0 : rc;
    rc = lk_once_end(once, "by the next");
    return rc == EIO || rc == ENOTCONN ? 0 : rc;
}

static bool is_done(lk_once_t *once)
{
    lk_onceinfo_t info = LK_ONCEINFO_INIT;
    return lk_once_info(once, &info) == 0 && info.done;
}

static void assert_result(lk_once_t *once, const char *expected)
{
    char *text = NULL;
    eventually(is_done(once), BACK_MS + LATE_MS);
    eventually(lk_once_result(once, &text) == 0, BACK_MS + LATE_MS);
    assert_string_equal(expected, text);
    lk_free(text);
}

static void a_run_completes_once_or_is_lost(void)
{
    struct refusal begun, ended;
    struct worker waiter;
    struct world *w;
    lk_client_t *one, *other;
    int64_t left_ms;
    begin_outage(&w, &one, &other, long_times);
    lk_once_t *given = world_once(w, one, "given", &given_run), *held = world_once(w, one, "held", NULL);
    lk_once_t *wanted = world_once(w, other, "held", NULL), *tried = world_once(w, other, "tried", NULL);
    assert_lk(0, lk_once_begin(given, PATIENT_MS));
    assert_lk(0, lk_once_begin(held, PATIENT_MS));
    worker_start(&waiter, run_next, wanted);
    eventually(world_elements(w, "PUBSUB CHANNELS latchkey:ran:*") == 1, PATIENT_MS);

    present->begin(w);
    int64_t began_ms = now_ms();
    keep_words(&begun, lk_once_begin(tried, IMPATIENT_MS), began_ms);
    assert_refused(&begun, present->ends_tries || present->unsure ? 0 : IMPATIENT_MS, IMPATIENT_MS + LONG_COMMAND_MS);
    began_ms = now_ms();
    keep_words(&ended, lk_once_end(given, "in the end"), began_ms);
    assert_refused(&ended, 0, LONG_COMMAND_MS);
    assert_lk(EPERM, lk_once_end(given, "again"));
    eventually(lk_once_remaining(held, &left_ms) == ESTALE, LONG_LEASE_MS + LATE_MS);
    assert_lk(ESTALE, lk_once_end(held, "too late"));
    if (present->ends_tries)
        assert_int_equal(present->code, worker_join(&waiter));
    present->end(w);

    assert_result(given, "in the end"); /* by the library, long before its lease ends */
    if (present->ends_tries)
        eventually(run_next(wanted) == 0, BACK_MS + LATE_MS);
    else
        assert_int_equal(0, worker_join(&waiter));
    assert_result(wanted, "by the next");
    eventually(lk_once_begin(tried, PATIENT_MS) == 0, BACK_MS + LATE_MS); /* what began unseen was given up */
    sleep_ms(2 * LONG_COMMAND_MS);                                        /* no copy comes late */
    eventually(lk_once_check(tried) == 0, BACK_MS + LATE_MS);
    assert_result(given, "in the end");
    assert_result(wanted, "by the next");
    began_ms = now_ms();
    int failed = lk_once_fail(tried);
    if (!came_late(failed, began_ms))
        assert_lk(0, failed);
    world_end(w);
}

/* --- barriers: a party that waits outlives it with its lease, and without it breaks the round --------------------- */

static const lk_barrierattr_t patient_party = { .size = sizeof patient_party, .lease_ms = GIVEN_LEASE_MS };

static int meet(void *barrier)
{
    int rc = lk_barrier_waitfor(barrier, PATIENT_MS);
    if (rc != 0 && rc != LK_BARRIER_SERIAL)
        print_message("             %s\n", lk_errortext());
    return rc;
}

static int64_t parties(struct world *w, const char *name)
{
    return world_int(w, "ZCARD latchkey:parties:{%s}", name);
}

/* A party waits there, and has its answer: that of this call comes after it, by the same connection. */
static void await_party(struct world *w, lk_barrier_t *barrier, const char *name)
{
    lk_barrierinfo_t info = LK_BARRIERINFO_INIT;
    eventually(parties(w, name) == 1, PATIENT_MS);
    assert_lk(0, lk_barrier_info(barrier, &info));
}

static bool is_broken(lk_barrier_t *barrier)
{
    lk_barrierinfo_t info = LK_BARRIERINFO_INIT;
    return lk_barrier_info(barrier, &info) == 0 && info.broken;
}

/* It waits there, or has gone: on a busy machine its coming may have no answer in time, and then it does not stay. */
static bool has_come(struct world *w, const char *name, const struct gate *gone)
{
    return parties(w, name) == 1 || gate_is_open(gone);
}

struct comer {
    lk_barrier_t *barrier;
    struct gate gone;
};

static int come_and_go(void *arg)
{
    struct comer *comer = arg;
    int rc = meet(comer->barrier);
    gate_open(&comer->gone);
    return rc;
}

/* A round of two: one in a thread, which waits, and then this one. */
static void meets_again(struct world *w, lk_barrier_t *first, lk_barrier_t *second, const char *name)
{
    struct worker party;
    int met = 0, waited = EIO;
    for (int i = 0; i < 5 && waited == EIO; i++) {
        struct comer comer = { .barrier = first };
        eventually(lk_barrier_reset(first) == 0, BACK_MS + LATE_MS);
        worker_start(&party, come_and_go, &comer);
        eventually(has_come(w, name, &comer.gone), BACK_MS + LATE_MS);
        met = gate_is_open(&comer.gone) ? 0 : meet(second);
        waited = worker_join(&party);
    }
    assert_int_equal(LK_BARRIER_SERIAL, met);
    assert_int_equal(0, waited);
}

static void a_round_is_met_or_broken(void)
{
    struct refusal came;
    struct worker patient, hasty;
    struct world *w;
    lk_client_t *one, *other;
    begin_outage(&w, &one, &other, later_times);
    lk_barrier_t *long_one = world_barrier(w, one, "long", 2, &patient_party);
    lk_barrier_t *long_other = world_barrier(w, other, "long", 2, &patient_party);
    lk_barrier_t *brief_one = world_barrier(w, one, "brief", 2, NULL);
    lk_barrier_t *brief_other = world_barrier(w, other, "brief", 2, NULL);
    lk_barrier_t *tried_one = world_barrier(w, one, "tried", 2, NULL);
    lk_barrier_t *tried_other = world_barrier(w, other, "tried", 2, NULL);
    worker_start(&patient, meet, long_one);
    worker_start(&hasty, meet, brief_one);
    await_party(w, long_one, "long");
    await_party(w, brief_one, "brief");

    present->begin(w);
    int64_t began_ms = now_ms();
    keep_words(&came, lk_barrier_waitfor(tried_one, IMPATIENT_MS), began_ms);
    assert_refused(&came, present->ends_tries || present->unsure ? 0 : IMPATIENT_MS, IMPATIENT_MS + LONG_COMMAND_MS);
    sleep_ms(LONG_LEASE_MS + 100); /* no renewal came through */
    if (present->ends_tries) {
        assert_int_equal(present->code, worker_join(&patient));
        assert_int_equal(present->code, worker_join(&hasty));
    }
    present->end(w);

    if (present->ends_tries) /* it left as soon as it could: nobody waits for a party that has gone */
        eventually(is_broken(long_other), BACK_MS + LATE_MS);
    else
        assert_int_equal(LK_BARRIER_SERIAL, meet(long_other));
    if (!present->ends_tries) {
        assert_int_equal(0, worker_join(&patient));
        assert_int_equal(ECANCELED, worker_join(&hasty));
    }
    assert_int_equal(ECANCELED, meet(brief_other));
    sleep_ms(2 * LONG_COMMAND_MS); /* what came unseen is gone */
    meets_again(w, long_one, long_other, "long");
    meets_again(w, brief_one, brief_other, "brief");
    meets_again(w, tried_one, tried_other, "tried");
    world_end(w);
}

/* --- all of them --------------------------------------------------------------------------------------------------- */

static void for_all(subject_test_fn *body)
{
    if (present->computes)
        for_each_subject(present->server_args, body);
    else
        for_subjects_at_once(present->server_args, body);
}

static void shorter_than_the_lease(void)
{
    for_all(survive);
}

static void longer_than_the_lease(void)
{
    for_all(outlive);
}

int outage_tests(const struct outage *outage)
{
    present = outage;
    print_message("%s\n", outage->name);
    return plain_run(shorter_than_the_lease, longer_than_the_lease, a_latch_counts_exactly,
                     a_run_completes_once_or_is_lost, a_round_is_met_or_broken);
}

/* --- for those who make one --------------------------------------------------------------------------------------- */

static redisContext *aside;

static redisContext *connect_aside(struct world *w)
{
    redisContext *context = redisConnectUnix(w->socket);
    assert_that(context != NULL && context->err == 0);
    return context;
}

void outage_await(struct world *w, const char *error_code)
{
    redisContext *context = connect_aside(w);
    bool refused = false;
    for (int64_t until_ms = now_ms() + 5000; !refused; sleep_ms(1)) {
        redisReply *reply = redisCommand(context, "PING");
        assert_that(reply != NULL);
        refused = reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, error_code, strlen(error_code)) == 0;
        freeReplyObject(reply);
        assert_that(now_ms() < until_ms);
    }
    redisFree(context);
}

void outage_user(struct world *w)
{
    world_redis(w, "ACL SETUSER app on resetpass >old ~* &* +@all");
}

void outage_send(struct world *w, const char *format, ...)
{
    int written = 0;
    va_list args;
    va_start(args, format);
    aside = connect_aside(w);
    assert_that(redisvAppendCommand(aside, format, args) == REDIS_OK);
    va_end(args);
    while (!written)
        assert_that(redisBufferWrite(aside, &written) == REDIS_OK);
}

void outage_answered(void)
{
    void *reply = NULL;
    assert_that(redisGetReply(aside, &reply) == REDIS_OK);
    freeReplyObject(reply);
    redisFree(aside);
}
