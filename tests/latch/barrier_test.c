/* SPDX-License-Identifier: MIT */
/*
 * barrier_test.c - the barrier of docs/pthreads.md lets nobody through early, and nobody waits for ever
 *
 * labels: threads
 */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTIES = 4, ROUNDS = SANITIZED ? 100 : 300 };

/* ```c */
/* `parties` processes meet: each calls it with the same name, and with round 0, 1, 2 and so on. */
static int meet(const char *name, unsigned parties, unsigned long round)
{
    char full[LK_NAME_MAX + 1];
    lk_latch_t latch;
    snprintf(full, sizeof full, "%s:%lu", name, round);
    int rc = lk_latch_init(&latch, NULL, full, NULL);
    if (rc != 0)
        return rc;
    rc = lk_latch_trysetcount(&latch, parties); /* the first one does; for the others EEXIST */
    if (rc == 0 || rc == EEXIST)
        rc = lk_latch_countdown(&latch);
    if (rc == 0 || rc == EIO) /* EIO: the library sees to it that it counts, once */
        rc = lk_latch_wait(&latch);
    lk_latch_destroy(&latch);
    return rc;
}
/* ``` */

static int take_part(struct world *w, void *arg)
{
    int *arrived = arg;
    setenv("LATCHKEY_URL", world_url(w, "poll=5s"), 1);
    world_ready(w);
    for (int round = 0; round < ROUNDS; round++) {
        __atomic_add_fetch(&arrived[round], 1, __ATOMIC_SEQ_CST);
        assert_lk(0, meet("stage", PARTIES, (unsigned long)round));
        assert_that(__atomic_load_n(&arrived[round], __ATOMIC_SEQ_CST) == PARTIES);
    }
    close_default();
    return 0;
}

static void all_are_through_when_all_have_come(struct world *w)
{
    int *arrived = world_shared(w, ROUNDS * sizeof *arrived);
    pid_t parties[PARTIES];
    world_allow(w, "latchkey:*:{stage:*}");
    for (int i = 0; i < PARTIES; i++)
        parties[i] = world_fork(w, take_part, arrived);
    for (int i = 0; i < PARTIES; i++)
        assert_int_equal(0, world_wait(w, parties[i]));
}

/* --- the page shows what is run here ----------------------------------------------------------------------------- */

static char *read_source(const char *path)
{
    char full[512];
    snprintf(full, sizeof full, "%s/%s", LK_SOURCE_DIR, path);
    FILE *file = fopen(full, "r");
    assert_non_null(file);
    char *text = calloc(1, 1 << 16);
    assert_true(fread(text, 1, (1 << 16) - 1, file) > 1000);
    fclose(file);
    return text;
}

static void the_page_shows_this_function(void)
{
    char *page = read_source("docs/pthreads.md"), *here = read_source("tests/latch/barrier_test.c");
    char *begins = strstr(here, "/* ```c */\n") + strlen("/* ```c */\n");
    *strstr(begins, "/* ``` */") = '\0';
    if (strstr(page, begins) == NULL)
        fail_msg("docs/pthreads.md does not show:\n%s", begins);
    free(page);
    free(here);
}

int main(void)
{
    int failed = world_run(all_are_through_when_all_have_come);
    return failed + plain_run(the_page_shows_this_function);
}
