/* SPDX-License-Identifier: MIT */
/*
 * release.c - giving a redlock back: at all servers at once, and in the background where one does not answer
 *
 * The hold ends here before the first release is sent, and its parts are renewed no more.
 */
#include "redlock/redlock.h"

/* Did it do it? A copy of this release may have done so before. */
static unsigned count_done(const struct lk__ballot *ballot)
{
    unsigned done = lk__ballot_count(ballot, LK__DONE);
    for (unsigned i = 0; i < ballot->count; i++)
        done += ballot->votes[i].repeated && lk__vote_says(&ballot->votes[i], LK__GONE);
    return done;
}

static bool decided(const struct lk__ballot *ballot)
{
    unsigned done = count_done(ballot);
    return done >= ballot->majority || done + lk__ballot_open(ballot) < ballot->majority;
}

/* Of a part that is not there any more nothing is left to release, unless it is doubted: see lk__lease_end(). */
static void ask(const struct lk__quorum *quorum, struct lk__ballot *ballot)
{
    for (unsigned i = 0; i < quorum->count; i++) {
        struct lk__lease *part = quorum->parts[i];
        if (!lk__lease_end(part, NULL))
            continue;
        ballot->votes[i].command = part->release.command;
        ballot->votes[i].call.sent = lk__outboxentry_sent(&part->release);
    }
    lk__ballot_ask(ballot);
    lk__ballot_await(ballot, decided);
}

/* Who did not answer is told again. Returns how many of them there are. */
static unsigned tell_again(lk_client_t *client, const struct lk__quorum *quorum, const struct lk__ballot *ballot,
                           int64_t end_us)
{
    unsigned untold = 0;
    for (unsigned i = 0; i < quorum->count; i++) {
        struct lk__lease *part = quorum->parts[i];
        const struct lk__vote *vote = &ballot->votes[i];
        if (vote->command.script == NULL)
            continue;
        bool told = vote->state == LK__VOTE_CAST && vote->code == 0;
        untold += !told;
        if (told)
            lk__lease_released(part, (struct lk__date){ vote->call.answer.server_us, vote->call.epoch });
        else
            lk__outbox_send(&client->dog, &part->release, end_us);
    }
    return untold;
}

int lk__redlock_release(struct lk__object *object, struct lk__hold *hold)
{
    lk_client_t *client = object->client;
    struct lk__lease *whole = &hold->lease;
    struct lk__ballot ballot;
    char words[LK__REFUSAL_MAX];
    int64_t end_us = lk__quorum_endsby(whole);
    if (!lk__lease_end(whole, NULL))
        return lk__gone(object);
    lk__object_gaveback(object, hold);
    lk__ballot_begin(&ballot, client, client->options->command_timeout_ms);
    ask(whole->quorum, &ballot);
    unsigned done = count_done(&ballot);
    lk__ballot_end(&ballot);
    unsigned untold = tell_again(client, whole->quorum, &ballot, end_us);
    if (done >= ballot.majority)
        return 0;
    if (done + untold < ballot.majority) {
        lk__lease_wasgone(whole);
        return lk__gone(object);
    }
    (void)lk__ballot_refused(&ballot, words);
    lk__fail(EIO, "%s: no majority of the servers confirms that it was given back; they are told again%s", object->what,
             words);
    lk__error_settles(end_us);
    return EIO;
}
