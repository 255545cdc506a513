/* SPDX-License-Identifier: MIT */
/*
 * window.c - requests of the watchdog that are under way: a fixed number of slots, made before the first lease
 *
 * Guards: dog->mu the slots and their lists; the answer in a slot is the connection's until the request is over.
 */
#include "watchdog/watchdog.h"

enum { WINDOW = LK__RENEWALS_MAX - 16 };

_Static_assert(WINDOW *LK__COMMAND_MAX + LK__ECHO_LENGTH <= LK__OUT_BYTES, "as text, too, they fit into the buffer");

void lk__window_init(struct lk__window *window)
{
    lk__list_init(&window->idle);
    lk__list_init(&window->own);
    lk__list_init(&window->beside);
}

int lk__window_reserve(struct lk__watchdog *dog)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__window *window = &dog->window;
    if (window->slots != NULL)
        return 0;
    window->slots = lk__alloc(WINDOW * sizeof *window->slots);
    if (window->slots == NULL)
        return ENOMEM;
    for (int i = 0; i < WINDOW; i++)
        lk__list_append(&window->idle, &window->slots[i].link);
    return 0;
}

void lk__window_destroy(struct lk__window *window)
{
    lk__free(window->slots);
}

bool lk__window_isfull(const struct lk__watchdog *dog)
{
    assert(lk__mu_held(&dog->mu));
    return lk__list_empty(&dog->window.idle);
}

struct lk__inflight *lk__window_slot(struct lk__watchdog *dog)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__inflight *inflight = LK__CONTAINER(lk__list_first(&dog->window.idle), struct lk__inflight, link);
    *inflight = (struct lk__inflight){ .link = inflight->link };
    return inflight;
}

/*
 * The lane for renewals, or while that is not up the one of the callers. A server at its limit of clients would
 * otherwise grant leases that cannot be renewed.
 */
enum lk__lane lk__window_lane(struct lk__watchdog *dog)
{
    assert(lk__mu_held(&dog->mu));
    bool own = lk__node_isup(dog->node, LK__LANE_RENEWALS) || !lk__node_isup(dog->node, LK__LANE_COMMANDS);
    return own ? LK__LANE_RENEWALS : LK__LANE_COMMANDS;
}

int64_t lk__window_retryat(const struct lk__watchdog *dog, int64_t now_us)
{
    int64_t pause_ms = dog->options->command_timeout_ms;
    if (pause_ms > dog->options->retry_max_ms)
        pause_ms = dog->options->retry_max_ms;
    return now_us + pause_ms * 1000;
}

/* Under a connection's mu: keep of the answer what counts. */
static void take_answer(struct lk__request *request, const struct lk__reply *reply)
{
    struct lk__inflight *inflight = LK__CONTAINER(request, struct lk__inflight, request);
    bool retry;
    inflight->error = reply->type == LK__ERROR;
    inflight->good = !inflight->error && lk__answer_read(inflight->script, reply, &inflight->said);
    inflight->unknown = lk__reply_is(reply, "NOSCRIPT");
    inflight->wrong_type = lk__reply_is(reply, "WRONGTYPE");
    inflight->code = inflight->error ? lk__reply_error(reply, &retry) : 0;
}

int lk__window_send(struct lk__watchdog *dog, struct lk__inflight *inflight, const struct lk__command *command,
                    const struct lk__sent *sent)
{
    assert(lk__mu_held(&dog->mu));
    inflight->request = (struct lk__request){ .take = take_answer, .urgent = true };
    inflight->script = command->script;
    inflight->via = lk__window_lane(dog);
    int rc = lk__node_send(dog->node, inflight->via, &inflight->request, command, sent, inflight->as_text);
    if (rc != 0)
        return rc;
    lk__list_remove(&inflight->link);
    lk__list_append(inflight->via == LK__LANE_RENEWALS ? &dog->window.own : &dog->window.beside, &inflight->link);
    return 0;
}

static struct lk__inflight *oldest_of(const struct lk__link *list)
{
    struct lk__link *link = lk__list_first(list);
    return link != NULL ? LK__CONTAINER(link, struct lk__inflight, link) : NULL;
}

static struct lk__inflight *free_slot(struct lk__window *window, struct lk__inflight *inflight)
{
    lk__list_remove(&inflight->link);
    lk__list_append(&window->idle, &inflight->link); /* appended: the last one to be used again */
    return inflight;
}

/* Requests of one lane are over in the order in which they were sent. */
static bool is_over(const struct lk__inflight *oldest)
{
    return oldest != NULL && atomic_load(&oldest->request.state) != LK__INFLIGHT;
}

struct lk__inflight *lk__window_next_over(struct lk__watchdog *dog)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__window *window = &dog->window;
    struct lk__inflight *own = oldest_of(&window->own), *beside = oldest_of(&window->beside);
    if (is_over(own))
        return free_slot(window, own);
    return is_over(beside) ? free_slot(window, beside) : NULL;
}

struct lk__inflight *lk__window_abandon(struct lk__watchdog *dog)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__window *window = &dog->window;
    struct lk__inflight *inflight = oldest_of(lk__list_empty(&window->own) ? &window->beside : &window->own);
    if (inflight == NULL)
        return NULL;
    lk__node_abandon(dog->node, inflight->via, &inflight->request);
    return free_slot(window, inflight);
}

struct lk__request *lk__window_beside(const struct lk__watchdog *dog)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__inflight *inflight = oldest_of(&dog->window.beside);
    return inflight != NULL ? &inflight->request : NULL;
}
