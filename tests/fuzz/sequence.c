/* SPDX-License-Identifier: MIT */
/*
 * sequence.c - the acquire machine in a world that does anything: the input is a list of what happens
 *
 * Beside the machine runs what it should know: what a grant was answered or announced, whether the server
 * may still have us, by when the call has to return. The ends have to agree.
 */
#include "fuzz.h"
#include "acquire/acquire.h"

#define BEGAN_US INT64_C(5000000000)
#define LEASE_END_MAX INT64_C(86400000)

enum { GRANTS = 64, STEPS_AFTER = 64, EPOCHS = 8 };
enum { SENDS_IN_A_ROW = 8 }; /* an ask and a release, each by digest and as text, each once more after a cut */

enum waking { EARLY, IN_TIME, LATE };

struct world {
    struct input input;
    struct lk__acquirefsm_settings set;
    struct lk__acquirefsm machine;
    struct lk__step step;
    int64_t now_us, sent_us, hard_us;
    unsigned epoch;           /* of the server that is asked next */
    int64_t clock_us[EPOCHS]; /* what the clocks of the servers show more than ours */
    unsigned sent_epoch;      /* of the server that the request under way went to, */
    unsigned answered_epoch;  /* and of the one that answered the last ask */
    int64_t deadline_us;      /* of the last ask, on our clock */
    enum lk__manner manner;   /* of the request under way, or the next one */
    bool flying, leaving;     /* a request is under way; the last one is a release */
    bool on_way_out;          /* it will not be held */
    int sends;                /* since time last moved or news came */
    bool may_have_us;         /* by what was answered */
    int64_t copies[EPOCHS];   /* on our clock: deadline of an ask of that epoch that may still take effect; 0: none */
    int64_t verdicts;         /* bit v - LK__OVERTAKEN, the least of them: verdict v was answered */
    int cancel_code;          /* 0: not cancelled */
    struct known {
        uint64_t token;
        int64_t until_us; /* latest validity; LK__NEVER: of a message */
        bool owner_died;
    } grants[GRANTS];
    int grant_count;
};

/* The source of jitter: none, so that an input replays. Stands before the library's own. */
uint64_t lk__random_below(uint64_t bound)
{
    return bound / 2;
}

int lk__random_id(char id[LK__ID_LENGTH + 1])
{
    memset(id, '0', LK__ID_LENGTH);
    id[LK__ID_LENGTH] = '\0';
    return 0;
}

/* --- numbers ------------------------------------------------------------------------------------------------- */

/* Small ones, large ones, and those at the edges of what is sane. */
static int64_t any_number(struct input *input)
{
    static const int64_t edges[] = { INT64_MIN,        INT64_MIN + 1, -1,
                                     INT64_MAX,        INT64_MAX - 1, (INT64_C(1) << 53) - 1,
                                     INT64_C(1) << 53, INT32_MAX };
    uint8_t how = take_byte(input);
    if (how < 128)
        return (int64_t)how - 16;
    if (how < 160)
        return edges[how % 8];
    return (int64_t)take_number(input, how % 8 + 1);
}

/* 0 to about 1000 s, most of them short. */
static int64_t any_time_us(struct input *input)
{
    int shift = take_byte(input) % 20;
    return ((int64_t)take_byte(input) << shift) * 8;
}

static int64_t between(struct input *input, int64_t least, int64_t most)
{
    return least + (int64_t)(take_number(input, 3) % (uint64_t)(most - least + 1));
}

/*
 * A call that stood still, from when it was to wake, for as long as a command timeout, and finds its time over, has one
 * command timeout more. It was to wake from a wait when it said so; the way out, and whatever is under way, last until the
 * end of its time.
 */
static void advance(struct world *w, int64_t us)
{
    int64_t due_us = w->hard_us;
    if (w->step.act == LK__PARK && w->machine.phase == LK__WAITING && w->step.until_us < due_us)
        due_us = w->step.until_us;
    if (us > 0)
        w->sends = 0;
    w->now_us += us;
    if (w->now_us >= w->hard_us && w->now_us >= lk__later(due_us, w->set.command_us))
        w->hard_us = w->now_us + w->set.command_us;
}

/* --- answers ------------------------------------------------------------------------------------------------- */

static void set_text(struct lk__reply *reply, unsigned i, enum lk__type type, const char *text)
{
    static char texts[256];
    strcpy(texts, text);
    reply->text = texts;
    reply->values[i] = (struct lk__value){ .type = type, .length = strlen(text) };
}

