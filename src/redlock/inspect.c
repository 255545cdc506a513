/* SPDX-License-Identifier: MIT */
/* inspect.c - a call that needs no hold: info */
#include "redlock/redlock.h"

#include <stdlib.h>
#include <string.h>

/* Its text is the holder's id. */
static void read_vote(struct lk__vote *vote, const struct lk__reply *reply)
{
    struct lk__lock_info_reply info = { 0 };
    lk__lock_info_read(reply, &info);
    vote->left_ms = info.left_ms;
}

static bool all_answered(const struct lk__ballot *ballot)
{
    return lk__ballot_open(ballot) == 0;
}

static bool has_answered(const struct lk__vote *vote)
{
    return vote->state == LK__VOTE_CAST && vote->code == 0;
}

/* An id without the number of the server, which we give it. */
static size_t common_length(const char *holder)
{
    const char *last = strrchr(holder, ':');
    return last != NULL ? (size_t)(last - holder) : strlen(holder);
}

/* The one who is there at most of the servers. */
static const char *most_common(const struct lk__ballot *ballot)
{
    const char *common = "";
    unsigned most = 0;
    for (unsigned i = 0; i < ballot->count; i++) {
        const char *holder = ballot->votes[i].ongoing.says;
        size_t length = common_length(holder);
        unsigned same = 0;
        for (unsigned j = 0; j < ballot->count; j++)
            same += lk__vote_says(&ballot->votes[j], LK__TAKEN) &&
                    common_length(ballot->votes[j].ongoing.says) == length &&
                    strncmp(ballot->votes[j].ongoing.says, holder, length) == 0;
        if (lk__vote_says(&ballot->votes[i], LK__TAKEN) && same > most) {
            most = same;
            common = holder;
        }
    }
    return common;
}

static int compare(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* Until a majority is free; -1: that is not known. */
static int64_t remaining_of(const struct lk__ballot *ballot)
{
    int64_t left_ms[LK__QUORUM_MAX];
    for (unsigned i = 0; i < ballot->count; i++) {
        const struct lk__vote *vote = &ballot->votes[i];
        left_ms[i] = has_answered(vote) && vote->left_ms >= 0 ? vote->left_ms : INT64_MAX;
    }
    qsort(left_ms, ballot->count, sizeof left_ms[0], compare);
    int64_t free_ms = left_ms[ballot->majority - 1];
    return free_ms != INT64_MAX ? free_ms : -1;
}

static void tell_info(const struct lk__ballot *ballot, lk_redlockinfo_t *info)
{
    lk_redlockinfo_t found = { .nodes = ballot->count,
                               .taken = lk__ballot_count(ballot, LK__TAKEN),
                               .remaining_ms = remaining_of(ballot) };
    for (unsigned i = 0; i < ballot->count; i++)
        found.answered += has_answered(&ballot->votes[i]);
    found.held = found.answered - found.taken < ballot->majority;
    strncpy(found.holder, most_common(ballot), sizeof found.holder - 1);
    lk__sized_write(info, &found, sizeof found);
}

static int none_answers(const struct lk__op *op, const struct lk__ballot *ballot)
{
    char words[LK__REFUSAL_MAX];
    int refused = lk__ballot_refused(ballot, words);
    return lk__fail(refused != 0 ? refused : ENOTCONN, "%s: none of its %u servers answers%s", op->object->what,
                    ballot->count, words);
}

static int read_info(const struct lk__op *op, lk_redlockinfo_t *info)
{
    struct lk__ballot ballot;
    int rc = 0;
    lk__ballot_begin(&ballot, op->object->client, op->object->client->options->command_timeout_ms);
    ballot.read = read_vote;
    for (unsigned i = 0; i < ballot.count; i++)
        ballot.votes[i].command = lk__redlock_command(op->object, &lk__lua_lock_info, NULL);
    lk__ballot_ask(&ballot);
    lk__ballot_await(&ballot, all_answered);
    lk__ballot_end(&ballot);
    if (lk__ballot_count(&ballot, LK__TAKEN) + lk__ballot_count(&ballot, LK__FREE) > 0)
        tell_info(&ballot, info);
    else
        rc = none_answers(op, &ballot);
    return rc;
}

LK__INFO_CALL(redlock, holder)
