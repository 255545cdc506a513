/* SPDX-License-Identifier: MIT */
/* check.c - does a hold stand at a majority of the servers? */
#include "redlock/redlock.h"

static bool decided(const struct lk__ballot *ballot)
{
    unsigned taken = lk__ballot_count(ballot, LK__TAKEN), gone = lk__ballot_count(ballot, LK__GONE);
    return taken >= ballot->majority || gone >= ballot->majority;
}

/* A server that has it not is of no use to the hold, whatever the others say; so of many the hold is lost. */
int lk__redlock_askheld(const struct lk__op *op, struct lk__hold *hold)
{
    struct lk__object *object = op->object;
    const struct lk__quorum *quorum = hold->lease.quorum;
    struct lk__ballot ballot;
    char words[LK__REFUSAL_MAX];
    lk__ballot_begin(&ballot, object->client, object->client->options->command_timeout_ms);
    for (unsigned i = 0; i < ballot.count; i++) {
        ballot.votes[i].command = lk__redlock_command(object, &lk__lua_lock_check, NULL);
        ballot.votes[i].call.sent.id = quorum->parts[i]->id;
    }
    lk__ballot_ask(&ballot);
    lk__ballot_await(&ballot, decided);
    unsigned taken = lk__ballot_count(&ballot, LK__TAKEN), gone = lk__ballot_count(&ballot, LK__GONE);
    lk__ballot_end(&ballot);
    if (taken >= ballot.majority)
        return 0;
    int refused = lk__ballot_refused(&ballot, words);
    if (ballot.count - gone >= ballot.majority)
        return lk__fail(refused != 0 ? refused : ENOTCONN,
                        "%s: of %u servers %u have this hold and %u have not; the others do not answer or refuse%s",
                        object->what, ballot.count, taken, gone, words);
    lk__lease_lose(&hold->lease, LK_REASON_GONE);
    return lk__fail(ESTALE, "%s: of %u servers %u no longer know this hold", object->what, ballot.count, gone);
}
