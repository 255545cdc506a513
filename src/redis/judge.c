/* SPDX-License-Identifier: MIT */
/*
 * judge.c - what a server's answer means for the request that it answers
 */
#include "redis/judge.h"
#include "config/name.h"

#include <string.h>

/* Access rules refused the script as a whole, for a key. By its text; in doubt the script began. */
static bool is_unbegun(const struct lk__reply *error)
{
    const char *says = lk__reply_text(error, 0);
    return lk__reply_is(error, "NOPERM") && strstr(says, " key") != NULL && strstr(says, "script") == NULL;
}

/* MOVED and ASK of a cluster. False: it says no such thing. */
static bool is_sent_elsewhere(struct lk__request *request, const struct lk__reply *error, struct lk__judged *judged)
{
    struct lk__node *at = lk__request_node(request);
    bool asking = false;
    if (at->cluster == NULL || at->server.options.quorum)
        return false;
    bool told = lk__cluster_redirect(at->cluster, at, error, &asking);
    if (!told && !lk__reply_is(error, "MOVED") && !lk__reply_is(error, "ASK"))
        return false;
    if (told && ++request->hops <= LK__HOPS_MAX) {
        *judged = (struct lk__judged){ .ruling = LK__AGAIN, .elsewhere = true };
        request->manner = asking ? LK__BY_ASKING : LK__BY_SHA1;
        return true;
    }
    request->hops = 0;
    *judged = (struct lk__judged){ .ruling = LK__PASSES, .code = ENOTCONN, .elsewhere = true };
    return true;
}

/* Where there is one server alone, MASTERDOWN may pass before another master is found. */
static bool is_no_master(const struct lk__node *at, const struct lk__reply *error)
{
    return lk__reply_is(error, "READONLY") ||
           (lk__reply_is(error, "MASTERDOWN") && lk__options_failover(&at->server.options));
}

struct lk__judged lk__judge(struct lk__request *request, const struct lk__reply *reply)
{
    struct lk__judged judged = { .ruling = LK__ANSWER };
    bool passes, unknown = lk__reply_is(reply, "NOSCRIPT"), as_text = request->manner != LK__BY_SHA1;
    request->manner = LK__BY_SHA1; /* another one is good for one request */
    if (reply->type != LK__ERROR) {
        request->hops = 0;
        return judged;
    }
    if (unknown && !as_text) {
        request->manner = LK__BY_TEXT;
        return (struct lk__judged){ .ruling = LK__AGAIN };
    }
    if (is_sent_elsewhere(request, reply, &judged))
        return judged;
    judged.code = lk__reply_error(reply, &passes);
    judged.ruling = passes ? LK__PASSES : LK__REFUSED;
    judged.scattered = lk__reply_is(reply, "TRYAGAIN");
    judged.wrong_type = lk__reply_is(reply, "WRONGTYPE");
    judged.no_master = is_no_master(lk__request_node(request), reply);
    judged.half = lk__reply_ishalf(reply) ||
                  ((judged.code == EACCES || judged.code == EPROTO) && !unknown && !is_unbegun(reply));
    return judged;
}

void lk__request_leavereplica(const struct lk__request *request, const struct lk__judged *judged)
{
    if (judged->no_master)
        lk__conn_reset(request->conn, request->connects, "the server became a replica");
}

struct lk__judged lk__request_judge(struct lk__request *request)
{
    struct lk__judged judged = lk__judge(request, request->reply);
    lk__request_leavereplica(request, &judged);
    return judged;
}

int lk__judged_fail(const struct lk__judged *judged, const char *what, const struct lk__command *command,
                    const struct lk__reply *reply)
{
    const char *says = judged->elsewhere ? "TRYAGAIN the node of the slot is not known yet" : lk__reply_text(reply, 0);
    char key[128];
    if (!is_unbegun(reply) || command->script->keys == 0)
        return lk__fail(judged->code, "%s: the server says: %s", what, says);
    size_t length;
    const char *first = lk__command_key(command, &length);
    lk__name_print(key, sizeof key, first, length);
    return lk__fail(judged->code, "%s: the user's access rules (ACL) do not cover a key of it (~%s): the server says: %s",
                    what, key, says);
}
