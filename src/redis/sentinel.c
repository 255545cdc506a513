/* SPDX-License-Identifier: MIT */
/*
 * sentinel.c - what one Sentinel is asked, and what it answers
 *
 * The question and the subscription go in one write, so the Sentinel takes them in one turn of its loop, and nothing
 * happens between them.
 */
#include "redis/sentinel.h"

#include <stdlib.h>
#include <string.h>

static int say_all(const struct lk__talk *talk)
{
    const struct lk__options *o = talk->options;
    const char *address[3] = { "SENTINEL", "GET-MASTER-ADDR-BY-NAME", o->service };
    const char *epoch[3] = { "SENTINEL", "MASTER", o->service };
    const char *moved[2] = { "SUBSCRIBE", "+switch-master" }, *replaced[2] = { "SUBSCRIBE", "+monitor" };
    int rc = lk__talk_auth(talk);
    if (rc == 0)
        rc = lk__talk_say(talk, 3, address);
    if (rc == 0)
        rc = lk__talk_say(talk, 3, epoch);
    if (rc == 0)
        rc = lk__talk_say(talk, 2, moved);
    return rc == 0 ? lk__talk_say(talk, 2, replaced) : rc;
}

/* The next answer, which is no error. */
static int hear(const struct lk__talk *talk, const char *refused)
{
    int rc = lk__talk_hear(talk);
    if (rc != 0 || talk->stream->filling->type != LK__ERROR)
        return rc;
    rc = lk__talk_refused(talk, refused);
    return rc == EACCES ? rc : ENOTCONN; /* it may be no Sentinel now, or know less than it will */
}

static int hear_address(const struct lk__talk *talk, struct lk__word *says)
{
    int rc = hear(talk, "what is there does not tell where a master is");
    const struct lk__reply *reply = talk->stream->filling;
    if (rc != 0)
        return rc;
    if (reply->type == LK__NIL)
        return lk__talk_fail(talk, ENOTCONN, "the Sentinel knows no such master", talk->options->service);
    const char *host = lk__reply_text(reply, 0), *port = lk__reply_text(reply, 1);
    long number = strtol(port, NULL, 10);
    if (reply->type != LK__ARRAY || host[0] == '\0' || strlen(host) > LK__HOST_MAX || number < 1 || number > UINT16_MAX)
        return lk__talk_fail(talk, EPROTO, "what answers is no Sentinel", "");
    strcpy(says->host, host);
    says->port = (int)number;
    return 0;
}

/* The number of the failover that made it master, a field among others. */
static int hear_epoch(const struct lk__talk *talk, struct lk__word *says)
{
    int rc = hear(talk, "the Sentinel does not tell more of the master");
    const struct lk__reply *reply = talk->stream->filling;
    for (unsigned i = 0; rc == 0 && i + 1 < reply->count; i += 2)
        if (strcmp(lk__reply_text(reply, i), "config-epoch") == 0) {
            says->epoch = strtoll(lk__reply_text(reply, i + 1), NULL, 10);
            return 0;
        }
    return rc != 0 ? rc : lk__talk_fail(talk, EPROTO, "what answers is no Sentinel", "");
}

static int hear_welcome(const struct lk__talk *talk, bool *refused)
{
    int rc = hear(talk, "the Sentinel refuses the user or the password");
    *refused = rc == EACCES;
    return rc;
}

int lk__sentinel_ask(const struct lk__talk *talk, struct lk__word *says, bool *refused)
{
    int rc = say_all(talk);
    *refused = false;
    if (rc == 0 && talk->login.password != NULL)
        rc = hear_welcome(talk, refused);
    if (rc == 0)
        rc = hear_address(talk, says);
    if (rc == 0)
        rc = hear_epoch(talk, says);
    if (rc == 0)
        rc = hear(talk, "the Sentinel refuses the channel +switch-master");
    return rc; /* the answer for +monitor is passed over as a message, as it may be refused */
}
