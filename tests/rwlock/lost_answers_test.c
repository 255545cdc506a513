/* SPDX-License-Identifier: MIT */
/*
 * lost_answers_test.c - requests and answers get lost, late or doubled on the way, and still happen once
 *
 * labels: threads memory
 * simulated: yes
 */
#include "proxy.h"

enum { COMMAND_MS = 300 };

static struct proxy *p;
static lk_rwlock_t *config;

static const enum proxy_fault faults[] = { PROXY_CUT_REQUEST, PROXY_CUT_REPLY, PROXY_DROP_REPLY, PROXY_HOLD_REQUEST };
enum { CUTS = 2, FAULTS = sizeof faults / sizeof faults[0] };

static void open_with(struct world *w, const char *options)
{
    p = proxy_begin(w);
    config = world_rwlock(w, proxy_client(p, options), "config", NULL);
    assert_lk(0, lk_rwlock_wrlock(config)); /* from now on the server knows the scripts: one chunk a call */
    assert_lk(0, lk_rwlock_downgrade(config));
    assert_lk(0, lk_rwlock_unlock(config));
}

static void open_config(struct world *w)
{
    open_with(w, "lease=5s&command_timeout=300ms");
}

/* Let the fault befall the next request of the lock. */
static void arm(enum proxy_fault fault)
{
    proxy_once(p, fault, 1, "{config}");
}

static bool is_free(struct world *w)
{
    return !world_exists(w, "latchkey:rw:{config}");
}

/* Whatever is lost: there is one hold, of one grant, with the last token there is. */
static void a_lock_is_granted_once(struct world *w)
{
    uint64_t token;
    open_config(w);
    for (int i = 0; i < 2 * FAULTS; i++) {
        bool write = i % 2 == 0;
        arm(faults[i / 2]);
        assert_lk(0, write ? lk_rwlock_wrlock(config) : lk_rwlock_rdlock(config));
        assert_int_equal(1, world_rwholds(w, "config"));
        if (write) {
            assert_lk(0, lk_rwlock_token(config, &token));
            assert_int_equal((int64_t)token, world_int(w, "GET redisson_lock_token:{config}"));
        }
        assert_lk(0, lk_rwlock_unlock(config));
        proxy_release(p); /* the copy that was held back comes after all */
        sleep_ms(50);
        assert_true(is_free(w));
    }
}

/* Cut in its middle, a downgrade is asked for again, and an unlock as well. */
static void downgrade_and_unlock_are_confirmed(struct world *w)
{
    open_with(w, "lease=5s&command_timeout=1500ms"); /* of which a cut takes none */
    for (int i = 0; i < CUTS; i++) {
        assert_lk(0, lk_rwlock_wrlock(config));
        arm(faults[i]);
        assert_lk(0, lk_rwlock_downgrade(config));
        assert_int_equal(1, world_rwholds(w, "config"));
        assert_lk(0, lk_rwlock_check(config));
        arm(faults[i]);
        assert_lk(0, lk_rwlock_unlock(config));
        assert_true(is_free(w));
    }
}

/* Requests that arrive when all is over leave the lock to nobody. */
static void late_copies_leave_no_orphan(struct world *w)
{
    open_config(w);
    for (int i = 0; i < 3; i++) {
        arm(PROXY_PARK_REQUEST);
        assert_lk(0, i == 0 ? lk_rwlock_rdlock(config) : lk_rwlock_wrlock(config));
        if (i == 2)
            assert_lk(0, lk_rwlock_downgrade(config));
        assert_lk(0, lk_rwlock_unlock(config));
        proxy_release(p);
        sleep_ms(50);
        eventually(is_free(w), 3 * COMMAND_MS); /* a lease is 5 s */

        assert_lk(0, lk_rwlock_wrlock(config));
        arm(PROXY_PARK_REQUEST); /* a downgrade that comes when the next hold stands */
        assert_lk(0, lk_rwlock_downgrade(config));
        assert_lk(0, lk_rwlock_unlock(config));
        assert_lk(0, lk_rwlock_wrlock(config));
        proxy_release(p);
        sleep_ms(50);
        assert_int_equal(1, world_rwholds(w, "config"));
        assert_lk(0, lk_rwlock_check(config));
        assert_lk(0, lk_rwlock_unlock(config));
        assert_true(is_free(w));
    }
}

int main(void)
{
    return world_run(a_lock_is_granted_once, downgrade_and_unlock_are_confirmed, late_copies_leave_no_orphan);
}
