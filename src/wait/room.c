/* SPDX-License-Identifier: MIT */
/*
 * room.c - where the acquires of a client wait
 *
 * Guards: room->mu who waits, and what came in for them. Order: after hub->mu, before a parker's.
 *
 * Every waiter is in the room before its first ask is sent, as a grant may overtake the answer. A message
 * for somebody who is not there needs nothing: whoever leaves sends a release, now or in the background.
 */
#include "wait/wait.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATIENCE_US = 3000000 }; /* a wait longer than this is worth a line in the log */

/* --- what comes in ------------------------------------------------------------------------------------------ */

/* Under room->mu. */
static void poke(struct lk__waiter *waiter)
{
    lk__parker_signal(&waiter->parker, LK__WOKEN);
}

static void hint_entry(struct lk__entry *entry, void *arg)
{
    struct lk__waiter *waiter = LK__CONTAINER(entry, struct lk__waiter, entry);
    (void)arg;
    waiter->hinted = true;
    poke(waiter);
}

/* The next number of a message, which must be above `least`; false when there is none. */
static bool next_number(const char **at, int64_t least, int64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoll(*at, &end, 10);
    bool good = end != *at && errno == 0 && *number > least;
    *at = end;
    return good;
}

/* "<id> <server us> <lease ms> <token> <owner died>" */
static bool read_grant(const char *at, struct lk__grant *grant)
{
    int64_t token, died;
    bool good = next_number(&at, 0, &grant->server_us) && next_number(&at, 0, &grant->lease_ms) &&
                next_number(&at, 0, &token) && next_number(&at, -1, &died) && *at == '\0' &&
                lk__is_servertime(grant->server_us) && grant->lease_ms <= LK__LEASE_MAX_MS;
    if (good) {
        grant->token = (uint64_t)token;
        grant->owner_died = died != 0;
    }
    return good;
}

/* "G <id> <numbers of a grant>" or "F <id>"; whatever else is no message of ours. */
static void on_words(struct lk__room *room, const char *words)
{
    if ((words[0] != 'G' && words[0] != 'F') || words[1] != ' ')
        return;
    const char *id = words + 2;
    size_t length = strcspn(id, " ");
    struct lk__entry *entry = lk__map_find(&room->waiters, 0, id, length);
    if (entry == NULL)
        return;
    struct lk__waiter *waiter = LK__CONTAINER(entry, struct lk__waiter, entry);
    struct lk__grant grant = { 0 };
    if (words[0] == 'F')
        waiter->hinted = true;
    else if (read_grant(id + length, &grant))
        waiter->granted = grant;
    poke(waiter);
}

/* On the hub's thread, under hub->mu. NULL: something may have been missed. */
static void heard(struct lk__ear *ear, const char *words)
{
    struct lk__room *room = LK__CONTAINER(ear, struct lk__room, ear);
    pthread_mutex_lock(&room->mu);
    if (words == NULL)
        lk__map_each(&room->waiters, hint_entry, NULL);
    else
        on_words(room, words);
    pthread_mutex_unlock(&room->mu);
}

void lk__waiter_hint(struct lk__room *room, struct lk__waiter *waiter)
{
    pthread_mutex_lock(&room->mu);
    hint_entry(&waiter->entry, NULL);
    pthread_mutex_unlock(&room->mu);
}

/* --- life ----------------------------------------------------------------------------------------------------- */

void lk__room_init(struct lk__room *room, const char *client_id, struct lk__conn *conn, struct lk__hub *hub,
                   const struct lk__options *options)
{
    *room = (struct lk__room){ .conn = conn, .hub = hub, .options = options };
    pthread_mutex_init(&room->mu, NULL);
    snprintf(room->channel, sizeof room->channel, "latchkey:client:%s", client_id);
    room->ear.entry.key = room->channel;
    room->ear.entry.length = strlen(room->channel);
    room->ear.heard = heard;
}

static void cancel_entry(struct lk__entry *entry, void *arg)
{
    struct lk__waiter *waiter = LK__CONTAINER(entry, struct lk__waiter, entry);
    (void)arg;
    waiter->cancelled = true;
    poke(waiter);
}

void lk__room_close(struct lk__room *room)
{
    pthread_mutex_lock(&room->mu);
    room->closed = true;
    lk__map_each(&room->waiters, cancel_entry, NULL);
    pthread_mutex_unlock(&room->mu);
}

void lk__room_destroy(struct lk__room *room)
{
    assert(room->waiters.count == 0);
    lk__map_free(&room->waiters);
    pthread_mutex_destroy(&room->mu);
}

