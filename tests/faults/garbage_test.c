/* SPDX-License-Identifier: MIT */
/*
 * garbage_test.c - F41 answers that cannot be read, and F42 answers that can but make no sense
 *
 * The real server carries the request out, and the answer is exchanged on its way: so it shows whether
 * what was done unseen is taken back.
 *
 * labels: memory
 * simulated: yes
 * seconds: 180
 */
#include "process.h"
#include "rig.h"

#include <string.h>

enum { LIMIT_MS = 300, COMMAND_MS = 1300 };

/* With time to connect anew after each answer that cannot be read, on a busy machine, too. */
#define PATIENT "lease=4s&command_timeout=1300ms&poll=200ms"
#define BRIEF "lease=4s&command_timeout=800ms&poll=200ms" /* where no answer is awaited in vain */

#define TEXT(bytes)                                                                                                    \
    {                                                                                                                  \
        bytes, sizeof bytes - 1                                                                                        \
    }

struct nonsense {
    const char *bytes;
    size_t length;
};

/* F41: no parser gets through these. */
static const struct nonsense unreadable[] = {
    TEXT("hello\r\n"),
    TEXT("\0\0\0\0\r\n"),
    TEXT("*100000000\r\n"),  /* a hundred million elements */
    TEXT("*65\r\n"),         /* one more than any of our answers has */
    TEXT("$1073741824\r\n"), /* a text of a gigabyte */
    TEXT("*-7\r\n"),
    TEXT("$-9\r\n"),
    TEXT(":12x\r\n"),
    TEXT("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"),
    TEXT("HTTP/1.1 400 Bad Request\r\n\r\n"),
};

/* F42: well-formed, and no answer to anything that we ask. */
static const struct nonsense senseless[] = {
    TEXT("+OK\r\n"),
    TEXT(":1\r\n"),
    TEXT("$-1\r\n"), /* nil */
    TEXT("*0\r\n"),
    TEXT("*-1\r\n"),
    TEXT("*1\r\n:1\r\n"),
    TEXT("*5\r\n$1\r\n1\r\n$1\r\n1\r\n:0\r\n:0\r\n:0\r\n"), /* texts for numbers */
    TEXT("*5\r\n:99\r\n:0\r\n:0\r\n:0\r\n:0\r\n"),          /* no such outcome */
    TEXT("*5\r\n:1\r\n:0\r\n:0\r\n:0\r\n:0\r\n"),           /* held, at time 0 */
    TEXT("*5\r\n:1\r\n:-5\r\n:0\r\n:0\r\n:0\r\n"),
    TEXT("*5\r\n:1\r\n:0\r\n:0\r\n:1700000000000000\r\n:0\r\n"),      /* held, with token 0 */
    TEXT("*5\r\n:0\r\n:5\r\n:100\r\n:9223372036854775807\r\n:0\r\n"), /* queued, in the year 294247 */
    TEXT("*5\r\n:0\r\n:5\r\n:-100\r\n:-1\r\n:-3\r\n"),                /* all of it below zero */
    TEXT("-WHATEVER this is\r\n"),
};

enum {
    UNREADABLE = sizeof unreadable / sizeof unreadable[0],
    SENSELESS = sizeof senseless / sizeof senseless[0],
    NONSENSE = UNREADABLE + SENSELESS,
    HOLDS_ONLY = 6, /* the last but one are senseless only where a hold is the question */
};

static bool is_senseless_everywhere(int i)
{
    return i < NONSENSE - 1 - HOLDS_ONLY || i == NONSENSE - 1;
}

static const struct nonsense *nonsense(int i)
{
    return i < UNREADABLE ? &unreadable[i] : &senseless[i - UNREADABLE];
}

static struct rig *rig;
static struct proxy *p;

/* Every answer about one of our things is this, until it is over. */
static void forge(const struct nonsense *what)
{
    print_message("    %.24s\n", what->bytes);
    proxy_forge(p, "thing-", what->bytes, what->length);
}

static void forge_no_more(void)
{
    proxy_forge(p, NULL, NULL, 0);
}

/* What nobody can have seen is taken back, long before its lease. */
static void nothing_is_left(int64_t within_ms)
{
    for_each_place(place, rig) {
        eventually(subject_held(rig->w, &place->mine) == 0, within_ms + RIG_SLACK_MS);
        eventually(subject_queued(rig->w, &place->mine) == 0, within_ms + RIG_SLACK_MS);
    }
}