static const char *any_error(struct input *input)
{
    static const char *const errors[] = { "NOSCRIPT No matching script.",
                                          "OOM command not allowed",
                                          "READONLY You can't write",
                                          "NOPERM this user",
                                          "WRONGTYPE Operation against",
                                          "LOADING",
                                          "ERR user executing the script",
                                          "ERR max number of clients reached",
                                          "MOVED 1 a:1",
                                          "" };
    return errors[take_byte(input) % (sizeof errors / sizeof *errors)];
}

static void any_element(struct world *w, struct lk__reply *reply, unsigned i)
{
    uint8_t how = take_byte(&w->input);
    if (how == 255)
        set_text(reply, i, LK__TEXT, "1");
    else if (how == 254)
        reply->values[i].type = LK__NIL;
    else
        reply->values[i] = (struct lk__value){ .type = LK__INTEGER, .number = any_number(&w->input) };
}

/* A time that the server may show. */
static int64_t server_time(struct world *w, unsigned epoch)
{
    return w->now_us + w->clock_us[epoch] + (int64_t)take_number(&w->input, 2) * 16;
}

/* To an ask: verdict, token or arrival, ms left, server us, place; to a release: verdict, server us. */
static void any_reply(struct world *w, struct lk__reply *reply)
{
    uint8_t how = take_byte(&w->input);
    *reply = (struct lk__reply){ .type = LK__ARRAY, .count = how % 8, .most = reply->most, .values = reply->values };
    if (how >= 0xf0) {
        reply->type = how % 2 == 0 ? LK__ERROR : LK__NIL;
        reply->count = 1;
        reply->values[0].type = reply->type;
        if (reply->type == LK__ERROR)
            set_text(reply, 0, LK__ERROR, any_error(&w->input));
        return;
    }
    for (unsigned i = 0; i < reply->count; i++)
        any_element(w, reply, i);
    if (how & 0x40) { /* likely: the server's time stands where it should */
        unsigned place = w->leaving ? 1 : 3;
        if (place < reply->count)
            reply->values[place] = (struct lk__value){ .type = LK__INTEGER, .number = server_time(w, w->sent_epoch) };
    }
}

/* --- what should be known -------------------------------------------------------------------------------------- */

static void keep_grant(struct world *w, uint64_t token, int64_t until_us, bool owner_died)
{
    w->grants[w->grant_count++ % GRANTS] = (struct known){ token, until_us, owner_died };
}

static bool is_whole(const struct lk__reply *reply, unsigned count)
{
    bool whole = reply->type == LK__ARRAY && reply->count >= count;
    for (unsigned i = 0; whole && i < count; i++)
        whole = reply->values[i].type == LK__INTEGER;
    return whole;
}

static bool has_copies(const struct world *w)
{
    bool any = false;
    for (int i = 0; i < EPOCHS; i++)
        any |= w->copies[i] != 0;
    return any;
}

/*
 * The server said what its clock shows: copies with a deadline before that came, or never come. Those that went to
 * another server are over by our clock, too.
 */
static void forget_copies(struct world *w, int64_t server_us)
{
    for (unsigned i = 0; i < EPOCHS; i++)
        if (server_us > w->copies[i] + w->clock_us[w->sent_epoch] || (i != w->sent_epoch && w->now_us > w->copies[i]))
            w->copies[i] = 0;
}

static void forget_all_copies(struct world *w)
{
    __builtin_memset(w->copies, 0, sizeof w->copies);
}

static void keep_copy(struct world *w)
{
    if (w->deadline_us > w->copies[w->sent_epoch])
        w->copies[w->sent_epoch] = w->deadline_us;
}

static void learn_from_refusal(struct world *w, const struct lk__reply *reply)
{
    const char *text = reply->text;
    bool refused = strncmp(text, "NOPERM", 6) == 0 || strstr(text, "user executing") != NULL;
    bool unbegun = strstr(text, " key") != NULL && strstr(text, "script") == NULL;
    if (refused && !unbegun)
        w->may_have_us = true; /* stopped in the middle */
}

