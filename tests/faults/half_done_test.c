/* SPDX-License-Identifier: MIT */
/*
 * half_done_test.c - F34, F42: a script of ours stops in its middle, as a helper key has another type; EPROTO
 * says "not held", and so it is
 *
 * labels: threads memory
 * simulated: yes
 */
#include "subject.h"

/* The helper keys of all kinds; those of other kinds do no harm. */
static const char *const helpers[] = {
    "redisson_lock_token:{thing}",  "latchkey:queue:mutex:{thing}",   "latchkey:alive:mutex:{thing}",
    "latchkey:queue:readers:{thing}", "latchkey:queue:writers:{thing}", "latchkey:alive:rw:{thing}",
    "latchkey:queue:sem:{thing}",
    "latchkey:alive:sem:{thing}",    "latchkey:queue:permits:{thing}", "latchkey:alive:permits:{thing}",
    "latchkey:claims:{thing}",      "latchkey:once:{thing}",          "latchkey:settings:mutex:{thing}",
    "latchkey:settings:rw:{thing}", "latchkey:settings:sem:{thing}",
};

static void half_done_takes_are_undone(struct world *w, const struct subject_kind *kind)
{
    lk_client_t *client = world_client(w, "lease=20s");
    int refused = 0;
    struct subject *mine = world_subject(w, client, kind, "thing");
    for (size_t i = 0; i < sizeof helpers / sizeof helpers[0]; i++) {
        world_redis(w, "DEL %s", helpers[i]);
        world_redis(w, "SADD %s foreign", helpers[i]);
        int code = subject_take(mine, 0);
        assert_true(code == 0 || code == EPROTO);
        refused += code != 0;
        assert_int_equal(code == 0, subject_held(w, mine));
        assert_string_equal("set", world_str(w, "TYPE %s", helpers[i]));
        if (code != 0)
            assert_int_equal(0, lk_errorsettles());
        world_redis(w, "DEL %s", helpers[i]);
        if (code == 0)
            assert_lk(0, subject_give(mine));
    }
    assert_true(refused > 0);
    assert_lk(0, subject_take(mine, 0));
    assert_lk(0, subject_give(mine));
}

int main(void)
{
    return subject_run(half_done_takes_are_undone);
}
