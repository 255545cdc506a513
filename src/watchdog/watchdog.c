/* SPDX-License-Identifier: MIT */
/*
 * watchdog.c - one thread that renews leases, ends those that ran out, and sends the outbox
 *
 * Guards: dog->mu the leases and the outbox, and what the header marks so. Order: after an object's mu, before the
 * connection's. The thread waits and reads without it. Renewals go first; requests without a slot in the window wait.
 *
 * The hard case: thousands of renewals at one time. They are served piece by piece, and between two pieces callers that
 * want the lock have it: a mutex that is let go and taken again at once would not come to those who sleep for it.
 */
#include "watchdog/watchdog.h"

#include <sys/timerfd.h>
#include <unistd.h>

enum {
    LOOK_US = 5000,        /* how often to look for answers on the lane of the callers ... */
    LOOK_AGAIN_US = 100000 /* ... and whether that lane is up before the watchdog's own */
};

/* --- the thread ------------------------------------------------------------------------------------------------- */

/* A request is over that is no renewal. */
static void other_over(struct lk__watchdog *dog, const struct lk__inflight *inflight, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    if (inflight->sheet != NULL)
        lk__notice_over(dog, inflight, now_us);
    else
        lk__outbox_over(dog, inflight, now_us);
}

/* Serve requests that are over. */
static void serve_over(struct lk__watchdog *dog, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__inflight *inflight;
    while ((inflight = lk__window_next_over(dog)) != NULL) {
        struct lk__lease *lease = inflight->lease;
        if (lease == NULL) {
            other_over(dog, inflight, now_us);
            continue;
        }
        lk__renewal_over(dog, inflight, now_us);
        lk__mu_unlock(&dog->mu);
        lk__renewal_drop(lease);
        lk__watchdog_locklast(dog);
    }
}

/*
 * Did a lane come up since the last look? What is sent from now on goes by the lane for renewals, or while that is not up
 * by the one of the callers, on which replicas acknowledge it likewise. A server at its limit of clients would otherwise
 * grant leases that cannot be renewed.
 */
static bool came_up(const struct lk__watchdog *dog, struct lk__node *at)
{
    struct lk__underway *underway = &at->underway;
    enum lk__lane beside = dog->options->wait_replicas > 0 ? LK__LANE_GRANTS : LK__LANE_COMMANDS;
    unsigned long long connects = lk__node_connects(at, LK__LANE_RENEWALS);
    bool own_up = lk__conn_isup(&at->lanes[LK__LANE_RENEWALS]);
    bool beside_up = (underway->unsent || !own_up) && lk__conn_isup(&at->lanes[beside]);
    bool up = connects != underway->connects_seen || (underway->unsent && beside_up);
    underway->lane = beside_up && !own_up ? beside : LK__LANE_RENEWALS;
    if (connects != underway->connects_seen) {
        struct lk__peerinfo peer;
        lk__conn_peer(&at->lanes[LK__LANE_RENEWALS], &peer);
        underway->epoch = peer.epoch;
    }
    underway->connects_seen = connects;
    underway->unsent &= !up;
    return up;
}

/* Has a cluster another map? Then what could not be sent may go elsewhere. */
static bool has_moved(struct lk__watchdog *dog)
{
    unsigned version = dog->node->cluster != NULL ? lk__cluster_version(dog->node->cluster) : 0;
    bool moved = version != dog->version_seen;
    dog->version_seen = version;
    return moved;
}

/* Serve what happened to the connections since the last look. */
static void serve_connections(struct lk__watchdog *dog, int64_t now_us)
{
    bool any = has_moved(dog);
    struct lk__node *at;
    for (unsigned n = 0; (at = lk__node_nth(dog->node, n)) != NULL; n++)
        any |= came_up(dog, at);
    if (any)
        lk__renewal_servemoved(dog, now_us);
}

/* Is there a request on a lane of the callers? */
static bool is_beside(struct lk__watchdog *dog)
{
    bool any = false;
    struct lk__node *at;
    for (unsigned n = 0; !any && (at = lk__node_nth(dog->node, n)) != NULL; n++)
        any = lk__window_beside(dog, at) != NULL;
    return any;
}

/* Look there for answers, without dog->mu. */
static void look_beside(struct lk__watchdog *dog)
{
    struct lk__node *at;
    for (unsigned n = 0; (at = lk__node_nth(dog->node, n)) != NULL; n++) {
        lk__watchdog_locklast(dog);
        struct lk__request *awaited = lk__window_beside(dog, at);
        lk__mu_unlock(&dog->mu);
        if (awaited != NULL)
            lk__request_look(awaited);
    }
}

