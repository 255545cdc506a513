/* SPDX-License-Identifier: MIT */
/* waits.c - what fails while something is waited for: the wait ends in its time, and a grant is taken or goes on */
#include "failing/failing.h"

#include <string.h>

static const struct wait *present;
static struct subject *theirs;

static const struct subject_kind *kind_called(const char *name)
{
    const struct subject_kind *kind = subject_kinds;
    while (strcmp(kind->name, name) != 0)
        kind++;
    return kind;
}

/* Neither a key of the name may be left nor any that other tests leave. */
static struct subject *strict_subject(struct world *w, lk_client_t *client, const struct subject_kind *kind)
{
    struct subject *s = world_subject(w, client, kind, "thing");
    w->allowed_count = 0;
    return s;
}

static int take_theirs(void)
{
    return subject_take(theirs, LK_FOREVER);
}

static int give_theirs(void)
{
    return subject_give(theirs);
}

static void wait_for_a_grant(struct world *w, struct subject *mine)
{
    struct rival rival;
    rival_start(&rival, take_theirs, give_theirs, 20);
    failing_begin();
    if (tried(0, subject_take(mine, failing_patience_ms()), ENOMEM, UNREACHABLE, ETIMEDOUT) == 0) {
        assert_that(spared(subject_held(w, mine)) == 1);
        tried(0, subject_give(mine), UNREACHABLE, ESTALE); /* a hold that was lost meanwhile is no failure of it */
    }
    failing_end();
    rival_end(&rival);
}

static void wait_in_vain(struct subject *mine)
{
    assert_lk(0, subject_take(theirs, LK_FOREVER));
    failing_begin();
    tried(ETIMEDOUT, subject_take(mine, 15), ENOMEM, UNREACHABLE);
    failing_end();
    assert_lk(0, subject_give(theirs));
}

static void scenario(struct world *w)
{
    const struct subject_kind *kind = kind_called(present->mine);
    lk_client_t *client = world_client(w, failing_options());
    struct subject *mine = strict_subject(w, client, kind), *all = strict_subject(w, client, subject_keeper(kind));
    if (present->in_vain)
        wait_in_vain(mine);
    else
        wait_for_a_grant(w, mine);
    assert_lk(0, subject_take(all, FAILING_LONG_MS)); /* it works again, and all is given back */
    assert_lk(0, subject_give(all));
    world_close(w, client);
}

void each_failure_of_waits(struct world *w, enum failing kind, const struct wait *waits)
{
    for (present = waits; present->name != NULL; present++) {
        lk_client_t *other = world_client(w, "lease=20s");
        theirs = strict_subject(w, other, kind_called(present->theirs));
        each_failure(w, present->name, kind, scenario);
        world_close(w, other);
    }
}
