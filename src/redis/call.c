/* SPDX-License-Identifier: MIT */
/*
 * call.c - a command that waits for no other holder: release, count, check, look
 */
#include "redis/call.h"

#include <string.h>

static int unreachable(const struct lk__ongoing *call, int code)
{
    char errmsg[LK__ERRMSG_MAX];
    if (code == ECANCELED)
        return lk__fail(ECANCELED, "%s: the client was closed", call->told->what);
    if (call->request.garbled == LK__GARBLED_MAX)
        return lk__fail(EPROTO, "%s: the server's answer could not be read, the outcome is unknown", call->told->what);
    if (call->unsure) {
        lk__fail(EIO, "%s: the answer got lost, the outcome is unknown", call->told->what);
        lk__error_settles(call->told->until.here_us);
        return EIO;
    }
    if (lk__conn_lasterror(call->conn, errmsg, sizeof errmsg) == 0 && errmsg[0] == '\0')
        strcpy(errmsg, call->request.manner == LK__BY_TEXT
                           ? "the server did not know the script, and the time was over when that was seen"
                           : "no connection within the command timeout");
    return lk__fail(code == ETIMEDOUT ? ENOTCONN : code, "%s: %s; nothing was done", call->told->what, errmsg);
}

/* Does it take a deadline? */
static bool is_limited(const struct lk__script *script)
{
    for (int i = 0; i < script->shape_count; i++)
        if (script->shapes[i].verdict == LK__LATE)
            return true;
    return false;
}

/* The connection that it goes by; `asking`: as the last ASK said. */
static struct lk__conn *conn_for(const struct lk__ongoing *call, bool asking)
{
    return &lk__node_for(call->told->node, &call->command, asking)->lanes[call->lane];
}

static void set_deadline(struct lk__ongoing *call, int64_t now_us)
{
    struct lk__call *told = call->told;
    int64_t lasts_us = told->lasts_us != 0 ? told->lasts_us : call->hard_us - now_us;
    if (call->step == 1 && told->marked_until_us - now_us < lasts_us)
        lasts_us = told->marked_until_us - now_us;
    struct lk__until until = lk__conn_until(call->conn, now_us, lasts_us);
    told->sent.deadline_us = 0;
    if (told->sent.epoch != until.date.epoch && told->sent.epoch != 0)
        lk__sent_redate(&told->sent, (struct lk__date){ until.date.us - lasts_us, until.date.epoch }, now_us);
    told->sent.deadline_us = until.date.us;
    told->sent.epoch = until.date.epoch;
    told->sent.deadline_here_us = told->lasts_us != 0 ? until.here_us : 0;
    if (is_limited(call->command.script))
        lk__until_extend(&told->until, &until); /* an earlier connection may have known the clock worse */
}

/*
 * After an attempt to connect that failed: a connection that ended a moment ago, under this call or another one, may
 * soon be up again. One that has been down for a command timeout is not waited for, unless another node is due by now.
 */
static bool may_come_back(const struct lk__ongoing *call)
{
    int64_t timeout_us = call->told->node->server.options.command_timeout_ms * 1000;
    return lk__now_us() < lk__conn_ended(call->conn) + timeout_us || call->conn != conn_for(call, false);
}

/* Is its time over? A process that was stopped or suspended for a command timeout past that gets one more. */
static bool is_over(struct lk__ongoing *call)
{
    int64_t now_us = lk__now_us(), timeout_us = call->told->node->server.options.command_timeout_ms * 1000;
    if (now_us >= lk__later(call->hard_us, timeout_us))
        call->hard_us = now_us + timeout_us;
    return now_us >= call->hard_us;
}

static int send_once(struct lk__ongoing *call, int64_t now_us)
{
    call->conn = conn_for(call, call->request.manner == LK__BY_ASKING);
    set_deadline(call, now_us);
    if (call->told->run != 0 && call->told->sent.epoch != call->told->run) {
        lk__conn_want(call->conn);
        return ESTALE;
    }
    return lk__conn_send(call->conn, &call->request, &call->command, &call->told->sent);
}

/* Is less than an eighth of its time, or of a command timeout, left? An answer may take longer. */
static bool is_nearly_over(const struct lk__ongoing *call)
{
    return lk__now_us() + call->spare_us > call->hard_us;
}

/* It is one of several; but what goes by steps is waited for, as nobody else goes by them. */
static bool is_at_once(const struct lk__ongoing *call)
{
    return call->told->at_once && call->step == 0;
}

