/* SPDX-License-Identifier: MIT */
/* count.c - setting, lowering, reading and deleting the count of a latch */
#include "latch/latch.h"
#include "latch/scripts.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

enum { COUNT_MAX = 1000000 };

/* What scripts answer in place of a count. */
enum { NO_LATCH = -2, NO_COUNT = -3 };

static int no_count(const struct lk__object *object)
{
    return lk__fail(EPROTO, "%s: the key holds something that is no count", object->what);
}

/* Run a script that changes the latch; `n` is its last argument but the deadline, if it takes one. */
static int change(lk_latch_t *l, const struct lk__script *script, unsigned n, bool lasting,
                  int (*judge)(const struct lk__object *object, int64_t verdict))
{
    struct lk__frame frame;
    int64_t verdict;
    char count[24];
    int rc = lk__latch_enter(l, &frame);
    if (rc != 0)
        return rc;
    struct lk__latch *latch = lk__latch_of(&frame);
    snprintf(count, sizeof count, "%u", n);
    const char *more[] = { latch->channel, count };
    struct lk__once once = { .script = script, .keys = latch->keys, .more = more, .count = 2, .lasting = lasting };
    rc = lk__once(&frame, &latch->slots, &once, &verdict);
    if (rc == 0)
        rc = verdict == NO_COUNT ? no_count(frame.object) : judge(frame.object, verdict);
    return lk__frame_leave(&frame, rc);
}

static int check_count(const char *function, unsigned n)
{
    if (n == 0 || n > COUNT_MAX)
        return lk__fail(EINVAL, "%s: %u: at least 1, at most %d", function, n, COUNT_MAX);
    return 0;
}

static int judge_set(const struct lk__object *object, int64_t verdict)
{
    return verdict == 1 ? 0 : lk__fail(EEXIST, "%s: has a count already", object->what);
}

int lk_latch_trysetcount(lk_latch_t *l, unsigned n)
{
    int rc = check_count("lk_latch_trysetcount", n);
    return rc != 0 ? rc : change(l, &lk__lua_latch_set, n, false, judge_set);
}

static int judge_there(const struct lk__object *object, int64_t verdict)
{
    return verdict != NO_LATCH ? 0 : lk__fail(ENOENT, "%s: has no count: open already, or never set", object->what);
}

int lk_latch_countdown(lk_latch_t *l)
{
    return lk_latch_countdownby(l, 1);
}

int lk_latch_countdownby(lk_latch_t *l, unsigned n)
{
    int rc = check_count("lk_latch_countdownby", n);
    return rc != 0 ? rc : change(l, &lk__lua_latch_countdown, n, true, judge_there);
}

int lk_latch_delete(lk_latch_t *l)
{
    return change(l, &lk__lua_latch_delete, 0, false, judge_there);
}

/* --- looking --------------------------------------------------------------------------------------------------- */

int lk__latch_question(const struct lk__latch *latch, struct lk__command *command)
{
    return lk__command_seal(command, &lk__lua_latch_look, latch->keys, NULL, 0);
}

int lk__latch_look(const struct lk__latch *latch, struct lk__command *command, struct lk__request **slot,
                   struct lk__latchstate *state)
{
    const struct lk__object *object = &latch->object;
    struct lk__conn *conn = &object->client->conn;
    int rc = lk__call(conn, object->what, command, -1, true, slot, NULL);
    if (rc != 0)
        return rc;
    const struct lk__value *values = (*slot)->reply->values;
    if (!lk__reply_integers((*slot)->reply, 5))
        return lk__fail(EPROTO, "%s: the server's answer has the wrong shape", object->what);
    if (values[0].number < -1 || values[0].number > UINT_MAX)
        return no_count(object);
    lk__conn_clock(conn, (*slot)->sent_us, values[4].number);
    *state = (struct lk__latchstate){ .count = values[0].number,
                                      .opened = values[1].number == 1,
                                      .deleted = values[1].number == 2,
                                      .serial = values[2].number,
                                      .since = values[3].number == 1 };
    return 0;
}

/* One look, for a public function. */
static int look_once(lk_latch_t *l, struct lk__latchstate *state)
{
    struct lk__frame frame;
    struct lk__command command;
    struct lk__request *request = NULL;
    int rc = lk__latch_enter(l, &frame);
    if (rc != 0)
        return rc;
    rc = lk__latch_question(lk__latch_of(&frame), &command);
    if (rc == 0)
        rc = lk__latch_look(lk__latch_of(&frame), &command, &request, state);
    lk__request_free(request);
    lk__command_free(&command);
    return lk__frame_leave(&frame, rc);
}

int lk_latch_getcount(lk_latch_t *l, unsigned *n)
{
    struct lk__latchstate state;
    if (n == NULL)
        return lk__fail(EINVAL, "lk_latch_getcount: nowhere to put the count");
    int rc = look_once(l, &state);
    if (rc == 0)
        *n = state.count > 0 ? (unsigned)state.count : 0;
    return rc;
}

int lk_latch_info(lk_latch_t *l, lk_latchinfo_t *info)
{
    struct lk__latchstate state;
    if (info == NULL || info->size != sizeof *info)
        return lk__fail(EINVAL, "lk_latch_info: begin with LK_LATCHINFO_INIT");
    int rc = look_once(l, &state);
    if (rc != 0)
        return rc;
    bool ended = state.count < 0 && !state.since;
    *info = (lk_latchinfo_t){ .size = sizeof *info,
                              .set = state.count > 0,
                              .opened = state.count == 0 || (ended && state.opened),
                              .deleted = ended && state.deleted,
                              .count = state.count > 0 ? (unsigned)state.count : 0 };
    return 0;
}
