/* SPDX-License-Identifier: MIT */
/*
 * longest_name_test.c - with the longest of names each call works also where the server has to be sent its script
 *
 * labels: memory
 */
#include "subject.h"

#include <string.h>

/* All that a call needs goes into one command of a limited size: the script's text, and up to seven keys with the name. */
static void a_script_goes_with_the_longest_keys(struct world *w, const struct subject_kind *kind)
{
    static char options[LK_NAME_MAX + 16] = "prefix=";
    memset(options + strlen("prefix="), 'x', LK_NAME_MAX - strlen("thing"));
    struct subject *ours = world_subject(w, world_client(w, options), kind, "thing");
    struct subject *theirs = world_subject(w, world_client(w, options), subject_keeper(kind), "thing");
    world_allow(w, "*thing*");
    for (int i = 0; i < 2; i++) {
        world_redis(w, "SCRIPT FLUSH");
        assert_lk(0, subject_take(ours, PATIENT_MS));
        world_redis(w, "SCRIPT FLUSH");
        assert_lk(ETIMEDOUT, subject_take(theirs, 20));
        world_redis(w, "SCRIPT FLUSH");
        assert_lk(0, subject_give(ours));
    }
}

int main(void)
{
    return subject_run(a_script_goes_with_the_longest_keys);
}