/* Its server is away, not just being connected to. */
static bool is_given_up(const struct lk__ongoing *call)
{
    return is_at_once(call) && (atomic_load(&call->conn->connects) == 0 || lk__conn_failures(call->conn) > 0);
}

/*
 * 0: sent. Never when the time is over, or nearly over once a connection was waited for: nobody would await the answer, and
 * what is known to be undone would become unknown. EINPROGRESS: not by `until_us`.
 */
static int send_it(struct lk__ongoing *call, int64_t until_us)
{
    for (;; call->waited = true) {
        if (call->resume_us > lk__now_us())
            lk__parker_park(&call->parker, lk__lesser(call->resume_us, until_us));
        if (is_over(call) || (call->waited && !call->unsure && is_nearly_over(call)))
            return unreachable(call, ENOTCONN);
        if (call->resume_us > lk__now_us() && lk__now_us() >= until_us)
            return EINPROGRESS;
        int rc = send_once(call, lk__now_us());
        call->sent = rc == 0;
        if (rc == ENOTCONN && is_given_up(call))
            return unreachable(call, ENOTCONN);
        if (rc == ENOTCONN)
            rc = lk__conn_awaitopen(call->conn, &call->request, lk__conn_failures(call->conn),
                                    lk__lesser(call->hard_us, until_us), PTHREAD_CANCEL_DISABLE);
        else if (rc == 0 || (rc == ENOMEM && !call->unsure))
            return rc;
        if (rc != 0 && rc != EINTR && rc != ETIMEDOUT && !(rc == ENOTCONN && may_come_back(call)))
            return unreachable(call, rc);
        if (rc != 0 && lk__now_us() >= until_us)
            return EINPROGRESS;
    }
}

/* Is there time for one more answer, after `until_us`? A request without one would make unknown what is known now. */
static bool has_time(const struct lk__ongoing *call, int64_t until_us)
{
    int64_t answer_us = 2 * (lk__now_us() - call->request.sent_us);
    return until_us + answer_us < call->hard_us;
}

/* After a refusal that may pass: go on a little later, if there is time. */
static bool pause_a_little(struct lk__ongoing *call)
{
    const struct lk__options *options = &call->told->node->server.options;
    call->pause_ms = call->pause_ms == 0 ? options->retry_min_ms : 2 * call->pause_ms;
    if (call->pause_ms > options->retry_max_ms)
        call->pause_ms = options->retry_max_ms;
    int64_t until_us = lk__now_us() + call->pause_ms * 1000;
    if (!has_time(call, until_us))
        return false;
    call->resume_us = until_us;
    return true;
}

static int begin_step(struct lk__ongoing *call, int step)
{
    call->step = step;
    call->command.script = call->told->command->script->instead[step - 1];
    call->late = false;
    return EAGAIN;
}

/* While a cluster moves a slot it refuses a script some of whose keys are elsewhere, or are not there at all. */
static bool goes_by_steps(struct lk__ongoing *call)
{
    const struct lk__script *const *instead = call->told->command->script->instead;
    if (!call->told->by_steps || call->step != 0 || instead[1] == NULL)
        return false;
    call->told->stepped = true;
    begin_step(call, instead[0] != NULL && call->told->marked_until_us != 0 ? 1 : 2);
    return true;
}

/* The script answered. 0: it is the result, EAGAIN: send once more, else the code to end with. */
static int take_answer(struct lk__ongoing *call)
{
    bool late = call->request.answer.verdict == LK__LATE;
    /* if the process stood still, it says nothing of how long the next answer takes */
    bool again = late && !call->late && !is_over(call) && !is_nearly_over(call);
    call->late |= again;
    if (again || call->step != 1)
        return again ? EAGAIN : 0;
    return late ? unreachable(call, ENOTCONN) /* the mark stays as it is, and so does all else */ : begin_step(call, 2);
}

/* Likewise: no answer came. */
static int take_loss(struct lk__ongoing *call, const struct lk__judged *judged)
{
    call->unsure |= judged->half;
    if (call->request.garbled == LK__GARBLED_MAX || (call->unsure && call->told->only_once) || is_over(call))
        return unreachable(call, ENOTCONN);
    return EAGAIN;
}

