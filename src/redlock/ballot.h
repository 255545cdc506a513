/* SPDX-License-Identifier: MIT */
/*
 * ballot.h - one question to all servers of a quorum at once, and what each of them says
 *
 * The questions are under way together; one thread awaits the answers, and no longer than it takes until enough are there.
 */
#ifndef LK__BALLOT_H
#define LK__BALLOT_H

#include "object/object.h"

enum lk__votestate {
    LK__VOTE_NONE,   /* it was not asked, or the question did not leave */
    LK__VOTE_OPEN,   /* under way */
    LK__VOTE_UNKNOWN /* asked, and there is no answer: it may have done it */,
    LK__VOTE_CAST    /* answered: `code`, and if that is 0 what it says */
};

/* Of one server. */
struct lk__vote {
    enum lk__votestate state;
    struct lk__command command; /* script NULL: it is not asked */
    struct lk__call call;
    bool bound;    /* it is for one run of the server, that of call.run; 0: nobody was met there */
    int code;      /* of no vote: why; of a cast one: of an error */
    bool repeated; /* it was asked before, and may have done it: no answer came */

    /* what it says */
    enum lk__verdict verdict;
    int64_t token, left_ms;

    /* private */
    struct lk__ballot *ballot;
    struct lk__node *node;
    struct lk__ongoing ongoing; /* its words are those of an error, or the id of who has it */
};

struct lk__ballot {
    unsigned count, majority;
    /* NULL, or keeps what an answer says beside its verdict; under a connection's mu */
    void (*read)(struct lk__vote *vote, const struct lk__reply *reply);
    int64_t until_us; /* answers are awaited so long, and past it a server does nothing */
    struct lk__vote votes[LK__QUORUM_MAX];
};

/* Of this client's servers; then the caller fills in the commands, and what is sent with them. To be ended. */
void lk__ballot_begin(struct lk__ballot *ballot, lk_client_t *client, int64_t timeout_ms);
/* One server is not to be asked, for that reason. */
void lk__ballot_leaveout(struct lk__ballot *ballot, unsigned i, int code);
/* It is asked only if it is this very run that is met there, however often; else its code is ESTALE. */
void lk__ballot_bind(struct lk__vote *vote, const struct lk__peerinfo *run);
void lk__ballot_ask(struct lk__ballot *ballot);
/* Until `enough` says so, no vote is open, or the time is over. */
void lk__ballot_await(struct lk__ballot *ballot, bool (*enough)(const struct lk__ballot *ballot));
/* No vote is open any more. */
void lk__ballot_end(struct lk__ballot *ballot);

/* How many said that. */
unsigned lk__ballot_count(const struct lk__ballot *ballot, enum lk__verdict verdict);
/* How many may yet say anything. */
unsigned lk__ballot_open(const struct lk__ballot *ballot);

/*
 * The code that so many servers refuse with that the others are no majority, of the first of them; 0: not so many do.
 * `words`: what that one says, or, of a few, the first; to stand behind a text, and "" where nobody refuses.
 */
enum { LK__REFUSAL_MAX = 192 };
int lk__ballot_refused(const struct lk__ballot *ballot, char words[LK__REFUSAL_MAX]);
/* No open vote can change whether so many refuse. */
bool lk__ballot_knowsrefusal(const struct lk__ballot *ballot);

static inline bool lk__vote_says(const struct lk__vote *vote, enum lk__verdict verdict)
{
    return vote->state == LK__VOTE_CAST && vote->code == 0 && vote->verdict == verdict;
}

#endif
