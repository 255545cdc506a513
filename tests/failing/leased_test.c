/* SPDX-License-Identifier: MIT */
/*
 * leased_test.c - every allocation and every system call on the way of a leased permit fails, with an id and without:
 * all of them come back
 *
 * labels: memory
 * simulated: yes
 * seconds: 65
 * support: failing
 */
#include "failing/failing.h"

#define TOTAL 3

static lk_client_t *client;
static lk_sem_t *s;

static void begin(struct world *w)
{
    client = world_client(w, failing_options());
    s = world_sem(w, client, "s", TOTAL, &(lk_semattr_t){ .size = sizeof(lk_semattr_t), .leased = 1 });
}

static void end(struct world *w)
{
    failing_end();
    assert_lk(0, lk_sem_acquire(s, TOTAL, FAILING_LONG_MS));
    assert_lk(0, lk_sem_release(s, TOTAL));
    world_close(w, client);
    world_redis(w, "DEL latchkey:total:{s} latchkey:permits:{s} latchkey:queue:permits:{s}");
}

static void of_a_thread(struct world *w)
{
    lk_seminfo_t info = LK_SEMINFO_INIT;
    begin(w);
    failing_begin();
    if (tried(0, lk_sem_acquire(s, 2, failing_patience_ms()), ENOMEM, UNREACHABLE, ETIMEDOUT) == 0)
        tried(0, lk_sem_release(s, 2), UNREACHABLE, ESTALE);
    tried(0, lk_sem_info(s, &info), ENOMEM, UNREACHABLE);
    end(w);
}

static void asked_about(struct world *w)
{
    lk_waiter_t waiters[2];
    unsigned count;
    begin(w);
    failing_begin();
    if (tried(0, lk_sem_acquire(s, 2, failing_patience_ms()), ENOMEM, UNREACHABLE, ETIMEDOUT) == 0) {
        tried(0, lk_sem_check(s), ENOMEM, UNREACHABLE, ESTALE);
        tried(0, lk_sem_extend(s, FAILING_LEASE_MS), UNREACHABLE, ESTALE);
        tried(0, lk_sem_release(s, 2), UNREACHABLE, ESTALE);
    }
    tried(0, lk_sem_queue(s, waiters, sizeof(lk_waiter_t), 2, &count), ENOMEM, UNREACHABLE);
    end(w);
}

static void with_an_id(struct world *w)
{
    char id[LK_PERMIT_ID];
    begin(w);
    failing_begin();
    if (tried(0, lk_sem_acquireid(s, failing_patience_ms(), id), ENOMEM, UNREACHABLE, ETIMEDOUT) == 0) {
        tried(0, lk_sem_checkid(s, id), ENOMEM, UNREACHABLE, ESTALE);
        tried(0, lk_sem_extendid(s, id, FAILING_LEASE_MS), ENOMEM, UNREACHABLE, ESTALE);
        tried(0, lk_sem_releaseid(s, id), ENOMEM, UNREACHABLE, ESTALE);
    }
    end(w);
}

/* Its owner can be freed whatever failed. */
static void of_an_owner(struct world *w)
{
    lk_how_t how = { .size = sizeof how, .lease_ms = FAILING_LEASE_MS };
    begin(w);
    assert_lk(0, lk_owner_new(client, &how.owner));
    failing_begin();
    how.timeout_ms = failing_patience_ms();
    if (tried(0, lk_sem_acquirewith(s, 2, &how), ENOMEM, UNREACHABLE, ETIMEDOUT) == 0) {
        tried(0, lk_sem_checkby(s, how.owner), ENOMEM, UNREACHABLE, ESTALE);
        tried(0, lk_sem_extendby(s, how.owner, FAILING_LEASE_MS), UNREACHABLE, ESTALE);
        tried(0, lk_sem_releaseby(s, how.owner, 2), UNREACHABLE, ESTALE);
    }
    failing_end();
    assert_lk(0, lk_owner_free(how.owner));
    end(w);
}

static void all_of(struct world *w, enum failing kind)
{
    each_failure(w, "of a thread", kind, of_a_thread);
    each_failure(w, "of an owner", kind, of_an_owner);
    each_failure(w, "asked about", kind, asked_about);
    each_failure(w, "with an id", kind, with_an_id);
}

int main(void)
{
    return all_failures(all_of);
}