/* Likewise of an error. */
static int take_error(struct lk__ongoing *call, const struct lk__judged *judged)
{
    if (judged->scattered && goes_by_steps(call))
        return EAGAIN;
    if (judged->ruling == LK__PASSES) {
        call->unsure |= judged->half;
        if (!(call->unsure && call->told->only_once) && !is_at_once(call) && pause_a_little(call))
            return EAGAIN;
    }
    if (call->unsure) /* this copy was refused; another one may have been carried out */
        return unreachable(call, judged->code);
    return lk__judged_fail(judged, call->told->what, &call->command, call->says);
}

static int judge(struct lk__ongoing *call)
{
    const struct lk__judged *judged = lk__request_over(&call->request);
    switch (judged->ruling) {
    case LK__ANSWER:
        return take_answer(call);
    case LK__AGAIN:
        return !judged->elsewhere || has_time(call, lk__now_us()) ? EAGAIN : unreachable(call, ENOTCONN);
    case LK__UNANSWERED:
        return take_loss(call, judged);
    case LK__SENSELESS:
        if (call->step == 1)
            return unreachable(call, ENOTCONN);
        call->unsure = true;
        return lk__call_garbled(call->told->what);
    default:
        return take_error(call, judged);
    }
}

/* Likewise of what became of it; EINPROGRESS: it is under way yet. */
static int await_it(struct lk__ongoing *call, int64_t until_us)
{
    struct lk__request *request = &call->request;
    bool over = false;
    while (atomic_load(&request->state) == LK__INFLIGHT && !over) {
        if (until_us < call->hard_us)
            lk__request_awaitbriefly(request, until_us);
        else
            lk__request_await(request, call->hard_us);
        over = is_over(call);
        if (atomic_load(&request->state) == LK__INFLIGHT && !over && lk__now_us() >= until_us)
            return EINPROGRESS;
    }
    if (atomic_load(&request->state) != LK__INFLIGHT)
        return judge(call);
    call->unsure = true;
    return unreachable(call, ENOTCONN);
}

void lk__call_begin(struct lk__ongoing *call, struct lk__call *told)
{
    int64_t now_us = lk__now_us(), timeout_us = told->node->server.options.command_timeout_ms * 1000;
    *call = (struct lk__ongoing){ .told = told,
                                  .command = *told->command,
                                  .lane = told->confirms ? LK__LANE_GRANTS : LK__LANE_COMMANDS,
                                  .hard_us = told->end_us != 0 ? told->end_us : now_us + timeout_us,
                                  .code = EINPROGRESS };
    call->spare_us = lk__lesser(call->hard_us - now_us, timeout_us) / 8;
    lk__parker_init(&call->parker);
    lk__request_init(&call->request, &call->parker, told->reply);
    if (told->take != NULL)
        call->request.take = told->take;
    call->request.manner = told->manner;
    call->request.says = call->says;
    call->request.says_size = sizeof call->says;
    call->conn = conn_for(call, false);
    if (told->only_once)
        lk__conn_endifclosed(call->conn);
    call->sent = now_us < call->hard_us && send_once(call, now_us) == 0;
}

bool lk__call_await(struct lk__ongoing *call, int64_t until_us)
{
    while (call->code == EINPROGRESS) {
        int rc = call->sent ? 0 : send_it(call, until_us);
        if (rc == 0)
            rc = await_it(call, until_us);
        if (rc == EINPROGRESS)
            return false;
        call->sent = call->waited = false;
        if (rc != EAGAIN)
            call->code = rc;
    }
    return true;
}

void lk__call_abandon(struct lk__ongoing *call)
{
    struct lk__call *told = call->told;
    int state = atomic_load(&call->request.state);
    call->unsure |= call->sent && state != LK__ANSWERED && state != LK__UNSENT;
    lk__request_abandon(&call->request);
    lk__parker_destroy(&call->parker);
    told->answer = call->request.answer;
    told->repeated = call->unsure;
    told->acknowledged = call->request.acknowledged;
    told->sent_us = call->request.sent_us;
    told->epoch = call->request.epoch;
}

int lk__call_end(struct lk__ongoing *call)
{
    lk__call_await(call, LK__NEVER);
    lk__call_abandon(call);
    return call->code;
}

int lk__call_run(struct lk__call *told)
{
    struct lk__ongoing call;
    lk__call_begin(&call, told);
    return lk__call_end(&call);
}

int lk__call_garbled(const char *what)
{
    return lk__fail(EPROTO, "%s: the server's answer has the wrong shape", what);
}
