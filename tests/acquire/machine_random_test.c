/* SPDX-License-Identifier: MIT */
/*
 * machine_random_test.c - an acquire meets a server, a network and a caller who do what they like
 *
 * A hundred thousand times; each outcome has to be true and in time. Now and then another server takes over, which knows
 * all that the one before did, but shows another time: its dates and those of before make no validity together.
 *
 * labels: memory
 */
#include "machine.h"

/* --- anything may happen -------------------------------------------------------------------------------- */

enum { SEQUENCES = 100000, EVENTS_MAX = 300, COPIES_MAX = 16, STEP_MAX_US = 60000 };

/* A request of a connection that is gone; the server may still read it. */
struct copy {
    bool ask;
    int64_t deadline_us;
};

/* One acquire, and the world it lives in. */
struct life {
    int number;
    struct play play;
    int64_t now_us;

    /* the server: whose clock runs up to 0.9 % faster or slower than ours */
    double rate;
    int64_t ahead_us;      /* what the clock of the present server shows beyond that */
    unsigned answered_by;  /* the epoch of the server that answered the last ask */
    bool others_differ;    /* the settings mark says something else than ours ... */
    bool strict;           /* ... and that is the end */
    bool queued;           /* we are in the queue */
    int asks;              /* how many were sent */
    bool behind;           /* the first of them was told that another waiter of our client stands there for us, too */
    bool busy;             /* somebody else holds it */
    int64_t ours_until_us; /* server's clock; 0: it is not ours */
    uint64_t token;

    /* the network */
    bool up;
    bool asking; /* what flies is an ask */
    bool text;   /* and was sent as the script's text */
    int64_t clock_before_us, clock_server_us;
    struct copy copies[COPIES_MAX];
    int copy_count;
    struct lk__grant mail; /* a message on its way; server_us 0: none */

    int64_t lease_ms;
    bool try_only, flying; /* settings; a request is under way */
    bool cancelled, released;
    int64_t bound_us; /* the call returns by then */
};

static bool once_in(uint64_t n)
{
    return drawn(n) == 0;
}

static int64_t server_at(const struct life *life, int64_t at_us)
{
    return SERVER_BEGAN_US + (int64_t)((double)(at_us - BEGAN_US) * life->rate);
}

static int64_t server_now(const struct life *life)
{
    return server_at(life, life->now_us);
}

/* What the present server's clock shows. */
static int64_t shown(const struct life *life)
{
    return server_now(life) + life->ahead_us;
}

/* Redis counts leases in whole milliseconds of a clock that it rounds down. */
static int64_t lease_end(const struct life *life, int64_t lease_ms)
{
    return (server_now(life) / 1000 + lease_ms) * 1000;
}

static bool is_ours(const struct life *life)
{
    return life->ours_until_us > server_now(life);
}

static struct lk__asked obey_ask(struct life *life, int64_t deadline_us)
{
    int64_t now_us = shown(life);
    bool ours = is_ours(life);
    if (now_us > deadline_us)
        return asked_of(LK__LATE, 0, 0, now_us, 0);
    if (life->play.marking == LK__COMPARE && life->others_differ)
        return asked_of(LK__DISAGREES, 0, 0, now_us, life->strict);
    if (life->play.marking != LK__UNMARKED)
        life->others_differ = once_in(3); /* the next one changes it, or nobody comes */
    if (ours || !life->busy) {
        life->ours_until_us = lease_end(life, life->lease_ms);
        life->queued = false;
        life->token += !ours;
        return asked_of(LK__GRANTED, (int64_t)life->token, 0, now_us, 0);
    }
    int64_t left_ms = (int64_t)drawn(3000);
    if (life->try_only)
        return asked_of(LK__BUSY, 0, left_ms, now_us, 0);
    if (life->asks == 1 && !life->queued && once_in(4))
        return asked_of(LK__BEHIND, 11, left_ms, now_us, 0);
    life->queued = true;
    return asked_of(LK__QUEUED, 11, left_ms, now_us, (int64_t)drawn(4));
}

