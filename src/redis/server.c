/* SPDX-License-Identifier: MIT */
/*
 * server.c - is this the server that was met before, and in which words do messages go there?
 *
 * The run id is in what the server says of itself when a connection comes up; access rules may keep it back. A restart
 * at the same address is then not noticed, and its clock taken for the same one: on one machine it usually is.
 */
#include "redis/server.h"
#include "redis/server_clock.h"

#include <string.h>

const struct lk__pubsub lk__pubsub[LK__PUBSUB_KINDS] = {
    [LK__PUBSUB_PLAIN] = { "PUBLISH", "SUBSCRIBE", "UNSUBSCRIBE", "subscribe", "message" },
    [LK__PUBSUB_SHARDED] = { "SPUBLISH", "SSUBSCRIBE", "SUNSUBSCRIBE", "ssubscribe", "smessage" },
};

static bool is_there(const struct lk__identity *a, const struct lk__identity *b)
{
    return a->address_size == 0 || b->address_size == 0 ||
           (a->address_size == b->address_size && memcmp(&a->address, &b->address, a->address_size) == 0);
}

static bool is_same(const struct lk__identity *a, const struct lk__identity *b)
{
    if (!is_there(a, b))
        return false;
    return a->run_id[0] == '\0' || b->run_id[0] == '\0' || strcmp(a->run_id, b->run_id) == 0;
}

void lk__survey_free(struct lk__survey *survey)
{
    if (survey == NULL)
        return;
    lk__free(survey->info);
    lk__free(survey->config);
    lk__free(survey);
}

unsigned lk__server_meet(struct lk__server *server, const struct lk__identity *found)
{
    bool same = server->epoch != 0 && !server->demoted && is_same(&server->met, found);
    if (!same) {
        server->epoch = server->epoch != 0 ? server->epoch + 1 : server->first_epoch + 1;
        server->met = *found;
    }
    if (found->run_id[0] != '\0')
        memcpy(server->met.run_id, found->run_id, sizeof server->met.run_id);
    server->demoted = false;
    return server->epoch;
}

int64_t lk__server_born(struct lk__server *server, unsigned before, int64_t told_us)
{
    if (told_us == 0 || (before != 0 && before != server->epoch))
        server->born_us = lk__now_us();
    else if (before == 0)
        server->born_us = told_us;
    return server->born_us;
}

void lk__server_leave(struct lk__server *server)
{
    server->pause_us = server->not_before_us = 0;
    server->last_size = 0;
    server->ahead = (struct lk__ahead){ 0 };
    server->demoted = true;
    lk__survey_free(server->told);
    server->told = NULL;
}

void lk__server_demoted(struct lk__server *server, const struct lk__identity *found)
{
    server->demoted |= is_there(&server->met, found);
}

/* --- moments of a server's clock, and of ours --------------------------------------------------------------------- */

int64_t lk__until_left(const struct lk__until *until, struct lk__date date, int64_t now_us)
{
    int64_t left_us = lk__date_comparable(until->date, date) ? until->date.us - date.us : until->here_us - now_us;
    return left_us > 0 ? left_us : 0;
}

/* A moment that is `here_us` on our clock, on a clock that shows `there_us` at `now_us`. */
static int64_t moment_there(int64_t here_us, int64_t there_us, int64_t now_us)
{
    return there_us + (here_us > now_us ? here_us - now_us : 0);
}

bool lk__sent_redate(struct lk__sent *sent, struct lk__date there, int64_t now_us)
{
    if ((sent->deadline_us != 0 && sent->deadline_here_us == 0) ||
        (sent->keep_until_us != 0 && sent->keep_here_us == 0))
        return false;
    if (sent->deadline_us != 0)
        sent->deadline_us = moment_there(sent->deadline_here_us, there.us, now_us);
    if (sent->keep_until_us != 0)
        sent->keep_until_us = moment_there(sent->keep_here_us, there.us, now_us);
    sent->epoch = there.epoch;
    return true;
}

void lk__until_extend(struct lk__until *until, const struct lk__until *more)
{
    struct lk__until both = *more;
    if (until->date.us != 0 && lk__date_comparable(until->date, more->date)) {
        if (until->date.us > more->date.us)
            return;
    } else if (until->date.us != 0 && until->here_us > more->here_us) {
        both.date.us += until->here_us - more->here_us; /* of a clock that is gone: by ours, on the new one */
        both.here_us = until->here_us;
    }
    *until = both;
}
