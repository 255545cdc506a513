/* SPDX-License-Identifier: MIT */
/*
 * static_test.c - a mutex at file scope needs no line of setup
 *
 * labels: threads memory noise
 * simulated: yes
 */
#include "world.h"

#include <string.h>

static lk_mutex_t orders = LK_MUTEX_INITIALIZER("orders");
static lk_mutexattr_t strict = { .size = sizeof strict, .type = LK_MUTEX_ERRORCHECK };
static lk_mutex_t checked = LK_MUTEX_INITIALIZER_ATTR("checked", &strict);
static lk_mutex_t zeroed; /* all zero but the name */

static void use_server(struct world *w)
{
    use_default(world_url(w, "lease=5s"));
}

/* The default client is opened by the first call that needs it, and all share it. */
static void a_static_mutex_just_works(struct world *w)
{
    lk_client_t *one, *two;
    use_server(w);
    zeroed.lk_name = "zeroed";
    assert_lk(0, lk_mutex_lock(&orders));
    assert_lk(0, lk_mutex_lock(&checked));
    assert_lk(EDEADLK, lk_mutex_lock(&checked));
    assert_lk(0, lk_mutex_lock(&zeroed));
    assert_int_equal(1, world_holds(w, "orders"));
    assert_lk(0, lk_client_default(&one));
    assert_lk(0, lk_client_default(&two));
    assert_ptr_equal(one, two);
    assert_lk(0, lk_client_close(two)); /* there are two users more */
    assert_lk(0, lk_mutex_unlock(&zeroed));
    assert_lk(0, lk_mutex_unlock(&checked));
    assert_lk(0, lk_mutex_unlock(&orders));
    assert_lk(0, lk_mutex_destroy(&zeroed));
    assert_lk(0, lk_mutex_destroy(&checked));
    assert_lk(0, lk_mutex_destroy(&orders));
    assert_lk(0, lk_client_close(one));
}

/* Destroyed means "as if never used": the same object may begin again, also with a new default client. */
static void a_destroyed_static_mutex_begins_anew(struct world *w)
{
    use_server(w);
    for (int i = 0; i < 3; i++) {
        assert_lk(0, lock_and_unlock(&orders));
        assert_lk(0, lk_mutex_destroy(&orders));
        if (i == 1)
            close_default();
    }
    close_default();
}

/* A failure to open is told, and the next call tries again. */
static void the_first_failure_is_not_the_last_word(struct world *w)
{
    use_server(w);
    world_kill_server(w);
    int64_t began_ms = now_ms();
    assert_lk(ENOTCONN, lk_mutex_lock(&orders));
    assert_between(now_ms() - began_ms, 0, 5000 / 3 + SLACK_MS);
    assert_non_null(strstr(lk_errortext(), w->socket));
    world_restart_server(w);
    assert_lk(0, lock_and_unlock(&orders));
    assert_lk(0, lk_mutex_destroy(&orders));
    close_default();
}

int main(void)
{
    return world_run(a_static_mutex_just_works, a_destroyed_static_mutex_begins_anew,
                     the_first_failure_is_not_the_last_word);
}