static struct lk__answer obey_release(struct life *life)
{
    bool ours = is_ours(life);
    life->ours_until_us = 0;
    life->queued = false;
    return (struct lk__answer){ ours ? LK__DONE : LK__GONE, shown(life), 0 };
}

/* What others do: they take it and give it back, also to us. */
static void let_others_act(struct life *life)
{
    if (is_ours(life) || !once_in(4))
        return;
    life->busy = !life->busy;
    if (life->busy || !life->queued)
        return;
    life->ours_until_us = lease_end(life, CLAIM);
    life->queued = false;
    life->token++;
    if (!once_in(8)) /* or the message gets lost */
        life->mail = (struct lk__grant){ shown(life), CLAIM, life->token, false, life->play.epoch };
}

static void let_a_copy_arrive(struct life *life)
{
    if (life->copy_count == 0 || !once_in(3))
        return;
    struct copy copy = life->copies[--life->copy_count];
    if (copy.ask)
        obey_ask(life, copy.deadline_us);
    else
        obey_release(life);
}

/* Let time pass, but not beyond `until_us`. */
static void pass(struct life *life, int64_t us, int64_t until_us)
{
    life->now_us = until_us - life->now_us < us ? until_us : life->now_us + us;
    let_others_act(life);
    let_a_copy_arrive(life);
}

/* What is on its way to the one before never comes; what that one has said does. */
static void another_takes_over(struct life *life)
{
    life->play.epoch++;
    life->ahead_us = (int64_t)drawn(20000001) - 10000000;
    life->copy_count = 0;
}

static void comes_up(struct life *life)
{
    life->up = true;
    life->clock_before_us = life->now_us; /* the handshake tells the time */
    life->clock_server_us = shown(life);
}

static struct lk__step connection_breaks(struct life *life)
{
    static const enum lk__request_state states[] = { LK__CUT, LK__CUT, LK__GARBLED, LK__UNSENT };
    struct lk__acquirefsm *a = &life->play.machine;
    enum lk__request_state how = states[drawn(4)];
    life->up = life->flying = false;
    if (how != LK__UNSENT) {
        if (life->copy_count < COPIES_MAX && once_in(2))
            life->copies[life->copy_count++] = (struct copy){ life->asking, life->play.deadline_us };
        else if (once_in(2) && life->asking)
            obey_ask(life, life->play.deadline_us);
        else if (!life->asking)
            obey_release(life);
    }
    if (once_in(3))
        another_takes_over(life);
    return lk__acquirefsm_cut(a, life->now_us, how);
}

/* The answer of a server that cannot now; it did nothing, or what a rule let it do. */
static const char *refusal(struct life *life)
{
    static const char *const texts[] = { "LOADING", "OOM", "BUSY", "NOSCRIPT", "NOSCRIPT", "NOPERM" };
    const char *text = texts[drawn(life->asking ? 6 : 5)];
    if (strcmp(text, "NOSCRIPT") == 0 && life->text) /* it is told the script and knows it */
        text = "BUSY";
    if (text[0] == 'N' && text[2] == 'P' && life->busy && !life->try_only)
        life->queued = true;
    return text;
}

/* Others may have the server answer them on the way. */
static void answer_travels(struct life *life)
{
    pass(life, (int64_t)drawn(STEP_MAX_US / 10), life->play.step.until_us);
    life->play.machine.heard = !once_in(20);
}

static struct lk__step ask_is_answered(struct life *life)
{
    struct lk__asked asked = obey_ask(life, life->play.deadline_us);
    bool garbled = once_in(100);
    answer_travels(life);
    if (garbled)
        return lk__acquirefsm_answered(&life->play.machine, life->now_us, life->play.sent_us, NULL);
    life->answered_by = life->play.epoch;
    life->behind = asked.verdict == LK__BEHIND;
    life->clock_before_us = life->play.sent_us;
    life->clock_server_us = asked.server_us;
    return answer(&life->play, life->now_us, asked);
}

