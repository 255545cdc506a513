/* SPDX-License-Identifier: MIT */
/*
 * once_test.c - every allocation and every system call fails while something is done once: it completes once or not at all
 *
 * labels: memory
 * simulated: yes
 * seconds: 39
 * processors: 2
 * support: failing
 */
#include "failing/failing.h"

static lk_client_t *client;
static lk_once_t *mine, *theirs;

static void begin(struct world *w)
{
    client = world_client(w, failing_options());
    mine = world_once(w, client, "work", NULL);
}

static void end(struct world *w)
{
    world_close(w, client);
    world_redis(w, "DEL latchkey:done:{work}");
}

static void run(struct world *w)
{
    char *text = NULL;
    uint64_t token;
    lk_onceinfo_t info = LK_ONCEINFO_INIT;
    begin(w);
    failing_begin();
    if (tried(0, lk_once_begin(mine, failing_patience_ms()), ENOMEM, UNREACHABLE, ETIMEDOUT) == 0) {
        tried(0, lk_once_token(mine, &token), ESTALE);
        tried(0, lk_once_info(mine, &info), ENOMEM, UNREACHABLE);
        int rc = tried(0, lk_once_end(mine, "good"), ENOMEM, UNREACHABLE, ESTALE);
        bool done = spared(world_exists(w, "latchkey:done:{work}"));
        assert_that(rc == 0 ? done : rc == EIO || rc == ENOTCONN || !done);
        if (rc == ENOMEM)
            tried(0, lk_once_fail(mine), UNREACHABLE, ESTALE);
        if (rc == 0 && tried(0, lk_once_result(mine, &text), ENOMEM, UNREACHABLE) == 0)
            lk_free(text);
        if (rc == 0)
            tried(0, lk_once_reset(mine), ENOMEM, UNREACHABLE);
    }
    failing_end();
    end(w);
}

static void give_up(struct world *w)
{
    begin(w);
    failing_begin();
    if (tried(0, lk_once_begin(mine, failing_patience_ms()), ENOMEM, UNREACHABLE, ETIMEDOUT) == 0)
        tried(0, lk_once_fail(mine), UNREACHABLE, ESTALE);
    failing_end();
    end(w);
}

static int begin_theirs(void)
{
    return lk_once_begin(theirs, 20000);
}

static int end_theirs(void)
{
    return lk_once_end(theirs, "good");
}

static void wait_for_others(struct world *w)
{
    struct rival rival;
    begin(w);
    rival_start(&rival, begin_theirs, end_theirs, 20);
    failing_begin();
    tried(EALREADY, lk_once_begin(mine, failing_patience_ms()), ENOMEM, UNREACHABLE, ETIMEDOUT);
    failing_end();
    rival_end(&rival);
    assert_lk(EALREADY, lk_once_begin(mine, 5000));
    end(w);
}

static void all_of(struct world *w, enum failing kind)
{
    each_failure(w, "run", kind, run);
    each_failure(w, "give_up", kind, give_up);
    lk_client_t *other = world_client(w, "lease=20s");
    theirs = world_once(w, other, "work", NULL);
    each_failure(w, "wait", kind, wait_for_others);
    world_close(w, other);
}

int main(void)
{
    return all_failures(all_of);
}
