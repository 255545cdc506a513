/* SPDX-License-Identifier: MIT */
/*
 * credentials_test.c - F38a and F38b: the password is changed, and the next connection refused
 *
 * That does not pass by itself, so an acquire is told at once. Who has a place in the queue keeps it, and
 * holders try on until their leases end. A user that is deleted: user_deleted_test.c.
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 11
 * processors: 2
 */
#include "outage.h"

static void change_its_password(struct world *w)
{
    world_redis(w, "ACL SETUSER app resetpass >new");
    world_redis(w, "CLIENT KILL USER app"); /* connections would outlive the change */
}

/*
 * F38a: a refused client asks again at its own pace, whoever calls, and each call is told why: also one that
 * begins and ends between two attempts.
 */
static void refused_again_and_again(struct world *w)
{
    lk_client_t *client = world_client(w, "lease=5s&command_timeout=100ms&retry_min=1s&retry_max=1s");
    struct subject *thing = world_subject(w, client, subject_kinds, "thing");
    world_redis(w, "CONFIG SET requirepass secret");
    world_killcommands(w);
    eventually(subject_take(thing, 0) == EACCES, 1500 + SLACK_MS);
    int64_t began_ms = now_ms(), before = world_counter(w, "total_connections_received");
    for (int i = 0; i < 10; i++)
        assert_lk(EACCES, subject_take(thing, 0));
    assert_lk(EACCES, lk_mutex_forceunlock(&thing->mutex));
    int64_t seconds = (now_ms() - began_ms) / 1000 + 1;
    assert_between(world_counter(w, "total_connections_received") - before, 0, seconds + 1);
    world_redis(w, "CONFIG SET requirepass %s", "");
    assert_lk(0, subject_take(thing, 3000));
    int gave = subject_give(thing);
    assert_true(gave == 0 || gave == EIO); /* with 100 ms for an answer, on a busy machine: then the library goes on */
    eventually(subject_held(w, thing) == 0, 3000);
}

int main(void)
{
    static const struct outage changed = {
        .name = "password changed",
        .code = EACCES,
        .ends_tries = true,
        .words = { "WRONGPASS" },
        .user = "app:old",
        .prepare = outage_user,
        .begin = change_its_password,
        .end = outage_user,
    };
    int failed = world_run(refused_again_and_again);
    return failed + outage_tests(&changed);
}
