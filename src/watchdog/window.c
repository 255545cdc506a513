/* SPDX-License-Identifier: MIT */
/*
 * window.c - requests of the watchdog that are under way: slots that were made before the leases
 *
 * Guards: dog->mu the slots and their lists; the answer in a slot is the connection's until the request is over.
 *
 * What is under way always fits into the connection's buffer, so that the socket may take none of it for a while: the
 * lane for renewals has no other requests. On the lane of the callers there is less room.
 */
#include "watchdog/watchdog.h"

#include <string.h>

enum {
    BESIDE_MOST = 48,
    HOP_US = 1000, /* servers that send each other a request are not to be asked as fast as they answer */
    BESIDE_BYTES = LK__OUT_BYTES / 4 - LK__COMMAND_MAX - LK__ECHO_LENGTH
};

_Static_assert(LK__RENEWALS_BYTES + LK__COMMAND_MAX + LK__ECHO_LENGTH <= LK__OUT_BYTES, "they fit into the buffer");
_Static_assert(LK__BATCH_MAX <= 64, "a bit for each");
_Static_assert(LK__BATCH_BYTES + 6 * 1024 <= LK__COMMAND_MAX, "a batch with its script's text is a command");

void lk__window_init(struct lk__window *window)
{
    lk__list_init(&window->idle);
}

/* Under dog->mu: make the slots, and have the thread run. */
static int start(struct lk__watchdog *dog)
{
    assert(lk__mu_held(&dog->mu));
    if (dog->stopping)
        return lk__fail(ECANCELED, "the client was closed");
    if (dog->running)
        return 0;
    if (dog->window.slots == NULL)
        dog->window.slots = lk__alloc(LK__WINDOW_SLOTS * sizeof *dog->window.slots);
    if (dog->window.slots == NULL)
        return lk__fail(ENOMEM, "out of memory for a hold");
    int rc = lk__thread_start(&dog->thread, "lk-watchdog", dog->run, dog);
    if (rc != 0)
        return rc;
    dog->running = true;
    lk__node_want(dog->node, LK__LANE_RENEWALS);
    return 0;
}

int lk__watchdog_start(struct lk__watchdog *dog)
{
    if (dog->running)
        return 0;
    lk__watchdog_lock(dog);
    int rc = start(dog);
    lk__mu_unlock(&dog->mu);
    return rc;
}

/* With a sanitizer no block is kept, so that it sees uses of one that was freed. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { KEEPS = 0 };
#else
enum { KEEPS = 1 };
#endif

void *lk__watchdog_alloc(struct lk__watchdog *dog, size_t size)
{
    size_t *kept = atomic_exchange(&dog->kept, NULL); /* it begins with its size */
    if (kept != NULL && *kept == size)
        return memset(kept, 0, size);
    lk__free(kept);
    return lk__alloc(size);
}

void lk__watchdog_free(struct lk__watchdog *dog, void *memory, size_t size)
{
    *(size_t *)memory = size;
    lk__free(KEEPS ? atomic_exchange(&dog->kept, memory) : memory);
}

bool lk__inflight_isalone(const struct lk__watchdog *dog, const struct lk__inflight *inflight)
{
    return dog->options->wait_replicas > 0 && !inflight->request.acknowledged;
}

static struct lk__flight *flight_of(struct lk__node *at)
{
    return at->underway.lane == LK__LANE_RENEWALS ? &at->underway.own : &at->underway.beside;
}

/* One of several nodes has no more than half of the slots, so that others are served while it does not answer. */
bool lk__window_isfull(struct lk__watchdog *dog, struct lk__node *at)
{
    assert(lk__mu_held(&dog->mu));
    const struct lk__underway *underway = &at->underway;
    const struct lk__flight *flight = flight_of(at);
    if (lk__window_isempty(&dog->window))
        return true;
    if (at->cluster != NULL && underway->own.count + underway->beside.count >= LK__WINDOW_SLOTS / 2)
        return true;
    if (underway->lane == LK__LANE_RENEWALS)
        return flight->bytes >= LK__RENEWALS_BYTES;
    return flight->count >= BESIDE_MOST || flight->bytes >= BESIDE_BYTES;
}

int64_t lk__window_fastest(const struct lk__watchdog *dog)
{
    assert(lk__mu_held(&dog->mu));
    const int64_t *took_us = dog->window.took_us;
    int64_t fastest_us = took_us[0];
    for (int i = 1; i < LK__WINDOW_TIMED; i++)
        if (took_us[i] < fastest_us)
            fastest_us = took_us[i];
    return fastest_us;
}

int64_t lk__window_retryat(const struct lk__watchdog *dog, int64_t now_us)
{
    int64_t pause_ms = dog->options->command_timeout_ms;
    if (pause_ms > dog->options->retry_max_ms)
        pause_ms = dog->options->retry_max_ms;
    return now_us + pause_ms * 1000;
}