/* Sleep until the earliest timer; the timerfd makes that moment count suspended time too. */
static void sleep_until_due(struct lk__watchdog *dog, int timer_fd, int64_t due_us)
{
    struct itimerspec when = { { 0, 0 }, { 0, 0 } };
    if (due_us != LK__NEVER)
        when.it_value = (struct timespec){ (time_t)(due_us / 1000000), (long)(due_us % 1000000) * 1000 + 1 };
    if (timer_fd >= 0)
        timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
    struct pollfd extra[2] = { { dog->wake_fd, POLLIN, 0 }, { timer_fd, POLLIN, 0 } };
    lk__node_serve(dog->node, LK__LANE_RENEWALS, extra, 2, due_us);
    if (extra[0].revents != 0)
        lk__eventfd_clear(dog->wake_fd);
}

/* The earlier one of that moment and of the first timer in one of the watchdog's heaps. */
static int64_t sooner(const struct lk__watchdog *dog, int64_t due_us, const struct lk__heap *heap)
{
    assert(lk__mu_held(&dog->mu));
    const struct lk__timer *first = lk__heap_first(heap);
    return first != NULL && first->due_us < due_us ? first->due_us : due_us;
}

/* When something is to be done, if nothing happens before. */
static int64_t next_look(struct lk__watchdog *dog, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    int64_t due_us = sooner(dog, dog->losses.more > 0 ? dog->losses.second_us : LK__NEVER, &dog->heap);
    if (!lk__outbox_isheldup(dog)) /* otherwise an answer comes first */
        due_us = sooner(dog, due_us, &dog->outbox.heap);
    int64_t notice_us = lk__notice_dueat(dog);
    if (notice_us < due_us)
        due_us = notice_us;
    if (is_beside(dog) && now_us + LOOK_US < due_us)
        due_us = now_us + LOOK_US;
    if (dog->unsent && now_us + LOOK_AGAIN_US < due_us)
        due_us = now_us + LOOK_AGAIN_US;
    return due_us;
}

static void *run(void *arg)
{
    struct lk__watchdog *dog = arg;
    /* Without one the poll's own limit serves. */
    int timer_fd = lk__fd_ours(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
    lk__mu_lock(&dog->mu);
    while (!dog->stopping) {
        int64_t now_us = lk__now_us();
        serve_over(dog, now_us);
        serve_connections(dog, now_us);
        bool more = lk__renewal_serve(dog, now_us);
        lk__outbox_serve(dog, now_us);
        lk__notice_serve(dog, now_us);
        lk__losses_log(dog, now_us, false);
        while (lk__lease_forgetreleased(dog, now_us))
            ;
        bool beside = is_beside(dog);
        int64_t due_us = dog->asleep_us = more ? now_us : next_look(dog, now_us);
        lk__mu_unlock(&dog->mu);
        sleep_until_due(dog, timer_fd, due_us);
        if (beside)
            look_beside(dog);
        lk__watchdog_locklast(dog);
    }
    lk__mu_unlock(&dog->mu);
    if (timer_fd >= 0)
        lk__fd_close(timer_fd);
    return NULL;
}

/* --- life --------------------------------------------------------------------------------------------------------- */

int lk__watchdog_init(struct lk__watchdog *dog, struct lk__node *node, lk__notify_t notify, void *arg)
{
    *dog = (struct lk__watchdog){
        .run = run, .node = node, .options = &node->server.options, .notify = notify, .arg = arg
    };
    dog->wake_fd = lk__eventfd_open();
    if (dog->wake_fd < 0)
        return lk__fail(ENOMEM, "no descriptor left for a client");
    lk__node_own(node, LK__LANE_RENEWALS, dog->wake_fd, NULL, NULL);
    lk__mu_init(&dog->mu, LK__MU_WATCHDOG);
    lk__cond_init(&dog->renewed);
    lk__list_init(&dog->leases);
    lk__list_init(&dog->lost);
    lk__list_init(&dog->released);
    lk__list_init(&dog->ready);
    lk__list_init(&dog->losses.unlogged);
    lk__outbox_init(&dog->outbox);
    lk__window_init(&dog->window);
    return 0;
}

/* Leases that are still held end with their time, and nobody looks. */
static void forget_leases(struct lk__watchdog *dog)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__link *link;
    struct lk__timer *timer;
    while ((link = lk__list_first(&dog->ready)) != NULL)
        lk__lease_unready(dog, LK__CONTAINER(link, struct lk__lease, queue));
    while ((timer = lk__heap_first(&dog->heap)) != NULL)
        lk__heap_remove(&dog->heap, timer);
}

