/* SPDX-License-Identifier: MIT */
/*
 * disagreement_test.c - programs that divide one name into different numbers of stripes are told so
 *
 * labels: threads memory
 */
#include "log.h"
#include "world.h"

#include <string.h>

/* Neither keeps the other out of a key: who comes second is told by its first acquire, and goes on. */
static void another_number_of_stripes_is_told(struct world *w)
{
    lk_event_t event = LK_EVENT_INIT;
    lk_client_t *second = world_client(w, "");
    lk_stripes_t *eight = world_stripes(w, world_client(w, ""), "stock", 8, NULL);
    lk_stripes_t *four = world_stripes(w, second, "stock", 4, NULL);
    lk_events_t *queue = world_events(w, second);
    assert_lk(0, log_keep(LK_LOG_WARNING));
    assert_lk(0, lock_and_unlock(lk_stripes_at(eight, 3)));
    assert_string_equal("protocol=1 fair=no robust=no stripes=8", world_str(w, "GET latchkey:settings:mutex:{stock:3}"));
    assert_lk(0, lock_and_unlock(lk_stripes_at(four, 3)));
    eventually(strstr(log_kept(), "stripes=8") != NULL, 5000);
    assert_non_null(strstr(log_kept(), "mutex stock:3: protocol=1 fair=no robust=no stripes=4 here"));
    assert_lk(0, lk_events_next(queue, &event));
    assert_int_equal(LK_EVENT_DISAGREES, event.type);
    assert_string_equal("stock:3", event.name);
}

/* One that must not go on is refused, and so is a mutex of a stripe's name that knows of no stripes. */
static void a_strict_client_is_refused(struct world *w)
{
    unsigned index;
    lk_stripes_t *eight = world_stripes(w, world_client(w, ""), "stock", 8, NULL);
    lk_client_t *strict = world_client(w, "strict=yes");
    lk_stripes_t *four = world_stripes(w, strict, "stock", 4, NULL);
    lk_mutex_t *alone = world_mutex(w, world_client(w, "strict=yes"), "stock:2", NULL);
    for (unsigned i = 0; i < 8; i++) {
        assert_lk(0, lock_and_unlock(lk_stripes_at(eight, i)));
    }
    assert_lk(EINVAL, lk_mutex_lock(lk_stripes_at(four, 1)));
    assert_lk(EINVAL, lk_stripes_trylockany(four, 0, &index));
    assert_lk(EINVAL, lk_mutex_lock(alone));
}

/* Within a client it is a mistake that can be seen: at once, or where the stripe is used first. */
static void in_one_client_it_is_refused(struct world *w)
{
    lk_client_t *client = world_client(w, "");
    lk_stripes_t *eight = world_stripes(w, client, "stock", 8, NULL), other;
    lk_mutex_t m;
    assert_lk(EINVAL, lk_mutex_init(&m, client, "stock:7", NULL));
    assert_lk(0, lk_mutex_init(&m, client, "stock:3", NULL));
    assert_lk(EINVAL, lk_mutex_lock(lk_stripes_at(eight, 3)));
    assert_lk(EINVAL, lk_stripes_init(&other, client, "stock", 4)); /* its last one is that mutex */
    assert_lk(0, lk_mutex_destroy(&m));
    assert_lk(0, lk_mutex_lock(lk_stripes_at(eight, 3)));
    assert_lk(EINVAL, lk_stripes_init(&other, client, "stock", 4));
    assert_lk(0, lk_mutex_unlock(lk_stripes_at(eight, 3)));
}

int main(void)
{
    return world_run(another_number_of_stripes_is_told, a_strict_client_is_refused, in_one_client_it_is_refused);
}
