/* SPDX-License-Identifier: MIT */
/*
 * look.c - one look at the server for all threads of a client that wait for one latch
 *
 * Guards: broadcast->mu the looks. It is not held while one is under way.
 *
 * Looks are numbered as they begin. A thread says from which number on a look tells it what it has to know: later than
 * its call, than its subscription, than the last message, than the last look it knows of. If such a look is over, the
 * thread takes what that saw; if one is under way, it waits for that; else it looks, for all. So a message, or a poll that
 * is due, costs one look however many threads wait. A look that takes longer than any may, as its thread is in a signal
 * handler, say, is not waited for.
 */
#include "latch/latch.h"

enum {
    HINT_PAUSE_US = 5000, /* messages are cheap to forge: look at most this often because of them */
    SLACK_US = 100000     /* between an answer and the thread that waits for it */
};

uint64_t lk__looks_after(struct lk__broadcast *broadcast, int64_t since_us)
{
    const struct lk__looks *looks = &broadcast->looks;
    lk__mu_lock(&broadcast->mu);
    uint64_t number = looks->began_us > since_us ? looks->begun : looks->begun + 1;
    lk__mu_unlock(&broadcast->mu);
    return number;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

bool lk__looks_news(struct lk__broadcast *broadcast, uint64_t number)
{
    lk__mu_lock(&broadcast->mu);
    bool news = broadcast->looks.wanted > number;
    lk__mu_unlock(&broadcast->mu);
    return news;
}

int64_t lk__looks_next(struct lk__broadcast *broadcast, uint64_t number)
{
    const struct lk__looks *looks = &broadcast->looks;
    lk__mu_lock(&broadcast->mu);
    bool sent = looks->begun >= later(number + 1, looks->wanted);
    int64_t next_us = sent ? 0 : looks->began_us + HINT_PAUSE_US;
    lk__mu_unlock(&broadcast->mu);
    return next_us;
}

/* --- looking for all ---------------------------------------------------------------------------------------------- */

/* Has the count ended, or begun, between two looks? */
static bool differs(const struct lk__latchstate *one, const struct lk__latchstate *other)
{
    return (one->count > 0) != (other->count > 0) || one->serial != other->serial || one->deleted != other->deleted;
}

/* Let the others know what was seen. What changed wakes all: their messages may have been lost, too. */
static void tell(struct lk__broadcast *broadcast, const struct lk__sight *sight)
{
    struct lk__looks *looks = &broadcast->looks;
    lk__mu_lock(&broadcast->mu);
    if (sight->number > looks->last.number) {
        bool changed = sight->rc == 0 && differs(&sight->state, &looks->last.state);
        const struct lk__latchstate known = looks->last.state;
        looks->last = *sight;
        if (sight->rc != 0)
            looks->last.state = known;
        lk__broadcast_wakefollowers(broadcast);
        if (changed) {
            looks->wanted = later(looks->wanted, sight->number);
            lk__broadcast_wakeall(broadcast);
        }
    }
    lk__mu_unlock(&broadcast->mu);
}

/* Look; `sight` has the number of the look, which has begun. */
static void lead(const struct lk__op *op, struct lk__sight *sight)
{
    struct lk__latch *latch = lk__latch_of(op);
    sight->rc = lk__latch_use(op);
    if (sight->rc == 0)
        sight->rc = lk__latch_look(latch, &sight->state);
    sight->came_us = lk__now_us();
    tell(&latch->broadcast, sight);
}

static uint64_t begin(struct lk__looks *looks)
{
    looks->began_us = lk__now_us();
    return ++looks->begun;
}

/* --- looking with others ------------------------------------------------------------------------------------------ */

/* Until there is a look from that number on, or none under way that is still to be waited for. */
static void follow(struct lk__broadcast *broadcast, struct lk__subscriber *subscriber, uint64_t from)
{
    const struct lk__looks *looks = &broadcast->looks;
    lk_client_t *client = broadcast->client;
    int64_t longest_us = client->options->command_timeout_ms * 1000 + SLACK_US;
    assert(lk__mu_held(&broadcast->mu));
    lk__list_append(&broadcast->looks.followers, &subscriber->following);
    while (looks->last.number < from && looks->begun >= from && lk__now_us() < looks->began_us + longest_us &&
           !lk__client_isclosed(client)) {
        int64_t until_us = looks->began_us + longest_us;
        lk__mu_unlock(&broadcast->mu);
        lk__parker_park(subscriber->parker, until_us);
        lk__mu_lock(&broadcast->mu);
    }
    lk__list_remove(&subscriber->following);
}

/* What another thread saw, if that is enough; or the number of the look that is to be made. */
static bool see_with_others(struct lk__broadcast *broadcast, struct lk__subscriber *subscriber, uint64_t from,
                            struct lk__sight *sight)
{
    struct lk__looks *looks = &broadcast->looks;
    lk__mu_lock(&broadcast->mu);
    from = later(from, looks->wanted);
    follow(broadcast, subscriber, from);
    *sight = looks->last;
    bool enough = sight->number >= from && (sight->rc == 0 || sight->rc == ENOTCONN || sight->rc == EIO);
    if (!enough)
        sight->number = begin(looks);
    lk__mu_unlock(&broadcast->mu);
    return enough;
}

int lk__looks_see(const struct lk__op *op, struct lk__subscriber *subscriber, uint64_t from, struct lk__sight *sight)
{
    if (!see_with_others(&lk__latch_of(op)->broadcast, subscriber, from, sight))
        lead(op, sight);
    else if (sight->rc != 0)
        lk__fail(sight->rc, "%s: %s", op->object->what, lk_strerror(sight->rc));
    return sight->rc;
}
