/* SPDX-License-Identifier: MIT */
/*
 * look.c - one look at the server for all threads of a client that wait for one object
 *
 * Guards: broadcast->mu the looks. It is not held while one is under way.
 *
 * Looks are numbered as they begin. A thread says from which number on a look tells it what it has to know: later than
 * its call, than its subscription, than the last message, than the last look it knows of. If such a look is over, the
 * thread takes what that saw; if one is under way, it waits for that; else it looks, for all. So a message, or a poll that
 * is due, costs one look however many threads wait. A look that takes longer than any may, as its thread is in a signal
 * handler, say, is not waited for.
 */
#include "object/broadcast.h"

enum {
    HINT_PAUSE_US =
        5000, /* messages are cheap to forge: look at most this often because of them if that tells nothing new */
    SLACK_US = 100000 /* between an answer and the thread that waits for it */
};

uint64_t lk__looks_after(struct lk__broadcast *broadcast, int64_t since_us)
{
    const struct lk__looks *looks = &broadcast->looks;
    lk__mu_lock(&broadcast->mu);
    uint64_t number = looks->began_us > since_us ? looks->begun : looks->begun + 1;
    lk__mu_unlock(&broadcast->mu);
    return number;
}

uint64_t lk__looks_begun(struct lk__broadcast *broadcast)
{
    lk__mu_lock(&broadcast->mu);
    uint64_t number = broadcast->looks.begun;
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
    bool worth = looks->last.number == looks->begun && looks->changed;
    int64_t next_us = sent || worth ? 0 : looks->began_us + HINT_PAUSE_US;
    lk__mu_unlock(&broadcast->mu);
    return next_us;
}

/* --- looking for all ---------------------------------------------------------------------------------------------- */

/* Let the others know what was seen. What changed wakes all: their messages may have been lost, too. */
static void tell(struct lk__broadcast *broadcast, const struct lk__scene *scene, const struct lk__sight *sight)
{
    struct lk__looks *looks = &broadcast->looks;
    lk__mu_lock(&broadcast->mu);
    if (sight->number > looks->last.number) {
        bool changed = sight->rc == 0 && scene->differs(&sight->seen, &looks->last.seen);
        const union lk__seen known = looks->last.seen;
        looks->last = *sight;
        looks->changed = changed;
        if (sight->rc != 0)
            looks->last.seen = known;
        lk__broadcast_wakefollowers(broadcast);
        if (changed && scene->saw != NULL)
            scene->saw(broadcast, &sight->seen);
        if (changed) {
            looks->wanted = later(looks->wanted, sight->number);
            lk__broadcast_wakeall(broadcast);
        }
    }
    lk__mu_unlock(&broadcast->mu);
}

/* Look; `sight` has the number of the look, which has begun. */
static void lead(const struct lk__op *op, struct lk__broadcast *broadcast, const struct lk__scene *scene,
                 struct lk__sight *sight)
{
    sight->rc = scene->look(op, &sight->seen);
    sight->came_us = lk__now_us();
    tell(broadcast, scene, sight);
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

/* The words of another thread's look are that thread's: of a server that is not reached, the connection knows why. */
static void explain(const struct lk__op *op, int code)
{
    char errmsg[LK__ERRMSG_MAX] = "";
    if (code == ENOTCONN)
        lk__conn_lasterror(&lk__object_node(op->object)->lanes[LK__LANE_COMMANDS], errmsg, sizeof errmsg);
    lk__fail(code, "%s: %s", op->object->what, errmsg[0] != '\0' ? errmsg : lk_strerror(code));
}

int lk__looks_see(const struct lk__op *op, struct lk__broadcast *broadcast, const struct lk__scene *scene,
                  struct lk__subscriber *subscriber, uint64_t from, struct lk__sight *sight)
{
    if (!see_with_others(broadcast, subscriber, from, sight))
        lead(op, broadcast, scene, sight);
    else if (sight->rc != 0)
        explain(op, sight->rc);
    return sight->rc;
}
