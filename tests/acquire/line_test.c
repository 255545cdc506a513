/* SPDX-License-Identifier: MIT */
/*
 * line_test.c - threads of one process wait for their turn in order of arrival, and may leave the line
 *
 * labels: threads memory noise
 * simulated: yes
 */
#include "assert_lk.h"
#include "acquire/acquire.h"

enum { CROWD = 12 };

/* A thread in a line, and what became of it. */
struct visitor {
    struct worker worker;
    struct lk__localqueue *line;
    struct lk__parker parker;
    struct lk__qnode place;
    int64_t until_us;
    atomic_int *turns; /* how many had their turn */
    int turn;          /* which this one was; 0: none */
    int64_t left_us;
};

static unsigned length_of(struct lk__localqueue *line)
{
    lk__mu_lock(line->mu);
    unsigned length = line->length;
    lk__mu_unlock(line->mu);
    return length;
}

static int wait_op(void *arg)
{
    struct visitor *visitor = arg;
    int rc = lk__localqueue_enter(visitor->line, &visitor->place, &visitor->parker, visitor->until_us, NULL);
    visitor->left_us = lk__now_us();
    if (rc != 0)
        return rc;
    visitor->turn = atomic_fetch_add(visitor->turns, 1) + 1;
    lk__localqueue_leave(visitor->line, &visitor->place);
    return 0;
}

/* A line with the test's own thread as the first, so that nobody has a turn yet. */
struct scene {
    struct lk__mu mu;
    struct lk__localqueue line;
    struct lk__parker parker;
    struct lk__qnode place;
    atomic_int turns;
    struct visitor visitors[CROWD];
};

static int open_scene(void **state)
{
    static struct scene scene;
    scene = (struct scene){ .turns = 0 };
    lk__mu_init(&scene.mu, LK__MU_OBJECT);
    lk__localqueue_init(&scene.line, &scene.mu);
    lk__parker_init(&scene.parker);
    *state = &scene;
    return lk__localqueue_enter(&scene.line, &scene.place, &scene.parker, 0, NULL);
}

static int close_scene(void **state)
{
    struct scene *scene = *state;
    lk__parker_destroy(&scene->parker);
    lk__localqueue_destroy(&scene->line);
    lk__mu_destroy(&scene->mu);
    return 0;
}

/* Let visitors `first` to `last` come, each when the one before stands in the line. */
static void let_come(struct scene *scene, int first, int last, int64_t until_us)
{
    for (int i = first; i <= last; i++) {
        struct visitor *visitor = &scene->visitors[i];
        unsigned before = length_of(&scene->line);
        *visitor = (struct visitor){ .line = &scene->line, .until_us = until_us, .turns = &scene->turns };
        lk__parker_init(&visitor->parker);
        worker_start(&visitor->worker, wait_op, visitor);
        eventually(length_of(&scene->line) == before + 1, 10000);
    }
}

static int join_one(struct scene *scene, int i)
{
    int rc = worker_join(&scene->visitors[i].worker);
    lk__parker_destroy(&scene->visitors[i].parker);
    return rc;
}

/* Nobody is waiting: no sleep, even when no time is left. */
static void the_first_one_has_its_turn_at_once(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(length_of(&scene->line), 1);
    lk__localqueue_leave(&scene->line, &scene->place);
    assert_int_equal(length_of(&scene->line), 0);
    assert_int_equal(lk__localqueue_enter(&scene->line, &scene->place, &scene->parker, 0, NULL), 0);
    lk__localqueue_leave(&scene->line, &scene->place);
}

static void turns_are_in_the_order_of_arrival(void **state)
{
    struct scene *scene = *state;
    let_come(scene, 0, CROWD - 1, LK__NEVER);
    assert_int_equal(atomic_load(&scene->turns), 0);
    lk__localqueue_leave(&scene->line, &scene->place);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(join_one(scene, i), 0);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(scene->visitors[i].turn, i + 1);
    assert_int_equal(length_of(&scene->line), 0);
}

/* Who gives up leaves the others as they stood: nobody is passed, nobody is forgotten. */
static void who_gives_up_in_the_middle_does_not_disturb_the_order(void **state)
{
    struct scene *scene = *state;
    let_come(scene, 0, 1, LK__NEVER);
    int64_t until_us = lk__now_us() + 1000000; /* both are there by then, on a busy machine, too */
    let_come(scene, 2, 3, until_us);
    let_come(scene, 4, 5, LK__NEVER);
    for (int i = 2; i <= 3; i++) {
        assert_int_equal(join_one(scene, i), ETIMEDOUT);
        assert_between(scene->visitors[i].left_us - until_us, 0, SLACK_MS * 1000);
    }
    assert_int_equal(length_of(&scene->line), 5);
    lk__localqueue_leave(&scene->line, &scene->place);
    static const int others[] = { 0, 1, 4, 5 };
    for (int i = 0; i < 4; i++) {
        assert_int_equal(join_one(scene, others[i]), 0);
        assert_int_equal(scene->visitors[others[i]].turn, i + 1);
    }
}