static struct lk__step release_is_answered(struct life *life)
{
    struct lk__answer left = obey_release(life);
    answer_travels(life);
    return lk__acquirefsm_left(&life->play.machine, life->now_us, life->play.epoch, &left);
}

static struct lk__step server_answers(struct life *life)
{
    life->flying = false;
    if (!once_in(8))
        return life->asking ? ask_is_answered(life) : release_is_answered(life);
    const char *text = refusal(life);
    answer_travels(life);
    return refuse_at(&life->play, life->now_us, text);
}

static struct lk__step somebody_cancels(struct life *life)
{
    if (!life->cancelled && life->bound_us > life->now_us + COMMAND * 1000)
        life->bound_us = life->now_us + COMMAND * 1000;
    life->cancelled = true;
    return lk__acquirefsm_cancel(&life->play.machine, life->now_us, ECANCELED);
}

/* What may come in whatever is done; false: nothing did. */
static bool something_comes(struct life *life, struct lk__step *step)
{
    struct lk__acquirefsm *a = &life->play.machine;
    if (life->mail.server_us != 0 && once_in(3)) {
        struct lk__grant mail = life->mail;
        life->mail.server_us = 0;
        *step = lk__acquirefsm_granted(a, life->now_us, &mail);
    } else if (once_in(10)) {
        *step = lk__acquirefsm_hinted(a, life->now_us);
    } else if (once_in(60)) {
        *step = somebody_cancels(life);
    } else {
        return false;
    }
    return true;
}

static struct lk__step carry_out(struct life *life, struct lk__step step)
{
    struct lk__acquirefsm *a = &life->play.machine;
    switch (step.act) {
    case LK__ASK:
    case LK__LEAVE:
        if (life->released && step.act == LK__ASK)
            fail_msg("sequence %d: it asks after its release", life->number);
        if (step.act == LK__ASK && life->behind && once_in(2))
            return lk__acquirefsm_led(a, life->now_us);
        if (!life->up)
            return lk__acquirefsm_unsent(a, life->now_us);
        life->asking = step.act == LK__ASK;
        life->asks += life->asking;
        life->text = life->play.manner == LK__BY_TEXT;
        life->released |= !life->asking;
        life->flying = true;
        return send_it(&life->play, life->now_us, life->clock_server_us + (life->now_us - life->clock_before_us));
    case LK__AWAIT:
        pass(life, (int64_t)drawn(STEP_MAX_US), step.until_us);
        if (something_comes(life, &step))
            return step;
        if (once_in(6))
            return connection_breaks(life);
        return once_in(4) ? lk__acquirefsm_tick(a, life->now_us) : server_answers(life);
    case LK__CONNECT:
        pass(life, (int64_t)drawn(STEP_MAX_US), step.until_us);
        if (something_comes(life, &step))
            return step;
        if (once_in(4))
            return lk__acquirefsm_unsent(a, life->now_us);
        if (once_in(2))
            comes_up(life);
        return lk__acquirefsm_connected(a, life->now_us,
                                        life->up                        ? 0
                                        : life->now_us >= step.until_us ? ETIMEDOUT
                                                                        : ENOTCONN);
    default:
        pass(life, once_in(3) ? (int64_t)drawn(STEP_MAX_US) : 3000000, step.until_us);
        if (something_comes(life, &step))
            return step;
        return lk__acquirefsm_tick(a, life->now_us);
    }
}

static void expect_sane_step(const struct life *life)
{
    const struct lk__step *step = &life->play.step;
    bool waits = step->act == LK__AWAIT || step->act == LK__CONNECT || step->act == LK__PARK;
    if (waits && step->until_us > life->bound_us)
        fail_msg("sequence %d: %s until %lld us after the last moment", life->number, act_name(step->act),
                 (long long)(step->until_us - life->bound_us));
    if (waits && step->until_us < life->now_us)
        fail_msg("sequence %d: %s until a moment in the past", life->number, act_name(step->act));
}