void lk__waiter_init(struct lk__waiter *waiter)
{
    *waiter = (struct lk__waiter){ 0 };
    lk__parker_init(&waiter->parker);
    lk__request_init(&waiter->request, &waiter->parker, lk__replybuf_reply(&waiter->answer));
}

void lk__waiter_destroy(struct lk__room *room, struct lk__waiter *waiter)
{
    lk__conn_abandon(room->conn, &waiter->request);
    lk__parker_destroy(&waiter->parker);
}

static void come_in(struct lk__room *room, struct lk__waiter *waiter)
{
    waiter->entry.key = waiter->hold->id;
    waiter->entry.length = strlen(waiter->hold->id);
    pthread_mutex_lock(&room->mu);
    lk__map_insert(&room->waiters, &waiter->entry);
    waiter->cancelled = room->closed;
    pthread_mutex_unlock(&room->mu);
}

static void go_out(struct lk__room *room, struct lk__waiter *waiter)
{
    pthread_mutex_lock(&room->mu);
    lk__map_remove(&room->waiters, &waiter->entry);
    pthread_mutex_unlock(&room->mu);
}

/* Have our channel heard, from the first wait on. False: nobody will wake us. */
static bool listen_here(struct lk__room *room)
{
    if (room->options->no_pubsub)
        return false;
    pthread_mutex_lock(&room->mu);
    bool first = !room->listening;
    room->listening = true;
    pthread_mutex_unlock(&room->mu);
    if (first && lk__hub_listen(room->hub, &room->ear) != 0) {
        pthread_mutex_lock(&room->mu);
        room->listening = false;
        pthread_mutex_unlock(&room->mu);
        return false;
    }
    return !lk__hub_isdeaf(room->hub, &room->ear);
}

/* Do messages to our channel reach us at present? */
static bool is_heard(struct lk__room *room)
{
    pthread_mutex_lock(&room->mu);
    bool listening = room->listening;
    pthread_mutex_unlock(&room->mu);
    return listening && lk__hub_isopen(room->hub, &room->ear);
}

/* --- one acquire, driven by the thread that wants it -------------------------------------------------------------- */

/* What one wait has beyond its machine. */
struct visit {
    struct lk__room *room;
    struct lk__waiter *waiter;
    int64_t began_us;
    bool told;  /* the log who keeps us waiting */
    bool heard; /* the server said what the matter is, and these are the words */
};

static struct lk__step ask(struct visit *visit, bool eval)
{
    struct lk__waiter *waiter = visit->waiter;
    struct lk__acquire *a = &waiter->machine;
    int64_t now_us = lk__now_us();
    a->deadline_us = lk__conn_servertime(visit->room->conn, now_us) + a->command_us;
    unsigned flags = !visit->told && now_us - visit->began_us > PATIENCE_US ? LK__SENT_TELL_HOLDER : 0;
    if (!is_heard(visit->room))
        flags |= LK__SENT_UNHEARD;
    struct lk__sent sent = {
        .id = waiter->hold->id,
        .nth = waiter->hold->nth,
        .deadline_us = a->deadline_us,
        .arrival = a->arrival,
        .flags = flags,
    };
    int rc = lk__conn_send(visit->room->conn, &waiter->request, &waiter->ask, &sent, eval);
    if (rc == ENOTCONN)
        return lk__acquire_unsent(a, now_us);
    if (rc != 0)
        return lk__acquire_cancel(a, now_us, rc);
    a->sent = a->asked = true;
    return lk__acquire_tick(a, now_us);
}

static struct lk__step leave(struct visit *visit, bool eval)
{
    struct lk__waiter *waiter = visit->waiter;
    struct lk__acquire *a = &waiter->machine;
    struct lk__sent sent = lk__hold_torelease(waiter->hold);
    int rc = lk__conn_send(visit->room->conn, &waiter->request, &waiter->hold->release, &sent, eval);
    if (rc == 0)
        a->sent = true;
    else
        return lk__acquire_unsent(a, lk__now_us());
    return lk__acquire_tick(a, lk__now_us());
}

/* Say once who keeps us waiting, or what. `asked` is an answer, or NULL: there is no connection. */
static void grumble(struct visit *visit, int64_t now_us, const struct lk__asked *asked)
{
    char words[LK__WORDS_MAX];
    if (visit->told || now_us - visit->began_us <= PATIENCE_US)
        return;
    if (asked != NULL && asked->holder != NULL && asked->holder[0] != '\0') {
        visit->told = true;
        lk__log(LK_LOG_WARNING, "%s: waiting for more than %d s; held by %s", visit->waiter->what,
                PATIENCE_US / 1000000, asked->holder);
    } else if (asked == NULL && lk__conn_trouble(visit->room->conn, words, sizeof words) != 0) {
        visit->told = true;
        lk__log(LK_LOG_WARNING, "%s: waiting for more than %d s; %s", visit->waiter->what, PATIENCE_US / 1000000,
                words);
    }
}