static void learn_from_ask(struct world *w, const struct lk__reply *reply)
{
    const struct lk__value *v = reply->values;
    int64_t lease_us = w->set.lease_ms * 1000;
    if (reply->type == LK__ERROR) {
        learn_from_refusal(w, reply);
        return;
    }
    if (!is_whole(reply, 5) || v[3].number <= 0 || v[3].number >= INT64_C(1) << 53) {
        w->may_have_us = true;
        return;
    }
    forget_copies(w, v[3].number);
    if (v[0].number >= LK__OVERTAKEN && v[0].number <= LK__BUSY)
        w->verdicts |= 1 << (v[0].number - LK__OVERTAKEN);
    if (v[0].number == LK__UNRECOVERABLE || v[0].number == LK__IMPOSSIBLE) {
        w->may_have_us = false;
        forget_all_copies(w); /* they find the same */
    } else if (v[0].number == LK__GRANTED || v[0].number == LK__GRANTED_OWNERDEAD) {
        w->may_have_us = true;
        if (v[1].number > 0)
            keep_grant(w, (uint64_t)v[1].number, w->sent_us + lease_us - lease_us / 100 - 2000,
                       v[0].number == LK__GRANTED_OWNERDEAD);
    } else if (v[0].number != LK__BUSY && v[0].number != LK__LATE && v[0].number != LK__FULL) {
        w->may_have_us = true;
    }
}

static void learn_from_release(struct world *w, const struct lk__reply *reply)
{
    if (reply->type == LK__ERROR && strncmp(reply->text, "WRONGTYPE", 9) == 0)
        w->may_have_us = false; /* a release gives back before it looks at other keys */
    if (!is_whole(reply, 2))
        return;
    w->may_have_us = false;
    if (w->set.recorded)
        forget_all_copies(w);
    else
        forget_copies(w, reply->values[1].number);
}

/* --- what happens ------------------------------------------------------------------------------------------------ */

/* As a script's reader does it, which lets no other verdict through and no other time. */
static void answer_ask(struct world *w, const struct lk__reply *reply)
{
    const struct lk__value *v = reply->values;
    bool good =
        is_whole(reply, 5) && lk__is_servertime(v[3].number) && v[0].number >= LK__OVERTAKEN && v[0].number <= LK__BUSY;
    struct lk__asked asked = { .verdict = good ? (enum lk__verdict)v[0].number : LK__BUSY,
                               .epoch = w->sent_epoch,
                               .server_us = v[3].number,
                               .token = v[1].number,
                               .arrival = v[1].number,
                               .left_ms = v[2].number,
                               .place = v[4].number };
    if (good)
        w->answered_epoch = w->sent_epoch;
    w->step = lk__acquirefsm_answered(&w->machine, w->now_us, w->sent_us, good ? &asked : NULL);
}

static void leave(struct world *w, const struct lk__reply *reply)
{
    struct lk__answer left = { .verdict = LK__DONE, .server_us = reply->values[1].number };
    w->step = lk__acquirefsm_left(&w->machine, w->now_us, w->sent_epoch, is_whole(reply, 2) ? &left : NULL);
}

static void answer(struct world *w)
{
    struct lk__value values[8] = { 0 };
    struct lk__reply reply = { .most = 8, .values = values };
    w->flying = false;
    any_reply(w, &reply);
    if (w->leaving)
        learn_from_release(w, &reply);
    else
        learn_from_ask(w, &reply);
    static struct lk__node alone;
    static struct lk__conn conn = { .server = &alone.server };
    struct lk__request request = { .state = LK__ANSWERED, .conn = &conn, .manner = w->manner };
    if (reply.type == LK__ERROR)
        lk__request_take(&request, &reply);
    w->manner = reply.type == LK__ERROR ? request.manner : LK__BY_SHA1;
    if (reply.type == LK__ERROR)
        w->step = lk__acquirefsm_refused(&w->machine, w->now_us, &request.judged);
    else if (w->leaving)
        leave(w, &reply);
    else
        answer_ask(w, &reply);
}

static void cut(struct world *w)
{
    static const enum lk__request_state ways[] = { LK__CUT, LK__GARBLED, LK__UNSENT, LK__CUT };
    enum lk__request_state how = ways[take_byte(&w->input) % 4];
    if (how != LK__UNSENT && !w->leaving)
        keep_copy(w);
    w->flying = false;
    w->step = lk__acquirefsm_cut(&w->machine, w->now_us, how);
}

static void send_it(struct world *w, bool leaving)
{
    uint8_t how = take_byte(&w->input);
    if (!leaving)
        w->deadline_us = w->now_us + w->set.command_us + (int64_t)take_byte(&w->input) * 1000;
    if (how >= 0xf0 || (leaving && how >= 0xe0)) {
        w->step = lk__acquirefsm_unsent(&w->machine, w->now_us);
        return;
    }
    if (how >= 0xe0) {
        w->cancel_code = ENOMEM;
        w->step = lk__acquirefsm_cancel(&w->machine, w->now_us, ENOMEM);
        return;
    }
    w->leaving = leaving;
    w->sent_us = w->now_us;
    w->sent_epoch = w->epoch;
    w->flying = true;
    require(++w->sends <= SENDS_IN_A_ROW);
    struct lk__date there = { w->deadline_us + w->clock_us[w->epoch], w->epoch };
    w->step = lk__acquirefsm_sent(&w->machine, w->now_us, &(struct lk__until){ there, w->deadline_us });
}

