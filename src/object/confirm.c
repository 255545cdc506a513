/* SPDX-License-Identifier: MIT */
/*
 * confirm.c - with wait_replicas a grant counts when so many replicas acknowledged it
 *
 * What was granted, by an answer or by a message, is written once more by who it was granted to, on the lane for grants,
 * where a WAIT stands behind it: a hold is renewed, and permits without a lease are asked for again, which finds them in the
 * record. A replica that has this has the grant as well, as it takes what the master wrote in its order.
 *
 * So an ask itself waits for no replica, and who finds something taken is told so at once. What too few acknowledged is
 * given back.
 */
#include "object/acquire.h"

/* --- taking it back ------------------------------------------------------------------------------------------------- */

/* The request that gives it back. */
static struct lk__outboxentry *release_of(const struct lk__acquire *acquire)
{
    return acquire->release != NULL ? acquire->release : &acquire->hold->lease.release;
}

/* For how long something of it may be at the server: an unseen grant, its place if its client is silent, what is handed to that. */
static int64_t lasts_ms(const struct lk__acquire *acquire)
{
    const struct lk__options *options = acquire->op->object->client->options;
    int64_t ms = lk__handover_lasts(options, acquire->release == NULL);
    if (acquire->try_only || ms < acquire->asked_ms)
        ms = acquire->asked_ms;
    return 2 * options->command_timeout_ms + ms;
}

void lk__acquire_takeback(struct lk__acquire *acquire)
{
    const struct lk__acquirefsm_result *result = &acquire->waiter.machine.result;
    struct lk__outboxentry *release = release_of(acquire);
    int64_t end_us = lk__now_us() + 1000 * lasts_ms(acquire);
    release->flags |= LK__SENT_AGAIN;
    release->placed = result->arrival != 0;
    if (acquire->release == NULL) /* else a late copy is known by the record */
        release->past = result->duplicates_until;
    lk__outbox_send(&acquire->op->object->client->dog, release, end_us);
    lk__error_settles(end_us);
}

/* --- replicas acknowledge it ------------------------------------------------------------------------------------------ */

/* One confirmation. */
struct confirm {
    struct lk__acquire *acquire;
    struct lk__object *object;
    int64_t end_us; /* of all its requests; some time before it replicas are waited for no longer */
};

static int too_few(const struct confirm *confirm, int code, const char *then)
{
    return lk__fail(code, "%s: granted, but fewer than %d replicas (wait_replicas) acknowledged it in time; %s",
                    confirm->object->what, confirm->object->client->options->wait_replicas, then);
}

static int64_t timeout_us(const struct lk__acquire *acquire)
{
    return acquire->op->object->client->options->command_timeout_ms * 1000;
}

/* What is sent again of a hold: its renewal. The keys of a wait for a condition are none of a renewal's. */
static struct lk__command renewal_of(const struct lk__acquire *acquire)
{
    const struct lk__command *release =
        acquire->block != NULL ? &acquire->held_back : &acquire->hold->lease.release.command;
    return (struct lk__command){ .script = acquire->renewal, .keys = release->keys, .args = acquire->renewal_args };
}

static struct lk__sent sent_of(const struct lk__acquire *acquire)
{
    const struct lk__outboxentry *release = release_of(acquire);
    if (acquire->hold != NULL)
        return (
            struct lk__sent){ .id = release->id, .lease_ms = acquire->asked_ms, .parts = acquire->hold->lease.parts };
    return (struct lk__sent){ .id = release->id,
                              .nth = release->nth,
                              .terms = acquire->waiter.terms->texts[0],
                              .arrival = acquire->waiter.machine.result.arrival,
                              .flags = LK__SENT_AGAIN };
}

/*
 * By its text the first time on a connection: on the lane for grants the answer that a script is not known would come
 * behind a WAIT, and so would what is sent then.
 */
static enum lk__manner manner_of(const struct confirm *confirm, const struct lk__command *command)
{
    atomic_ullong *known = &confirm->object->client->confirms[confirm->object->kind->number];
    struct lk__node *at = lk__node_for(lk__object_node(confirm->object), command, false);
    unsigned long long number =
        (unsigned long long)lk__node_number(at) << 48 | (lk__node_connects(at, LK__LANE_GRANTS) + 1);
    return confirm->acquire->hold == NULL || atomic_exchange(known, number) == number ? LK__BY_SHA1 : LK__BY_TEXT;
}

