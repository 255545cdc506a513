/* SPDX-License-Identifier: MIT */
/*
 * sized_test.c - a program and a library of two versions agree on what both know of a struct
 *
 * labels: memory
 */
#include "assert_lk.h"
#include "base/base.h"

#include <string.h>

struct first {
    size_t size;
    int64_t kept, last;
};

struct ours {
    size_t size;
    int64_t kept, last, later;
};

struct newer {
    size_t size;
    int64_t kept, last, later, newest;
};

static const size_t least = LK__THROUGH(struct first, last);

static int take(struct ours *ours, const void *given)
{
    *ours = (struct ours){ 0 };
    return lk__sized_read(ours, sizeof *ours, given, least, "test options");
}

static void what_an_older_program_does_not_know_is_zero(void)
{
    struct ours ours;
    struct first older = { sizeof older, 1, 2 };
    assert_lk(0, take(&ours, &older));
    assert_true(ours.kept == 1 && ours.last == 2 && ours.later == 0);
    assert_lk(0, take(&ours, NULL));
    assert_true(ours.kept == 0);
}

static void a_newer_program_asks_for_nothing_unknown(void)
{
    struct ours ours;
    struct newer newer = { sizeof newer, 1, 2, 3, 0 };
    assert_lk(0, take(&ours, &newer));
    assert_true(ours.later == 3);
    newer.newest = 1;
    assert_lk(EINVAL, take(&ours, &newer));
    assert_non_null(strstr(lk_errortext(), "test options"));
}

static void an_older_program_is_told_what_it_knows(void)
{
    const struct ours ours = { .kept = 1, .last = 2, .later = 3 };
    struct {
        struct first given;
        int behind;
    } older = { { sizeof(struct first), 7, 7 }, 7 };
    assert_lk(0, lk__sized_check(&older.given, least, "a test struct"));
    lk__sized_write(&older.given, &ours, sizeof ours);
    assert_true(older.given.size == sizeof(struct first) && older.given.kept == 1 && older.given.last == 2);
    assert_int_equal(older.behind, 7);
}

static void a_newer_program_is_told_zero_of_the_rest(void)
{
    const struct ours ours = { .kept = 1, .last = 2, .later = 3 };
    struct newer newer = { sizeof newer, 7, 7, 7, 7 };
    assert_lk(0, lk__sized_check(&newer, least, "a test struct"));
    lk__sized_write(&newer, &ours, sizeof ours);
    assert_true(newer.size == sizeof newer && newer.later == 3 && newer.newest == 0);
}

static void a_size_that_was_never_set_is_a_mistake(void)
{
    static const size_t garbage[] = { 0, 1, sizeof(size_t), LK__THROUGH(struct first, last) - 1, (size_t)-1 };
    struct ours ours;
    struct newer given = { .kept = 7 };
    assert_lk(EINVAL, lk__sized_check(NULL, least, "a test struct"));
    for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
        given.size = garbage[i];
        assert_lk(EINVAL, take(&ours, &given));
        assert_lk(EINVAL, lk__sized_check(&given, least, "a test struct"));
    }
    given.size = 1;
    assert_lk(EINVAL, lk__sized_check(&given, least, "lk_mutexinfo_t"));
    assert_non_null(strstr(lk_errortext(), "lk_mutexinfo_t with a size of 1"));
    given.size = least; /* without the padding behind it */
    assert_lk(0, take(&ours, &given));
}

int main(void)
{
    return plain_run(what_an_older_program_does_not_know_is_zero, a_newer_program_asks_for_nothing_unknown,
                     an_older_program_is_told_what_it_knows, a_newer_program_is_told_zero_of_the_rest,
                     a_size_that_was_never_set_is_a_mistake);
}
