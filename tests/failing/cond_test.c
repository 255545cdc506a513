/* SPDX-License-Identifier: MIT */
/*
 * cond_test.c - every allocation and every system call on the way of a condition variable fails: the mutex is held
 * afterwards, or not, as the code says, and nothing stays behind
 *
 * labels: memory
 * seconds: 30
 * support: failing
 */
#include "failing/failing.h"

static lk_client_t *client;
static lk_mutex_t *jobs;
static lk_cond_t *some;

static void begin(struct world *w)
{
    client = world_client(w, failing_options());
    jobs = world_mutex(w, client, "jobs", NULL);
    some = world_cond(w, client, "jobs", NULL);
}

/* It works again. */
static void end(struct world *w)
{
    failing_end();
    assert_lk(0, lk_mutex_lockfor(jobs, FAILING_LONG_MS));
    assert_lk(0, lk_cond_signal(some));
    assert_lk(0, lk_mutex_unlock(jobs));
    world_close(w, client);
}

static void wait_in_vain(struct world *w)
{
    begin(w);
    failing_begin();
    if (tried(0, lk_mutex_lockfor(jobs, failing_patience_ms()), ENOMEM, UNREACHABLE, ETIMEDOUT) == 0) {
        int rc = tried(ETIMEDOUT, lk_cond_waitfor(some, jobs, 20), ENOMEM, UNREACHABLE, ESTALE);
        bool held = rc == ETIMEDOUT || (rc == ENOMEM && lk_mutex_check(jobs) != EPERM);
        if (held)
            tried(0, lk_mutex_unlock(jobs), UNREACHABLE, ESTALE);
        else if (rc != 0)
            tried(EPERM, lk_mutex_unlock(jobs));
    }
    end(w);
}

static void wake(struct world *w)
{
    lk_condinfo_t info = LK_CONDINFO_INIT;
    begin(w);
    failing_begin();
    tried(0, lk_cond_signal(some), ENOMEM, UNREACHABLE);
    tried(0, lk_cond_broadcast(some), ENOMEM, UNREACHABLE);
    tried(0, lk_cond_info(some, &info), ENOMEM, UNREACHABLE);
    end(w);
}

static void all_of(struct world *w, enum failing kind)
{
    each_failure(w, "wait", kind, wait_in_vain);
    each_failure(w, "wake", kind, wake);
}

int main(void)
{
    return all_failures(all_of);
}