int64_t lk__inflight_againat(const struct lk__watchdog *dog, const struct lk__inflight *inflight, int64_t now_us)
{
    const struct lk__judged *judged = &inflight->request.judged;
    int state = atomic_load(&inflight->request.state);
    if (state == LK__CUT || state == LK__UNSENT)
        return now_us;
    if (state == LK__ANSWERED && judged->ruling == LK__AGAIN)
        return judged->elsewhere ? now_us + HOP_US : now_us;
    return lk__window_retryat(dog, now_us);
}

/* Of several leases: a digit for each, its verdict. False: these are none of ours. */
static bool has_verdicts(const struct lk__inflight *inflight)
{
    static const char verdicts[] = { '0' + LK__DONE, '0' + LK__GONE, '\0' };
    return inflight->count <= 1 || inflight->request.answer.verdict != LK__DONE ||
           (strspn(inflight->digits, verdicts) == inflight->count && inflight->digits[inflight->count] == '\0');
}

struct lk__inflight *lk__window_slot(struct lk__watchdog *dog, enum lk__manner manner)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__window *window = &dog->window;
    if (lk__list_empty(&window->idle)) /* memory that was never used stays so */
        lk__list_append(&window->idle, &window->slots[window->used++].link);
    struct lk__inflight *inflight = LK__CONTAINER(lk__list_first(&window->idle), struct lk__inflight, link);
    *inflight = (struct lk__inflight){ .link = inflight->link };
    lk__request_init(&inflight->request, NULL, NULL);
    inflight->request.urgent = true;
    inflight->request.manner = manner;
    inflight->request.says = inflight->digits;
    inflight->request.says_size = sizeof inflight->digits;
    return inflight;
}

int lk__window_send(struct lk__watchdog *dog, struct lk__node *at, struct lk__inflight *inflight,
                    const struct lk__command *command, const struct lk__sent *sent)
{
    assert(lk__mu_held(&dog->mu));
    int rc = lk__conn_send(&at->lanes[at->underway.lane], &inflight->request, command, sent);
    if (rc != 0)
        return rc;
    if (at->underway.lane != LK__LANE_RENEWALS)
        lk__node_want(at, LK__LANE_RENEWALS);
    struct lk__flight *flight = inflight->flight = flight_of(at);
    lk__list_remove(&inflight->link);
    lk__list_append(&flight->requests, &inflight->link);
    flight->bytes += inflight->request.size;
    flight->count++;
    dog->window.leases += inflight->count;
    return 0;
}

static struct lk__inflight *oldest_of(const struct lk__flight *flight)
{
    struct lk__link *link = lk__list_first(&flight->requests);
    return link != NULL ? LK__CONTAINER(link, struct lk__inflight, link) : NULL;
}

static struct lk__inflight *free_slot(struct lk__window *window, struct lk__inflight *inflight)
{
    inflight->flight->bytes -= inflight->request.size;
    inflight->flight->count--;
    window->leases -= inflight->count;
    if (atomic_load(&inflight->request.state) == LK__ANSWERED)
        window->took_us[window->timed++ % LK__WINDOW_TIMED] = lk__now_us() - inflight->request.sent_us;
    lk__list_remove(&inflight->link);
    lk__list_append(&window->idle, &inflight->link); /* appended: the last one to be used again */
    return inflight;
}

/* Requests of one lane are over in the order in which they were sent. */
static bool is_over(const struct lk__inflight *oldest)
{
    return oldest != NULL && atomic_load(&oldest->request.state) != LK__INFLIGHT;
}

/* Of one node. */
static struct lk__inflight *next_over(const struct lk__underway *underway)
{
    struct lk__inflight *own = oldest_of(&underway->own), *beside = oldest_of(&underway->beside);
    return is_over(own) ? own : is_over(beside) ? beside : NULL;
}

struct lk__inflight *lk__window_next_over(struct lk__watchdog *dog)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__inflight *over = NULL;
    struct lk__node *at;
    for (unsigned n = 0; over == NULL && (at = lk__node_nth(dog->node, n)) != NULL; n++)
        over = next_over(&at->underway);
    if (over == NULL)
        return NULL;
    lk__request_over(&over->request);
    if (over->request.judged.ruling == LK__ANSWER && !has_verdicts(over))
        over->request.judged.ruling = LK__SENSELESS;
    return free_slot(&dog->window, over);
}

static void abandon_all(const struct lk__flight *flight)
{
    for (struct lk__link *l = lk__list_first(&flight->requests); l != NULL; l = lk__list_next(&flight->requests, l))
        lk__request_abandon(&LK__CONTAINER(l, struct lk__inflight, link)->request);
}

void lk__window_abandon(struct lk__watchdog *dog)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__node *at;
    for (unsigned n = 0; (at = lk__node_nth(dog->node, n)) != NULL; n++) {
        abandon_all(&at->underway.own);
        abandon_all(&at->underway.beside);
    }
}

struct lk__request *lk__window_beside(const struct lk__watchdog *dog, const struct lk__node *at)
{
    assert(lk__mu_held(&dog->mu));
    (void)dog;
    struct lk__inflight *inflight = oldest_of(&at->underway.beside);
    return inflight != NULL ? &inflight->request : NULL;
}
