/* SPDX-License-Identifier: MIT */
/*
 * given_back_elsewhere_test.c - permits with ids that another client gives back: who took them is done with them
 *
 * labels: threads memory
 * simulated: yes
 */
#include "client/client.h"
#include "log.h"
#include "news.h"

#include <string.h>

enum { BATCH = 50, ROUNDS = 4, LEASE_MS = 3000 };

static int warnings; /* atomic builtins */

static void count_warnings(void *arg, int level, const char *line)
{
    (void)arg;
    (void)level;
    if (strstr(line, " lost") != NULL)
        __atomic_add_fetch(&warnings, 1, __ATOMIC_SEQ_CST);
}

static size_t holds_of(lk_client_t *client)
{
    struct lk__link *lists[] = { &client->dog.leases, &client->dog.lost };
    size_t holds = 0;
    lk__mu_lock(&client->dog.mu);
    for (int i = 0; i < 2; i++)
        for (struct lk__link *l = lk__list_first(lists[i]); l != NULL; l = lk__list_next(lists[i], l))
            holds++;
    lk__mu_unlock(&client->dog.mu);
    return holds;
}

static void nothing_of_them_stays(struct world *w)
{
    const lk_semattr_t leased = { .size = sizeof leased, .leased = 1 };
    lk_client_t *taker = world_client(w, "lease=3s"), *giver = world_client(w, "");
    static char ids[BATCH][LK_PERMIT_ID];
    struct news permit_news;
    warnings = 0;
    log_to(count_warnings, LK_LOG_WARNING, NULL);
    news_listen(&permit_news, taker, "permits");
    lk_sem_t *taken = world_sem(w, taker, "permits", BATCH, &leased);
    lk_sem_t *given = world_sem(w, giver, "permits", BATCH, &leased);
    world_allow(w, "latchkey:total:*");
    for (int round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < BATCH; i++)
            assert_lk(0, lk_sem_acquireid(taken, 5000, ids[i]));
        assert_in_range(holds_of(taker), 1, 2 * BATCH);
        for (int i = 0; i < BATCH; i++)
            assert_lk(0, lk_sem_releaseid(given, ids[i]));
        eventually(news(&permit_news, LK_EVENT_LOST) == round * BATCH, 8 * LEASE_MS);
        assert_int_equal(LK_REASON_RELEASED, news_reason(&permit_news));
    }
    assert_lk(0, lk_sem_acquireid(taken, 5000, ids[0]));
    assert_in_range(holds_of(taker), 1, 2);
    assert_lk(0, lk_sem_releaseid(taken, ids[0]));
    assert_lk(EPERM, lk_sem_releaseid(taken, ids[1]));
    assert_int_equal(0, holds_of(taker));
    assert_int_equal(0, __atomic_load_n(&warnings, __ATOMIC_SEQ_CST));
    world_close(w, taker);
    world_close(w, giver);
    log_to(NULL, LK_LOG_WARNING, NULL);
}

int main(void)
{
    return world_run(nothing_of_them_stays);
}
