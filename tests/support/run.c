/* SPDX-License-Identifier: MIT */
/* run.c - the tests of a program, as a group of cmocka's: see plain_run() and world_run() */
#include "world.h"

#include <stdlib.h>
#include <string.h>

/* Names point into a copy of the list, as the group keeps them. */
int run_group(const char *names, const void *functions, CMUnitTestFunction body, CMFixtureFunction setup,
              CMFixtureFunction teardown)
{
    char *copy = strdup(names), *rest = copy;
    struct CMUnitTest *tests = calloc(strlen(names), sizeof *tests);
    size_t count = 0;
    assert_that(copy != NULL && tests != NULL);
    for (char *name; (name = strtok_r(rest, ", ", &rest)) != NULL; count++)
        tests[count] =
            (struct CMUnitTest){ name, body, setup, teardown, (char *)functions + count * sizeof(plain_test_fn *) };
    int failed = _cmocka_run_group_tests("tests", tests, count, NULL, NULL);
    free(tests);
    free(copy);
    return failed;
}

static void run_plain(void **state)
{
    plain_test_fn *const *test = *state;
    (*test)();
}

int plain_run_tests(CMFixtureFunction setup, CMFixtureFunction teardown, const char *names,
                    plain_test_fn *const tests[])
{
    return run_group(names, tests, run_plain, setup, teardown);
}

static int begin_world(void **state)
{
    world_test_fn *const *test = *state;
    struct world *w = world_begin(NULL);
    w->test = *test;
    *state = w;
    return 0;
}

static void run_in_world(void **state)
{
    struct world *w = *state;
    w->test(w);
    world_close(w, NULL);
    w->passed = true;
}

/* The threads of a test that failed may still use its objects. */
int world_teardown(void **state)
{
    struct world *w = *state;
    if (!w->passed)
        w->ending_count = 0;
    world_end(w);
    return 0;
}

int world_run_tests(CMFixtureFunction teardown, const char *names, world_test_fn *const tests[])
{
    return run_group(names, tests, run_in_world, begin_world, teardown);
}
