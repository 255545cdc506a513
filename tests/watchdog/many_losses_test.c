/* SPDX-License-Identifier: MIT */
/*
 * many_losses_test.c - what is lost at one moment, however much, costs nobody else anything
 *
 * labels: threads memory
 * simulated: yes
 */
#include "client/client.h"
#include "lock/scripts.h"
#include "log.h"
#include "news.h"

#include <stdlib.h>
#include <string.h>

enum { MANY = SANITIZED || NOISY ? 2000 : 20000, LINES = 40 };

static lk_client_t *client;
static lk_mutex_t *orders;
static struct news orders_news;
static struct lk__lease *leases[MANY];

/* What its renewal points into. */
struct block {
    struct lk__block block;
    struct lk__lock_keys keys;
    struct lk__lock_renew_args args;
};

static void renew_by(struct lk__lease *lease)
{
    struct block *block = calloc(1, sizeof *block);
    block->block.refs = 1;
    block->keys.mutex = lease->name;
    block->args.channel = "none";
    strcpy(lease->id, "nobody");
    lease->release.block = &block->block;
    lease->release.command.keys = &block->keys;
    lease->renewal = &lk__lua_lock_renew;
    lease->renewal_args = &block->args;
}

/* A lease that nobody is told of, or that of a hold, good for `ms`. */
static struct lk__lease *take(const char *name, bool held, bool fixed, int64_t ms, int64_t first_us)
{
    struct lk__lease *lease = lk__lease_new(&client->dog, held ? offsetof(struct lk__hold, lease) : 0, LK__OWNER_ID);
    assert_non_null(lease);
    lease->name = name;
    lease->fixed = fixed;
    lease->reason = fixed ? LK_REASON_FIXED : LK_REASON_NONE;
    lease->lease_ms = ms;
    if (!fixed)
        renew_by(lease);
    if (held) {
        struct lk__hold *hold = LK__CONTAINER(lease, struct lk__hold, lease);
        hold->refs = 1;
        hold->kind = LK_KIND_MUTEX;
        lease->holder = hold;
    }
    lk__lease_take(lease, lk__now_us() + ms * 1000, first_us);
    return lease;
}

static void end(struct lk__lease *lease)
{
    lk__lease_end(lease, NULL);
    lk__lease_unref(lease);
}

static void open_orders(struct world *w, const char *options)
{
    client = world_client(w, options);
    news_listen(&orders_news, client, "orders");
    orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
}

static int lines, losses; /* atomic builtins */

/* Each line is of one loss, or sums up. */
static void count_losses(void *arg, int level, const char *line)
{
    (void)level;
    (void)arg;
    if (strstr(line, " lost") == NULL)
        return;
    __atomic_add_fetch(&lines, 1, __ATOMIC_SEQ_CST);
    const char *more = strstr(line, " more leases were lost");
    while (more != NULL && more > line && more[-1] >= '0' && more[-1] <= '9')
        more--;
    __atomic_add_fetch(&losses, more != NULL ? atoi(more) : 1, __ATOMIC_SEQ_CST);
}

/* Thousands of fixed leases run out; one that is renewed stays. The log tells of some and how many there were. */
static void renewals_go_on(struct world *w)
{
    int64_t left_ms;
    lines = losses = 0;
    log_to(count_losses, LK_LOG_WARNING, NULL);
    open_orders(w, "lease=3s");
    for (int i = 0; i < MANY; i++)
        leases[i] = take("batch", false, true, 60000, LK__NEVER);
    int64_t end_us = lk__now_us() + 300000;
    lk__mu_lock(&client->dog.mu);
    for (int i = 0; i < MANY; i++) {
        atomic_store(&leases[i]->valid_until_us, end_us);
        lk__heap_set(&client->dog.heap, &leases[i]->release.timer, end_us);
    }
    client->dog.asleep_us = 0;
    lk__eventfd_set(client->dog.wake_fd);
    lk__mu_unlock(&client->dog.mu);
    sleep_ms(4000);
    assert_lk(0, lk_mutex_remaining(orders, &left_ms));
    assert_int_equal(0, news(&orders_news, LK_EVENT_LOST));
    eventually(__atomic_load_n(&losses, __ATOMIC_SEQ_CST) == MANY, 10000);
    assert_between(__atomic_load_n(&lines, __ATOMIC_SEQ_CST), 1, LINES);
    for (int i = 0; i < MANY; i++)
        end(leases[i]);
    assert_lk(0, lk_mutex_unlock(orders));
    log_to(NULL, LK_LOG_WARNING, NULL);
}

/* More renewals are due than may be under way, and the server stands still: others are lost on time all the same. */
static void a_loss_does_not_wait_for_renewals(struct world *w)
{
    enum { DUE = 200 };
    struct news short_news;
    client = world_client(w, "lease=20s&command_timeout=4s");
    news_listen(&short_news, client, "short");
    struct lk__lease *first = take("batch", false, true, 20000, LK__NEVER);
    eventually(lk__conn_isup(&client->node.lanes[LK__LANE_RENEWALS]), 4000);
    world_stop_server(w);
    for (int i = 0; i < DUE; i++)
        leases[i] = take("batch", false, false, 20000, lk__now_us());
    struct lk__lease *short_one = take("short", true, true, 300, LK__NEVER);
    int64_t began_ms = now_ms();
    eventually(news(&short_news, LK_EVENT_LOST) == 1, 10000);
    assert_between(now_ms() - began_ms, 0, 300 + 5 * SLACK_MS);
    world_cont_server(w);
    for (int i = 0; i < DUE; i++)
        end(leases[i]);
    end(short_one);
    end(first);
}

int main(void)
{
    return world_run(renewals_go_on, a_loss_does_not_wait_for_renewals);
}