static void expect_true_end(const struct life *life)
{
    const struct lk__acquirefsm_result *end = result_of(&life->play);
    if (life->now_us > life->bound_us)
        fail_msg("sequence %d: ends too late", life->number);
    if (end->code == 0 || end->code == EOWNERDEAD) {
        if (end->valid_until_us <= life->now_us || end->unknown || life->released)
            fail_msg("sequence %d: held, but no longer valid", life->number);
        if (end->claimed && end->granted.epoch != life->answered_by)
            fail_msg("sequence %d: valid by the dates of two servers", life->number);
        if (life->ours_until_us < server_at(life, end->valid_until_us))
            fail_msg("sequence %d: valid for longer than the server says", life->number);
        if (end->token != life->token)
            fail_msg("sequence %d: another token than the server gave", life->number);
        return;
    }
    if (end->unknown) {
        if (end->code != EIO && end->code != EPROTO)
            fail_msg("sequence %d: unknown, but %s", life->number, code_name(end->code));
        return;
    }
    if (end->code == EIO)
        fail_msg("sequence %d: known, but EIO", life->number);
    if (is_ours(life) || life->queued)
        fail_msg("sequence %d: %s, but the server has it", life->number, code_name(end->code));
    if (life->flying)
        fail_msg("sequence %d: %s, but its last request is under way", life->number, code_name(end->code));
    for (int i = 0; i < life->copy_count; i++)
        if (life->copies[i].ask && life->copies[i].deadline_us >= shown(life))
            fail_msg("sequence %d: %s, but a copy may still come", life->number, code_name(end->code));
}

static void live(int number, int *ends)
{
    struct life life = { .number = number, .now_us = BEGAN_US, .token = 1, .busy = true, .up = true };
    seed = (uint64_t)number * 0x9e3779b97f4a7c15ULL + 1;
    struct lk__acquirefsm_settings settings =
        once_in(4) ? trying() : limited(once_in(4) ? NEVER : (int64_t)drawn(1500));
    settings.compare = once_in(2);
    life.strict = once_in(2);
    life.others_differ = once_in(2);
    settings.lease_ms = once_in(4) ? settings.try_only ? 300 : CLAIM : LEASE; /* a claim is never longer */
    life.play = begin_as(settings);
    life.lease_ms = settings.lease_ms;
    life.try_only = settings.try_only;
    life.rate = 0.991 + (double)drawn(18001) / 1e6;
    life.busy = !once_in(3);
    life.up = !once_in(5);
    life.clock_before_us = BEGAN_US;
    life.clock_server_us = server_at(&life, BEGAN_US) + (int64_t)drawn(5000);
    life.bound_us = settings.limit_us == LK__NEVER ? LK__NEVER
                    : settings.limit_us > BEGAN_US ? settings.limit_us + COMMAND * 1000
                                                   : BEGAN_US + COMMAND * 1000;
    life.play.step = lk__acquirefsm_start(&life.play.machine, life.now_us);
    for (int event = 0; life.play.step.act != LK__FINISHED; event++) {
        if (event == EVENTS_MAX) /* it must end, whatever else happens */
            life.play.step = somebody_cancels(&life);
        else if (event > 2 * EVENTS_MAX + COMMAND * 1000)
            fail_msg("sequence %d: does not end", number);
        else
            life.play.step = carry_out(&life, life.play.step);
        expect_sane_step(&life);
    }
    expect_true_end(&life);
    const struct lk__acquirefsm_result *end = result_of(&life.play);
    ends[end->unknown ? 2 : end->code != 0]++;
}

static void whatever_happens_the_outcome_is_true_and_in_time(void)
{
    int ends[3] = { 0 };
    draws = ANY;
    for (int number = 1; number <= SEQUENCES; number++)
        live(number, ends);
    /* or it would prove nothing */
    for (int i = 0; i < 3; i++)
        assert_true(ends[i] > SEQUENCES / 20);
}

int main(void)
{
    return plain_run_with(middle_draws, whatever_happens_the_outcome_is_true_and_in_time);
}