bool lk__watchdog_stop(struct lk__watchdog *dog)
{
    lk__mu_lock(&dog->mu);
    lk__watchdog_wake(dog);
    bool started = atomic_exchange(&dog->running, false);
    dog->stopping = true;
    lk__mu_unlock(&dog->mu);
    if (started)
        pthread_join(dog->thread, NULL);
    lk__mu_lock(&dog->mu);
    lk__notice_takedown(dog);
    lk__mu_unlock(&dog->mu);
    lk__node_close(dog->node, LK__LANE_RENEWALS);

    lk__mu_lock(&dog->mu);
    lk__window_abandon(dog);
    serve_over(dog, lk__now_us());
    forget_leases(dog);
    while (lk__lease_forgetreleased(dog, LK__NEVER))
        ;
    bool clean = lk__outbox_stop(dog);
    lk__losses_log(dog, lk__now_us(), true);
    pthread_cond_broadcast(&dog->renewed);
    lk__mu_unlock(&dog->mu);
    return clean;
}

void lk__watchdog_destroy(struct lk__watchdog *dog)
{
    assert(lk__list_empty(&dog->leases) && lk__list_empty(&dog->lost) && lk__heap_first(&dog->heap) == NULL);
    lk__outbox_destroy(&dog->outbox);
    lk__free(dog->window.slots);
    lk__free(dog->kept);
    lk__free(dog->notice);
    pthread_cond_destroy(&dog->renewed);
    lk__mu_destroy(&dog->mu);
    lk__fd_close(dog->wake_fd);
}

/* --- what callers ask of all leases ------------------------------------------------------------------------------- */

/* Leases of that owner in one of the lists. */
static void orphan(struct lk__watchdog *dog, struct lk__link *list, uint64_t owner)
{
    assert(lk__mu_held(&dog->mu));
    for (struct lk__link *l = lk__list_first(list); l != NULL; l = lk__list_next(list, l)) {
        struct lk__lease *lease = LK__CONTAINER(l, struct lk__lease, all);
        if (lease->owner == owner)
            lk__lease_orphan(dog, lease);
    }
}

void lk__watchdog_ownergone(struct lk__watchdog *dog, uint64_t owner)
{
    lk__mu_lock(&dog->mu);
    orphan(dog, &dog->leases, owner);
    orphan(dog, &dog->lost, owner);
    lk__mu_unlock(&dog->mu);
}

bool lk__watchdog_endowner(struct lk__watchdog *dog, uint64_t owner)
{
    bool holds = false;
    lk__mu_lock(&dog->mu);
    int64_t now_us = lk__now_us();
    struct lk__link *next;
    for (struct lk__link *l = lk__list_first(&dog->leases); l != NULL && !holds; l = next) {
        struct lk__lease *lease = LK__CONTAINER(l, struct lk__lease, all);
        next = lk__list_next(&dog->leases, l); /* a lease that is found lost leaves the list */
        holds = lease->owner == owner && lk__lease_goodat(dog, lease, now_us);
    }
    if (!holds)
        orphan(dog, &dog->lost, owner);
    lk__mu_unlock(&dog->mu);
    return !holds;
}

struct lk__lease *lk__watchdog_anylease(struct lk__watchdog *dog)
{
    lk__mu_lock(&dog->mu);
    struct lk__link *link = lk__list_first(lk__list_empty(&dog->leases) ? &dog->lost : &dog->leases);
    struct lk__lease *lease = link != NULL ? LK__CONTAINER(link, struct lk__lease, all) : NULL;
    if (lease != NULL)
        lk__lease_ref(lease);
    lk__mu_unlock(&dog->mu);
    return lease;
}

struct lk__lease *lk__watchdog_nextorphan(struct lk__watchdog *dog, struct lk__link *orphans)
{
    lk__mu_lock(&dog->mu);
    struct lk__link *link = lk__list_first(orphans);
    struct lk__lease *lease = link != NULL ? LK__CONTAINER(link, struct lk__lease, orphan) : NULL;
    if (lease != NULL)
        lk__lease_ref(lease);
    if (link != NULL)
        lk__list_remove(link);
    lk__mu_unlock(&dog->mu);
    return lease;
}
