/* SPDX-License-Identifier: MIT */
/*
 * cond_test.c - every allocation and every system call on the way of a condition variable fails: the mutex is held
 * afterwards, or not, as the code says, and nothing stays behind
 *
 * labels: memory
 * simulated: yes
 * seconds: 67
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

/* After a wait that returned `rc` the mutex is held, or not, as that says. */
static void unlock_after(int rc)
{
    bool held = rc == 0 || rc == ETIMEDOUT || (rc == ENOMEM && lk_mutex_check(jobs) != EPERM);
    if (held)
        tried(0, lk_mutex_unlock(jobs), UNREACHABLE, ESTALE);
    else
        tried(EPERM, lk_mutex_unlock(jobs));
}

static void wait_in_vain(struct world *w)
{
    begin(w);
    failing_begin();
    if (tried(0, lk_mutex_lockfor(jobs, failing_patience_ms()), ENOMEM, UNREACHABLE, ETIMEDOUT) == 0)
        unlock_after(tried(ETIMEDOUT, lk_cond_waitfor(some, jobs, 20), ENOMEM, UNREACHABLE, ESTALE));
    end(w);
}

static lk_mutex_t *their_jobs;
static lk_cond_t *their_some;
static atomic_bool over;

static int only_begin(void)
{
    return 0;
}

/* As soon as somebody waits. */
static int signal_who_waits(void)
{
    lk_condinfo_t info = LK_CONDINFO_INIT;
    while (!atomic_load(&over) && lk_cond_info(their_some, &info) == 0 && info.waiters == 0)
        sleep_ms(2);
    int rc = lk_mutex_lockfor(their_jobs, 20000);
    if (rc == 0)
        rc = lk_cond_signal(their_some);
    return rc != 0 ? rc : lk_mutex_unlock(their_jobs);
}

/* Moved, granted and confirmed. */
static void wait_for_signal(struct world *w)
{
    struct rival rival;
    begin(w);
    atomic_store(&over, false);
    rival_start(&rival, only_begin, signal_who_waits, 0);
    failing_begin();
    if (tried(0, lk_mutex_lockfor(jobs, failing_patience_ms()), ENOMEM, UNREACHABLE, ETIMEDOUT) == 0)
        unlock_after(tried(0, lk_cond_waitfor(some, jobs, failing_patience_ms()), ENOMEM, UNREACHABLE, ESTALE,
                           ETIMEDOUT));
    atomic_store(&over, true);
    spared((rival_end(&rival), 0));
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

/* What the other client has for waits is made before anything is counted. */
static void let_other_wait(struct world *w)
{
    lk_client_t *third = world_client(w, "lease=20s");
    lk_mutex_t *held = world_mutex(w, third, "jobs", NULL);
    assert_lk(0, lk_mutex_lock(held));
    assert_lk(ETIMEDOUT, lk_mutex_lockfor(their_jobs, 50));
    assert_lk(0, lk_mutex_unlock(held));
    world_close(w, third);
}

static void all_of(struct world *w, enum failing kind)
{
    each_failure(w, "wait", kind, wait_in_vain);
    each_failure(w, "wake", kind, wake);
    lk_client_t *other = world_client(w, "lease=20s");
    their_jobs = world_mutex(w, other, "jobs", NULL);
    their_some = world_cond(w, other, "jobs", NULL);
    let_other_wait(w);
    each_failure(w, "signalled", kind, wait_for_signal);
    world_close(w, other);
}

int main(void)
{
    return all_failures(all_of);
}
