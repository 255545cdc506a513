/* SPDX-License-Identifier: MIT */
/*
 * static_test.c - semaphores at file scope, names, statistics
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

#include <string.h>

static const lk_semattr_t with_leases = { .size = sizeof with_leases, .leased = 1 };
static lk_sem_t pool = LK_SEM_INITIALIZER("pool", 2);
static lk_sem_t workers = LK_SEM_INITIALIZER_ATTR("workers", 2, &with_leases);

static void begin(struct world *w)
{
    world_allow(w, "*pool*");
    world_allow(w, "latchkey:*:{workers}");
    use_default(world_url(w, ""));
}

static void end(void)
{
    assert_lk(0, lk_sem_destroy(&pool));
    assert_lk(0, lk_sem_destroy(&workers));
    close_default();
}

/* The initialiser is all it takes; after destroy it begins again. */
static void an_initialiser_is_enough(struct world *w)
{
    begin(w);
    for (int i = 0; i < 2; i++) {
        assert_lk(0, lk_sem_wait(&pool));
        assert_lk(0, lk_sem_trywait(&pool));
        assert_lk(EAGAIN, lk_sem_trywait(&pool));
        assert_lk(0, lk_sem_acquire(&workers, 2, 0));
        assert_lk(EAGAIN, lk_sem_trywait(&workers));
        assert_lk(0, lk_sem_release(&workers, 2));
        assert_lk(0, lk_sem_release(&pool, 2));
        assert_lk(0, lk_sem_destroy(&pool));
    }
    end();
}

/* A value or a name against the rules is told at the first use. */
static void a_bad_initialiser_is_told_at_first_use(struct world *w)
{
    lk_sem_t bad = LK_SEM_INITIALIZER("a{b", 2), nameless = LK_SEM_INITIALIZER(NULL, 1);
    lk_sem_t huge = LK_SEM_INITIALIZER("pool", 3000000000U),
             many = LK_SEM_INITIALIZER_ATTR("pool", 2000000, &with_leases);
    begin(w);
    assert_lk(EINVAL, lk_sem_wait(&bad));
    assert_lk(EINVAL, lk_sem_wait(&nameless));
    assert_lk(EINVAL, lk_sem_wait(&huge));
    assert_lk(EINVAL, lk_sem_post(&many));
    assert_lk(0, lk_sem_destroy(&huge));
    assert_lk(0, lk_sem_destroy(&many));
    end();
}

/* Kinds and names do not meet: the leased one of a name is another object, and so is "{a}". */
static void objects_of_one_name_are_apart(struct world *w)
{
    static const char *const names[] = { "pool", "{pool}", "{pool}x", "pool:{x}" };
    lk_sem_t counted[4], leased[4];
    lk_client_t *client = world_open(w, "");
    begin(w);
    for (int i = 0; i < 4; i++) {
        assert_lk(0, lk_sem_init(&counted[i], client, names[i], 1, NULL));
        assert_lk(0, lk_sem_init(&leased[i], client, names[i], 1, &with_leases));
        assert_lk(0, lk_sem_trywait(&counted[i]));
        assert_lk(0, lk_sem_trywait(&leased[i]));
    }
    for (int i = 0; i < 4; i++) {
        assert_lk(EAGAIN, lk_sem_trywait(&counted[i]));
        assert_lk(ETIMEDOUT, lk_sem_waitfor(&leased[i], 2));
        assert_lk(0, lk_sem_post(&counted[i]));
        assert_lk(0, lk_sem_post(&leased[i]));
        assert_lk(0, lk_sem_destroy(&counted[i]));
        assert_lk(0, lk_sem_destroy(&leased[i]));
    }
    assert_lk(0, lk_client_close(client));
}

/* The statistics tell both kinds by name. */
static void statistics_tell_the_kinds(struct world *w)
{
    char *json;
    lk_client_t *client;
    begin(w);
    assert_lk(0, lk_sem_wait(&pool));
    assert_lk(0, lk_sem_post(&pool));
    assert_lk(0, lk_sem_wait(&workers));
    assert_lk(0, lk_sem_post(&workers));
    assert_lk(0, lk_client_default(&client));
    assert_lk(0, lk_client_stats(client, &json));
    assert_non_null(strstr(json, "\"kind\": \"semaphore\""));
    assert_non_null(strstr(json, "\"kind\": \"permits\""));
    assert_non_null(strstr(json, "\"semaphore\": {"));
    assert_non_null(strstr(json, "\"permits\": {"));
    lk_free(json);
    assert_lk(0, lk_client_close(client)); /* it ends, and the next one is closed below */
    end();
}

int main(void)
{
    return world_run(an_initialiser_is_enough, a_bad_initialiser_is_told_at_first_use, objects_of_one_name_are_apart,
                     statistics_tell_the_kinds);
}