/* A: EPROTO, at once, and no hold; whatever the server did is undone. */
static void a_take_is_refused(struct world *w)
{
    long before_kib = peak_kib();
    rig = rig_begin_behind(w, &p, PATIENT);
    for (int i = 0; i < NONSENSE; i++) {
        forge(nonsense(i));
        for_each_place(place, rig) {
            int64_t began_ms = now_ms();
            assert_lk(EPROTO, subject_take(&place->mine, 0));
            assert_between(now_ms() - began_ms, 0, COMMAND_MS + RIG_SLACK_MS);
            assert_true(lk_errortext()[0] != 0);
            if (place->mine.kind->leased)
                assert_lk(EPERM, subject_give(&place->mine));
        }
        assert_lk(EPROTO, lk_barrier_waitfor(&rig->lasting, LIMIT_MS));
        forge_no_more();
        nothing_is_left(3 * COMMAND_MS);
        rig_mend(rig, 3 * COMMAND_MS + RIG_SLACK_MS); /* it came, and left */
    }
    if (!SANITIZED)
        assert_between(peak_kib() - before_kib, 0, 16 * 1024);
    rig_works(rig);
}

/* W: who waits is told as well, and leaves the queue; what is granted to him meanwhile goes back. */
static void a_wait_is_ended(struct world *w)
{
    static const int some[] = { 0, 2, 5, UNREADABLE, UNREADABLE + 2, UNREADABLE + 7 };
    struct errand errands[RIG_PLACES];
    struct party party;
    rig = rig_begin_behind(w, &p, PATIENT);
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        party_wait(rig, &party, &rig->lasting, LK_FOREVER);
        for_each_place(place, rig) {
            assert_lk(0, subject_take(&place->theirs, 5000));
            errand_start(&errands[place - rig->places], &place->mine, 10000);
            eventually(errand_waits(rig->w, &errands[place - rig->places]), 5000);
        }
        forge(nonsense(some[i]));
        int went = party_join(&party);
        assert_true(went == EPROTO || went == EIO);
        for_each_place(place, rig) {
            struct errand *errand = &errands[place - rig->places];
            errand_join(errand);                                        /* at its next poll */
            assert_true(errand->took == EPROTO || errand->took == EIO); /* EIO: his answer was behind the forged one */
        }
        for_each_place(place, rig)
            assert_lk(0, subject_give(&place->theirs));
        forge_no_more();
        nothing_is_left(3 * COMMAND_MS);
        rig_mend(rig, 3 * COMMAND_MS + RIG_SLACK_MS);
    }
    rig_works(rig);
}

/* W: the subscription cannot be read. Then there is none, and waiters poll. */
static void a_subscription_that_cannot_be_read(struct world *w)
{
    struct errand errand;
    struct party party;
    p = proxy_begin(w);
    proxy_forge(p, "*2\r\n$9\r\nSUBSCRIBE", unreadable[0].bytes, unreadable[0].length);
    rig = rig_begin(w, proxy_url(p, RIG_OPTIONS), "lease=10s&command_timeout=2s&poll=200ms");
    for_each_place(place, rig) {
        assert_lk(0, subject_take(&place->theirs, 5000));
        errand_start(&errand, &place->mine, 10000);
        eventually(errand_waits(w, &errand), 5000);
        int64_t given_ms = now_ms();
        assert_lk(0, subject_give(&place->theirs));
        errand_join(&errand);
        assert_lk(0, errand.took);
        assert_between(errand.took_ms - given_ms, 0, RIG_POLL_MS * 6 / 5 + RIG_SLACK_MS);
    }
    party_wait(rig, &party, &rig->stage, 10000);
    int64_t met_ms = now_ms();
    assert_int_equal(LK_BARRIER_SERIAL, rig_meet(rig));
    assert_lk(0, party_join(&party));
    assert_between(party.went_ms - met_ms, 0, RIG_POLL_MS * 6 / 5 + RIG_SLACK_MS);
    forge_no_more();
    rig_works(rig);
}