static void a_limit_that_passed_ends_at_once_without_a_turn(void **state)
{
    struct scene *scene = *state;
    struct lk__parker parker;
    struct lk__qnode place;
    lk__parker_init(&parker);
    assert_int_equal(lk__localqueue_enter(&scene->line, &place, &parker, 0, NULL), ETIMEDOUT);
    assert_int_equal(lk__localqueue_enter(&scene->line, &place, &parker, lk__now_us(), NULL), ETIMEDOUT);
    assert_int_equal(length_of(&scene->line), 1);
    lk__parker_destroy(&parker);
    lk__localqueue_leave(&scene->line, &scene->place);
}

/* A wake-up meant for something else is no turn. */
static void a_wake_up_alone_is_no_turn(void **state)
{
    struct scene *scene = *state;
    let_come(scene, 0, 0, LK__NEVER);
    for (int i = 0; i < 20; i++) {
        lk__parker_signal(&scene->visitors[0].parker, i % 2 == 0 ? LK__NUDGED : LK__WOKEN);
        sleep_ms(1);
    }
    assert_int_equal(atomic_load(&scene->turns), 0);
    assert_int_equal(length_of(&scene->line), 2);
    lk__localqueue_leave(&scene->line, &scene->place);
    assert_int_equal(join_one(scene, 0), 0);
}

/* A client that is closed sends everybody home; the one whose turn it is leaves by itself. */
static void all_who_wait_can_be_cancelled(void **state)
{
    struct scene *scene = *state;
    let_come(scene, 0, CROWD - 1, LK__NEVER);
    lk__localqueue_cancel(&scene->line);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(join_one(scene, i), ECANCELED);
    assert_int_equal(atomic_load(&scene->turns), 0);
    assert_int_equal(length_of(&scene->line), 1);
    let_come(scene, 0, 0, LK__NEVER); /* those who come later were not meant */
    lk__localqueue_leave(&scene->line, &scene->place);
    assert_int_equal(join_one(scene, 0), 0);
}

/* --- limits, turns and leaving, all at once ------------------------------------------------------------- */

enum { RUSH = 8, ROUNDS = SANITIZED ? 100 : 400 };

static atomic_int inside;
static int served; /* under the turn: tsan sees it if two ever had theirs at once */

static int rush(int index, void *arg)
{
    struct lk__localqueue *line = arg;
    struct lk__parker parker;
    int rc = 0;
    lk__parker_init(&parker);
    for (int i = 0; i < ROUNDS && rc == 0; i++) {
        struct lk__qnode place;
        bool hasty = (index + i) % 3 == 0;
        rc = lk__localqueue_enter(line, &place, &parker, hasty ? lk__now_us() + 50 : LK__NEVER, NULL);
        if (rc == ETIMEDOUT && hasty) {
            rc = 0;
            continue;
        }
        if (rc != 0)
            break;
        if (atomic_fetch_add(&inside, 1) != 0)
            rc = EBUSY;
        served++;
        atomic_fetch_sub(&inside, 1);
        lk__localqueue_leave(line, &place);
    }
    lk__parker_destroy(&parker);
    return rc;
}

static void no_turn_is_lost_or_given_twice_in_a_rush(void **state)
{
    struct lk__mu mu = LK__MU_INITIALIZER(LK__MU_OBJECT);
    struct lk__localqueue line;
    (void)state;
    served = 0;
    lk__localqueue_init(&line, &mu);
    assert_int_equal(run_threads(RUSH, rush, &line), 0);
    assert_int_equal(length_of(&line), 0);
    assert_between(served, RUSH * ROUNDS * 2 / 3 - RUSH, RUSH * ROUNDS);
    lk__localqueue_destroy(&line);
    lk__mu_destroy(&mu);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)
    const struct CMUnitTest tests[] = {
        TEST(the_first_one_has_its_turn_at_once),
        TEST(turns_are_in_the_order_of_arrival),
        TEST(who_gives_up_in_the_middle_does_not_disturb_the_order),
        TEST(a_limit_that_passed_ends_at_once_without_a_turn),
        TEST(a_wake_up_alone_is_no_turn),
        TEST(all_who_wait_can_be_cancelled),
        cmocka_unit_test(no_turn_is_lost_or_given_twice_in_a_rush),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