static void come_up(struct world *w)
{
    static const int codes[] = { 0, ENOTCONN, ETIMEDOUT, EACCES, EPROTO, ENOMEM };
    w->step = lk__acquirefsm_connected(&w->machine, w->now_us, codes[take_byte(&w->input) % 6]);
}

/* Another server takes over, with a clock of its own. */
static void change_server(struct world *w)
{
    if (w->epoch + 1 < EPOCHS)
        w->clock_us[++w->epoch] = (any_number(&w->input) % 1000) * 1000000;
}

/* As the room reads it from a message: within these bounds, whatever the message says. One of the server before may be late. */
static void announce(struct world *w)
{
    unsigned epoch = w->epoch > 0 && w->now_us % 3 == 0 ? w->epoch - 1 : w->epoch;
    struct lk__grant grant = { .server_us = server_time(w, epoch), .epoch = epoch };
    grant.lease_ms = between(&w->input, 1, LEASE_END_MAX);
    if (take_byte(&w->input) > 0xf0)
        grant.server_us = between(&w->input, 1, 1000);
    grant.token = 1 + take_number(&w->input, 2);
    grant.owner_died = take_byte(&w->input) % 8 == 1;
    if (!w->set.recorded && !w->set.confirmed) /* then a message is a reason to ask, never a grant */
        keep_grant(w, grant.token, LK__NEVER, grant.owner_died);
    w->step = lk__acquirefsm_granted(&w->machine, w->now_us, &grant);
}

static void cancel(struct world *w)
{
    int64_t hard_us = w->now_us + w->set.command_us;
    w->cancel_code = ECANCELED;
    if (w->hard_us > hard_us)
        w->hard_us = hard_us;
    w->step = lk__acquirefsm_cancel(&w->machine, w->now_us, ECANCELED);
}

/* News may come at any moment. */
static bool news(struct world *w, uint8_t what)
{
    if (what < 0xf0)
        return false;
    w->sends = 0;
    if (what < 0xf6)
        announce(w);
    else if (what < 0xfc)
        w->step = lk__acquirefsm_hinted(&w->machine, w->now_us);
    else if (what < 0xfe)
        change_server(w);
    else
        cancel(w);
    return true;
}

/* Sleep until then, or less if somebody wakes us, or longer if we stand still. */
static void sleep_until(struct world *w, int64_t until_us, enum waking waking)
{
    int64_t us = any_time_us(&w->input), most = until_us > w->now_us ? until_us - w->now_us : 0;
    if (until_us != LK__NEVER && waking == LATE)
        us += most;
    else if (until_us != LK__NEVER && (waking == IN_TIME || us > most))
        us = most;
    advance(w, us);
    w->step = lk__acquirefsm_tick(&w->machine, w->now_us);
}

static void go_on(struct world *w)
{
    uint8_t what = take_byte(&w->input);
    if (news(w, what))
        return;
    switch (w->step.act) {
    case LK__ASK:
    case LK__LEAVE:
        send_it(w, w->step.act == LK__LEAVE);
        return;
    case LK__AWAIT:
        if (what % 4 != 0)
            advance(w, any_time_us(&w->input) % (w->set.command_us + 1));
        if (what < 0xa0)
            answer(w);
        else if (what < 0xd0)
            cut(w);
        else
            sleep_until(w, w->step.until_us, what < 0xe0 ? EARLY : what < 0xe8 ? IN_TIME : LATE);
        return;
    case LK__CONNECT:
        advance(w, any_time_us(&w->input));
        come_up(w);
        return;
    default:
        sleep_until(w, w->step.until_us, what < 0xc0 ? IN_TIME : what < 0xe0 ? EARLY : LATE);
    }
}

/* --- what has to hold --------------------------------------------------------------------------------------------- */

static bool was(const struct world *w, int verdict)
{
    return (w->verdicts >> (verdict - LK__OVERTAKEN) & 1) != 0;
}