/* The ask has an answer. */
static struct lk__step take_asked(struct visit *visit, int64_t now_us)
{
    struct lk__waiter *waiter = visit->waiter;
    struct lk__acquire *a = &waiter->machine;
    struct lk__asked asked;
    if (!waiter->read(waiter->request.reply, &asked))
        return lk__acquire_answered(a, now_us, waiter->request.sent_us, NULL);
    grumble(visit, now_us, &asked);
    if (!a->try_only && asked.verdict == LK__QUEUED) {
        a->deaf = !listen_here(visit->room);
        a->joining = !a->deaf && !is_heard(visit->room);
    }
    return lk__acquire_answered(a, now_us, waiter->request.sent_us, &asked);
}

/* The release has one. */
static struct lk__step take_left(struct visit *visit)
{
    struct lk__waiter *waiter = visit->waiter;
    struct lk__answer left;
    bool good = lk__answer_read(waiter->hold->release.script, waiter->request.reply, &left);
    return lk__acquire_left(&waiter->machine, good ? &left : NULL);
}

/* The server would not do what was sent. */
static struct lk__step take_refusal(struct visit *visit, int64_t now_us)
{
    struct lk__waiter *waiter = visit->waiter;
    const struct lk__reply *error = waiter->request.reply;
    if (!lk__reply_is(error, "NOSCRIPT")) {
        visit->heard = true;
        lk__rights_refused(EPROTO, waiter->what, &waiter->ask, error);
    }
    if (lk__reply_is(error, "READONLY"))
        lk__conn_reset(visit->room->conn, "the server became a replica");
    return lk__acquire_refused(&waiter->machine, now_us, error);
}

/* The request is through: give the machine its answer. */
static struct lk__step take_answer(struct visit *visit)
{
    struct lk__waiter *waiter = visit->waiter;
    bool leaving = waiter->machine.phase == LK__LEAVING;
    int state = atomic_load(&waiter->request.state);
    int64_t now_us = lk__now_us();
    if (state != LK__ANSWERED)
        return lk__acquire_cut(&waiter->machine, now_us, state);
    visit->heard &= leaving; /* the way out explains nothing */
    if (waiter->request.reply->type == LK__ERROR)
        return take_refusal(visit, now_us);
    return leaving ? take_left(visit) : take_asked(visit, now_us);
}

/* What came in since last time; false: nothing. */
static bool take_mail(struct visit *visit, struct lk__step *step)
{
    struct lk__waiter *waiter = visit->waiter;
    struct lk__acquire *a = &waiter->machine;
    pthread_mutex_lock(&visit->room->mu);
    struct lk__grant granted = waiter->granted;
    bool hinted = waiter->hinted, cancelled = waiter->cancelled;
    waiter->granted.server_us = 0;
    waiter->hinted = waiter->cancelled = false;
    pthread_mutex_unlock(&visit->room->mu);
    if (cancelled)
        *step = lk__acquire_cancel(a, lk__now_us(), ECANCELED);
    else if (granted.server_us != 0)
        *step = lk__acquire_granted(a, lk__now_us(), &granted);
    else if (hinted)
        *step = lk__acquire_hinted(a, lk__now_us());
    return cancelled || hinted || granted.server_us != 0;
}

static void run(struct visit *visit, struct lk__step step);
static void finish(struct visit *visit);

/* The thread is cancelled while it is parked: it gives up as if told to, and never returns. */
static void cancelled(void *arg)
{
    struct visit *visit = arg;
    struct lk__waiter *waiter = visit->waiter;
    void (*unwind)(struct lk__waiter *) = waiter->unwind;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    waiter->unwind = NULL;
    run(visit, lk__acquire_cancel(&waiter->machine, lk__now_us(), ECANCELED));
    finish(visit);
    unwind(waiter);
}

/* Is this wait a cancellation point? Not any more once it is cancelled. */
static int cancel_state(const struct visit *visit)
{
    return visit->waiter->unwind != NULL ? visit->waiter->cancel_state : PTHREAD_CANCEL_DISABLE;
}

static int await_connection(struct visit *visit, int64_t until_us)
{
    struct lk__conn *conn = visit->room->conn;
    int rc;
    pthread_cleanup_push(cancelled, visit);
    /* A wait that began long ago hears of each attempt; nobody is told of failures from before it came. */
    rc = lk__conn_awaitopen(conn, &visit->waiter->parker, lk__conn_failures(conn), until_us, cancel_state(visit));
    pthread_cleanup_pop(0);
    return rc;
}