/* H: such an answer to a renewal is no renewal: a scare, and a loss at the end of what was promised, at the latest. */
static void a_renewal_has_failed(struct world *w)
{
    static const int some[] = { 0, UNREADABLE, UNREADABLE + 6 };
    int64_t ms;
    int lost = 0;
    rig = rig_begin_behind(w, &p, RIG_OPTIONS);
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        int at_risk = rig_count(&rig->at_risk);
        for_each_place(place, rig)
            place_take(place);
        forge(nonsense(some[i]));
        eventually(rig_count(&rig->at_risk) == at_risk + RIG_PLACES - 1, RIG_LEASE_MS);
        if (i == 0) {
            forge_no_more();
            eventually(rig_count(&rig->recovered) == RIG_PLACES - 1, RIG_LEASE_MS);
            forge(nonsense(some[i]));
        }
        lost += RIG_PLACES - 1;
        eventually(rig_count(&rig->lost) == lost, 2 * RIG_LEASE_MS);
        forge_no_more();
        for_each_place(place, rig) {
            if (!place->mine.kind->leased) {
                place_give(rig, &place->mine);
                continue;
            }
            assert_lk(ESTALE, subject_remaining(&place->mine, &ms));
            assert_lk(ESTALE, subject_give(&place->mine));
        }
        nothing_is_left(RIG_LEASE_MS); /* the server did renew it */
        assert_int_equal(lost, rig_count(&rig->lost));
    }
    rig_works(rig);
}

/* R: EPROTO; the caller has given it back, and the server did what it was asked, once. */
static void a_release_is_done_all_the_same(struct world *w)
{
    rig = rig_begin_behind(w, &p, PATIENT);
    for (int i = 0; i < NONSENSE; i++) {
        if (!is_senseless_everywhere(i))
            continue;
        for_each_place(place, rig)
            assert_lk(0, subject_take(&place->patient, 5000));
        assert_lk(0, lk_once_begin(&rig->work, 5000));
        forge(nonsense(i));
        for_each_place(place, rig) {
            int64_t began_ms = now_ms();
            assert_lk(EPROTO, subject_give(&place->patient));
            assert_between(now_ms() - began_ms, 0, COMMAND_MS + RIG_SLACK_MS);
            if (place->mine.kind->leased) {
                assert_true(lk_errorsettles() > 0);
                assert_lk(EPERM, subject_give(&place->patient));
            }
            assert_int_equal(0, subject_held(rig->w, &place->mine));
        }
        assert_lk(EPROTO, lk_once_end(&rig->work, "in a mess"));
        assert_lk(EPERM, lk_once_end(&rig->work, "again"));
        forge_no_more();
        rig_done(rig, "in a mess", COMMAND_MS);
    }
    sleep_ms(COMMAND_MS); /* the library goes on asking, which changes nothing */
    nothing_is_left(3 * COMMAND_MS);
    rig_works(rig);
}

/* The latch: told likewise, and each count counts once, though nobody saw its answer. */
static void a_count_is_exact(struct world *w)
{
    unsigned count;
    rig = rig_begin_behind(w, &p, PATIENT);
    for (int i = 0; i < NONSENSE; i++) {
        const struct nonsense *what = nonsense(i);
        if (!is_senseless_everywhere(i))
            continue;
        print_message("    %.24s\n", what->bytes);
        world_redis(w, "SET gate 5");
        proxy_forge(p, "gate", what->bytes, what->length);
        assert_lk(EPROTO, lk_latch_countdown(&rig->gate));
        assert_lk(EPROTO, lk_latch_getcount(&rig->gate, &count));
        assert_lk(EPROTO, lk_latch_waitfor(&rig->gate, LIMIT_MS));
        forge_no_more();
        sleep_ms(50);
        assert_int_equal(4, world_int(w, "GET gate"));
        world_redis(w, "DEL gate");
        proxy_forge(p, "gate", what->bytes, what->length);
        assert_lk(EPROTO, lk_latch_trysetcount(&rig->gate, 2));
        forge_no_more();
        assert_int_equal(2, world_int(w, "GET gate"));
        world_redis(w, "DEL gate");
    }
    rig_works(rig);
}

/* A piece of an answer, and then silence: as if none had come. */
static void a_piece_of_an_answer_is_none(struct world *w)
{
    static const struct nonsense pieces[] = { TEXT("*5\r\n:1\r\n:"), TEXT("$100\r\nabc"), TEXT("-ERR what"),
                                              TEXT("*") };
    rig = rig_begin_behind(w, &p, BRIEF);
    for (int i = 0; i < 4; i++) {
        forge(&pieces[i]);
        struct place *place = &rig->places[i];
        assert_lk(EIO, subject_take(&place->mine, 0));
        forge_no_more();
        nothing_is_left(3 * COMMAND_MS);
    }
    rig_works(rig);
}

int main(void)
{
    return world_run(a_take_is_refused, a_wait_is_ended, a_subscription_that_cannot_be_read, a_renewal_has_failed,
                     a_release_is_done_all_the_same, a_count_is_exact, a_piece_of_an_answer_is_none);
}