static void check_held(const struct world *w)
{
    const struct lk__acquirefsm_result *end = &w->machine.result;
    bool known = false;
    for (int i = 0; i < w->grant_count && i < GRANTS; i++)
        known |= w->grants[i].token == end->token && w->grants[i].owner_died == (end->code == EOWNERDEAD) &&
                 w->grants[i].until_us >= end->valid_until_us;
    require(known);
    require(end->valid_until_us > w->now_us);
    require(!end->claimed || end->granted.epoch == w->answered_epoch); /* others' dates say nothing of our clock */
    require(end->claimed || end->first_us <= end->valid_until_us);
    require(!end->unknown);
    require(w->cancel_code == 0);
}

static void check_not_held(const struct world *w)
{
    const struct lk__acquirefsm_result *end = &w->machine.result;
    require(end->unknown || (!w->may_have_us && !has_copies(w)));
    switch (end->code) {
    case EBUSY:
        require(was(w, LK__BUSY));
        break;
    case ENOTRECOVERABLE:
        require(was(w, LK__UNRECOVERABLE));
        break;
    case EINVAL:
        require(was(w, LK__IMPOSSIBLE));
        break;
    case EAGAIN:
        require(was(w, LK__FULL));
        break;
    case ECANCELED:
        require(w->cancel_code == ECANCELED);
        break;
    case ETIMEDOUT:
        require(w->now_us >= w->set.limit_us);
        break;
    case EIO:
        require(end->unknown);
        break;
    case ESTALE:
        require(was(w, LK__OVERTAKEN)); /* to be asked anew under another number */
        break;
    default:
        require(end->code == EPROTO || end->code == ENOTCONN || end->code == EACCES || end->code == ENOSPC ||
                end->code == ENOTSUP || end->code == ENOMEM);
    }
}

static void check_end(const struct world *w)
{
    int code = w->machine.result.code;
    if (code == 0 || code == EOWNERDEAD)
        check_held(w);
    else
        check_not_held(w);
}

/* A way out takes a command timeout at most, and no longer than the call may. */
static void note_phase(struct world *w)
{
    int64_t hard_us = w->now_us + w->set.command_us;
    bool begins = !w->on_way_out && w->machine.phase == LK__LEAVING;
    w->on_way_out |= begins;
    if (begins && w->hard_us > hard_us)
        w->hard_us = hard_us;
}

static void check_step(struct world *w)
{
    note_phase(w);
    require(w->step.act == LK__FINISHED || w->now_us < w->hard_us);
    bool waits = w->step.act == LK__AWAIT || w->step.act == LK__PARK || w->step.act == LK__CONNECT;
    require(!waits || w->step.until_us > w->now_us);
    require(!waits || w->step.until_us <= w->hard_us);
}

static void begin(struct world *w)
{
    struct lk__acquirefsm_settings *set = &w->set;
    uint8_t flags = take_byte(&w->input);
    w->now_us = BEGAN_US;
    set->lease_ms = between(&w->input, 100, 60000);
    set->poll_ms = between(&w->input, 1, 2000);
    set->liveness_ms = 3 * set->poll_ms > 5000 ? 3 * set->poll_ms : 5000;
    set->command_us = between(&w->input, 1, 2000) * 1000;
    set->retry_min_ms = between(&w->input, 1, 100);
    set->retry_max_ms = set->retry_min_ms + between(&w->input, 0, 1000);
    set->try_only = (flags & 1) != 0;
    set->recorded = (flags & 2) != 0;
    set->confirmed = (flags & 32) != 0;
    set->limit_us = (flags & 8) != 0 ? LK__NEVER : w->now_us + any_time_us(&w->input) - (flags & 16);
    w->hard_us = lk__later(set->limit_us > w->now_us ? set->limit_us : w->now_us, set->command_us);
    lk__acquirefsm_init(&w->machine, set);
    w->machine.heard = (flags & 4) == 0;
    w->step = lk__acquirefsm_start(&w->machine, w->now_us);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct world world;
    struct world *w = &world;
    *w = (struct world){ .input = { bytes, size } };
    begin(w);
    check_step(w);
    while (w->step.act != LK__FINISHED && w->input.left > 0) {
        go_on(w);
        check_step(w);
    }
    if (w->step.act != LK__FINISHED) { /* from here on nobody answers, and the client is closed */
        cancel(w);
        for (int steps = 0; w->step.act != LK__FINISHED; steps++) {
            require(steps < STEPS_AFTER);
            check_step(w);
            if (w->step.act == LK__ASK || w->step.act == LK__LEAVE)
                send_it(w, w->step.act == LK__LEAVE);
            else
                sleep_until(w, w->step.until_us, IN_TIME);
        }
    }
    if (w->flying && !w->leaving && w->machine.result.code != 0) /* an ask that nobody answered */
        keep_copy(w);
    check_end(w);
    return 0;
}