/* 0: it counts · ESTALE: it was taken away meanwhile · else too few replicas have it, or that is unknown. */
static int ask_replicas(const struct confirm *confirm)
{
    struct lk__acquire *acquire = confirm->acquire;
    const struct lk__command command = acquire->hold != NULL ? renewal_of(acquire) : acquire->ask;
    struct lk__call call = { .node = lk__object_node(confirm->object),
                             .what = confirm->object->what,
                             .command = &command,
                             .sent = sent_of(acquire),
                             .end_us = confirm->end_us - timeout_us(acquire) / 8,
                             .confirms = true,
                             .manner = manner_of(confirm, &command) };
    int rc = lk__call_run(&call);
    enum lk__verdict verdict =
        acquire->hold == NULL && call.answer.verdict == LK__GRANTED ? LK__DONE : call.answer.verdict;
    int64_t skew_ms = confirm->object->client->options->clock_skew_ms;
    bool late = lk__now_us() >= lk__valid_until(call.sent_us, acquire->asked_ms * 1000, skew_ms);
    if (rc == 0 && (verdict == LK__GONE || (acquire->hold == NULL && verdict != LK__DONE)))
        return ESTALE;
    if (rc == 0 && (verdict != LK__DONE || !call.acknowledged || late))
        return EAGAIN;
    if (rc == 0 && call.repeated && acquire->hold != NULL)
        lk__lease_expectduplicates(&acquire->hold->lease, acquire->asked_ms);
    acquire->confirmed_us = call.sent_us;
    return rc;
}

/* The next master may have the grant and not this. */
static void remember(const struct confirm *confirm, const struct lk__call *call)
{
    const struct lk__acquire *acquire = confirm->acquire;
    if (acquire->hold != NULL && lk__options_failover(confirm->object->client->options))
        lk__lease_remember(&acquire->hold->lease, call->epoch, lk__now_us() + acquire->asked_ms * 1000);
}

/* 0: the server has nothing of it any more. Its words are not on the stack while replicas are asked. */
static int __attribute__((noinline)) give_back(const struct confirm *confirm, bool again)
{
    const struct lk__outboxentry *release = release_of(confirm->acquire);
    struct lk__call call = { .node = lk__object_node(confirm->object),
                             .what = confirm->object->what,
                             .command = &release->command,
                             .sent = lk__outboxentry_sent(release),
                             .end_us = confirm->end_us };
    int rc = lk__call_run(&call);
    if (rc == 0 && !again)
        remember(confirm, &call);
    return rc;
}

/* How long the call may still take: up to its limit and one command timeout, and no longer than that from now on. */
static int64_t ends_by(const struct lk__acquire *acquire)
{
    int64_t now_us = lk__now_us(), limit_us = acquire->how->limit_us;
    int64_t from_us = limit_us > acquire->began_us ? limit_us : acquire->began_us;
    return (from_us < now_us ? from_us : now_us) + timeout_us(acquire);
}

/* Not held: `code` is why. Of what comes before the last call the words are lost, and told here. */
static int undo(const struct confirm *confirm, int code)
{
    struct lk__acquire *acquire = confirm->acquire;
    bool again = acquire->waiter.machine.result.duplicates_until.date.us != 0;
    int rc = code == ESTALE && acquire->hold != NULL ? 0 : give_back(confirm, again);
    if (rc == 0 && !again && code == ESTALE)
        return lk__fail(acquire->queues ? ENOTCONN : ESTALE,
                        "%s: granted, and taken away before replicas acknowledged it", confirm->object->what);
    if (rc == 0 && !again)
        return too_few(confirm, ENOTCONN, "it was given back");
    too_few(confirm, EIO, "it is being given back");
    lk__acquire_takeback(acquire);
    return EIO;
}

int lk__acquire_confirm(struct lk__acquire *acquire, int code)
{
    const struct confirm confirm = { acquire, acquire->op->object, ends_by(acquire) };
    struct lk__waiter *waiter = &acquire->waiter;
    lk__request_abandon(&waiter->request); /* where a message granted; its answer's place serves what follows */
    int rc = ask_replicas(&confirm);
    if (rc == 0)
        return code;
    acquire->confirmed_us = 0;
    acquire->unconfirmed = true;
    return undo(&confirm, rc);
}