static struct lk__step connect_first(struct visit *visit, int64_t until_us)
{
    int rc = await_connection(visit, until_us);
    int64_t now_us = lk__now_us();
    grumble(visit, now_us, NULL);
    if (rc == EINTR)
        return lk__acquire_unsent(&visit->waiter->machine, now_us);
    if (rc == ECANCELED)
        return lk__acquire_cancel(&visit->waiter->machine, now_us, ECANCELED);
    return lk__acquire_connected(&visit->waiter->machine, now_us, rc);
}

static void park(struct visit *visit, int64_t until_us)
{
    pthread_cleanup_push(cancelled, visit);
    lk__parker_parkopen(&visit->waiter->parker, until_us, cancel_state(visit));
    pthread_cleanup_pop(0);
}

/* What came in while it slept comes first: it may be a grant, where the time alone would have it leave. */
static struct lk__step drive(struct visit *visit, struct lk__step step)
{
    struct lk__acquire *a = &visit->waiter->machine;
    struct lk__request *request = &visit->waiter->request;
    switch (step.act) {
    case LK__ASK:
        return ask(visit, step.eval);
    case LK__LEAVE:
        return leave(visit, step.eval);
    case LK__AWAIT:
        lk__conn_await(visit->room->conn, request, step.until_us);
        if (take_mail(visit, &step) && step.act == LK__FINISHED)
            return step;
        if (atomic_load(&request->state) != LK__FLYING)
            return take_answer(visit);
        return lk__acquire_tick(a, lk__now_us());
    case LK__CONNECT:
        return connect_first(visit, step.until_us);
    case LK__PARK:
        park(visit, step.until_us);
        return take_mail(visit, &step) ? step : lk__acquire_tick(a, lk__now_us());
    default:
        return step;
    }
}

/* Words for an end that no answer explained. */
static int explain(struct visit *visit)
{
    struct lk__acquire *a = &visit->waiter->machine;
    const char *what = visit->waiter->what;
    char words[LK__WORDS_MAX];
    switch (a->code) {
    case ETIMEDOUT:
        return lk__fail(ETIMEDOUT, "%s: not within the time; held by someone else", what);
    case EBUSY:
        return lk__fail(EBUSY, "%s: held by someone else", what);
    case EIO:
        return lk__fail(EIO, "%s: the answer got lost; what was granted unseen is given back, within %lld ms at most",
                        what, (long long)(2 * a->command_us / 1000 + a->lease_ms));
    case ENOTCONN:
    case EACCES:
        if (visit->heard)
            return a->code;
        lk__conn_trouble(visit->room->conn, words, sizeof words);
        return lk__fail(a->code, "%s: %s", what, words[0] != '\0' ? words : "no connection in time");
    case EPROTO:
        return visit->heard ? EPROTO : lk__fail(EPROTO, "%s: the server's answer could not be read", what);
    case ECANCELED:
        return lk__fail(ECANCELED, "%s: the client was closed", what);
    case ENOTRECOVERABLE:
        return lk__fail(ENOTRECOVERABLE, "%s: its holder died, and the next one gave it back unrepaired", what);
    case EINVAL:
        return lk__fail(EINVAL, "%s: asks for more than there are in total", what);
    case EAGAIN:
        return lk__fail(EAGAIN, "%s: held by as many as it may be", what);
    case EOWNERDEAD:
        return lk__fail(EOWNERDEAD, "%s: held, but its previous holder died holding it", what);
    default:
        return a->code;
    }
}

static void run(struct visit *visit, struct lk__step step)
{
    while (step.act != LK__FINISHED)
        if (!take_mail(visit, &step) || step.act != LK__FINISHED)
            step = drive(visit, step);
}

static void finish(struct visit *visit)
{
    atomic_fetch_sub(&visit->room->hub->waiters, 1);
    go_out(visit->room, visit->waiter);
}

int lk__room_wait(struct lk__room *room, struct lk__waiter *waiter)
{
    struct visit visit = { .room = room, .waiter = waiter, .began_us = lk__now_us() };
    struct lk__acquire *a = &waiter->machine;
    a->poll_ms = room->options->poll_ms;
    a->liveness_ms = 3 * a->poll_ms > 5000 ? 3 * a->poll_ms : 5000;
    a->command_us = room->options->command_timeout_ms * 1000;
    a->retry_min_ms = room->options->retry_min_ms;
    a->retry_max_ms = room->options->retry_max_ms;

    come_in(room, waiter);
    atomic_fetch_add(&room->hub->waiters, 1);
    run(&visit, lk__acquire_start(a, visit.began_us));
    finish(&visit);
    return explain(&visit);
}
