/* SPDX-License-Identifier: MIT */
/*
 * judge.c - what a server's answer means for the request that it answers
 */
#include "redis/judge.h"
#include "config/name.h"

#include <stdio.h>
#include <string.h>

/* Access rules refused the script as a whole, for a key. By its text; in doubt the script began. */
static bool is_unbegun(const struct lk__reply *error)
{
    const char *says = lk__reply_text(error, 0);
    return lk__reply_is(error, "NOPERM") && strstr(says, " key") != NULL && strstr(says, "script") == NULL;
}

/* MOVED and ASK of a cluster: it goes again to where that says, or a little later. */
static struct lk__judged send_elsewhere(struct lk__node *at, const struct lk__reply *error)
{
    bool ask = lk__reply_is(error, "ASK"), met = lk__cluster_redirect(at->cluster, at, lk__reply_text(error, 0), !ask);
    return (struct lk__judged){
        .ruling = met ? LK__AGAIN : LK__PASSES, .code = ENOTCONN, .elsewhere = true, .ask = ask && met
    };
}

/* Where there is one server alone, MASTERDOWN may pass before another master is found. */
static bool is_no_master(const struct lk__node *at, const struct lk__reply *error)
{
    return lk__reply_is(error, "READONLY") ||
           (lk__reply_is(error, "MASTERDOWN") && lk__options_failover(&at->server.options));
}

struct lk__judged lk__judge_error(struct lk__node *at, const struct lk__reply *error)
{
    struct lk__judged judged = { .scattered = lk__reply_is(error, "TRYAGAIN"),
                                 .wrong_type = lk__reply_is(error, "WRONGTYPE"),
                                 .no_master = is_no_master(at, error),
                                 .uncovered = is_unbegun(error) };
    bool clustered = at->cluster != NULL && !at->server.options.quorum;
    if (clustered && (lk__reply_is(error, "MOVED") || lk__reply_is(error, "ASK")))
        return send_elsewhere(at, error);
    if (clustered && lk__reply_is(error, "CLUSTERDOWN"))
        lk__cluster_doubt(at->cluster, true);
    judged.code = lk__reply_error(error);
    judged.ruling = lk__error_passes(judged.code) ? LK__PASSES : LK__REFUSED;
    judged.half = lk__reply_ishalf(error) || ((judged.code == EACCES || judged.code == EPROTO) &&
                                              !lk__reply_is(error, "NOSCRIPT") && !judged.uncovered);
    return judged;
}

/* Likewise of a request, which keeps how it goes next. `as_text`: it went with the text of its script. */
static struct lk__judged judge_error(struct lk__request *request, const struct lk__reply *error, bool as_text)
{
    if (lk__reply_is(error, "NOSCRIPT") && !as_text) {
        request->manner = LK__BY_TEXT;
        return (struct lk__judged){ .ruling = LK__AGAIN };
    }
    struct lk__judged judged = lk__judge_error(lk__request_node(request), error);
    if (judged.ruling == LK__AGAIN && ++request->hops > LK__HOPS_MAX)
        judged.ruling = LK__PASSES;
    if (judged.ruling == LK__AGAIN && judged.ask)
        request->manner = LK__BY_ASKING;
    if (judged.ruling != LK__AGAIN && judged.elsewhere)
        request->hops = 0;
    return judged;
}

static const char *first_text(const struct lk__reply *reply)
{
    unsigned i = 0;
    while (i < reply->count && !lk__value_istext(&reply->values[i]))
        i++;
    return lk__reply_text(reply, i);
}

void lk__request_take(struct lk__request *request, const struct lk__reply *reply)
{
    bool as_text = request->manner != LK__BY_SHA1;
    request->manner = LK__BY_SHA1; /* another one is good for one request */
    if (reply->type == LK__ERROR) {
        request->judged = judge_error(request, reply, as_text);
    } else {
        request->hops = 0;
        request->judged = lk__answer_read(request->script, reply, &request->answer)
                              ? (struct lk__judged){ .ruling = LK__ANSWER }
                              : (struct lk__judged){ .ruling = LK__SENSELESS, .code = EPROTO, .half = true };
    }
    if (request->says != NULL)
        snprintf(request->says, request->says_size, "%s", first_text(reply));
}

void lk__request_init(struct lk__request *request, struct lk__parker *parker, struct lk__reply *reply)
{
    *request = (struct lk__request){ .waiting.parker = parker, .reply = reply, .take = lk__request_take };
}

const struct lk__judged *lk__request_over(struct lk__request *request)
{
    struct lk__judged *judged = &request->judged;
    int state = atomic_load(&request->state);
    request->garbled = state == LK__GARBLED ? request->garbled + 1 : 0;
    if (state != LK__ANSWERED) { /* an answer may have come that is not believed */
        *judged = (struct lk__judged){ .ruling = LK__UNANSWERED, .code = EIO, .half = state != LK__UNSENT };
        if (request->manner == LK__BY_ASKING) /* the node that an ASK named may be gone */
            request->manner = LK__BY_SHA1;
    }
    if (judged->no_master)
        lk__conn_reset(request->conn, request->connects, "the server became a replica");
    return judged;
}

int lk__judged_fail(const struct lk__judged *judged, const char *what, const struct lk__command *command,
                    const char *says)
{
    char key[128];
    if (judged->elsewhere)
        says = "TRYAGAIN the node of the slot is not known yet";
    if (!judged->uncovered || command->script->keys == 0)
        return lk__fail(judged->code, "%s: the server says: %s", what, says);
    size_t length;
    const char *first = lk__command_key(command, &length);
    lk__name_print(key, sizeof key, first, length);
    return lk__fail(judged->code, "%s: the user's access rules (ACL) do not cover a key of it (~%s): the server says: %s",
                    what, key, says);
}
