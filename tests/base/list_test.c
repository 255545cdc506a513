/* SPDX-License-Identifier: MIT */
/*
 * list_test.c - a list keeps the order of arrival, and a link may leave at any time, or twice
 *
 * labels: memory
 */
#include "assert_lk.h"
#include "base/base.h"

#include <string.h>

struct letter {
    char name;
    struct lk__link link;
};

/* The names in the list, as a text; checks the way back as well. */
static const char *read_out(struct lk__link *list)
{
    static char text[16];
    size_t length = 0;
    for (struct lk__link *l = lk__list_first(list); l != NULL; l = lk__list_next(list, l)) {
        assert_true(lk__listed(l));
        assert_ptr_equal(l->next->prev, l);
        text[length++] = LK__CONTAINER(l, struct letter, link)->name;
    }
    text[length] = '\0';
    assert_int_equal(lk__list_empty(list), length == 0);
    return text;
}

static void links_stay_in_the_order_of_arrival(void)
{
    struct letter a = { .name = 'a' }, b = { .name = 'b' }, c = { .name = 'c' };
    struct lk__link list;
    lk__list_init(&list);
    assert_string_equal(read_out(&list), "");
    assert_null(lk__list_first(&list));
    lk__list_append(&list, &a.link);
    lk__list_append(&list, &b.link);
    lk__list_append(&list, &c.link);
    assert_string_equal(read_out(&list), "abc");
}

static void a_link_leaves_from_any_place_and_may_come_back(void)
{
    static const struct {
        int leaver;
        const char *left, *after;
    } table[] = { { 0, "bc", "bca" }, { 1, "ac", "acb" }, { 2, "ab", "abc" } };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct letter letters[3] = { { .name = 'a' }, { .name = 'b' }, { .name = 'c' } };
        struct lk__link list;
        lk__list_init(&list);
        for (int l = 0; l < 3; l++)
            lk__list_append(&list, &letters[l].link);
        struct lk__link *leaver = &letters[table[i].leaver].link;
        lk__list_remove(leaver);
        assert_false(lk__listed(leaver));
        assert_string_equal(read_out(&list), table[i].left);
        lk__list_append(&list, leaver);
        assert_string_equal(read_out(&list), table[i].after);
    }
}

/* Who cleans up need not know whether it was in the list. */
static void removing_what_is_in_no_list_is_harmless(void)
{
    struct letter a = { .name = 'a' }, b = { .name = 'b' };
    struct lk__link list;
    lk__list_init(&list);
    lk__list_remove(&a.link);
    lk__list_append(&list, &b.link);
    lk__list_remove(&a.link);
    assert_string_equal(read_out(&list), "b");
    lk__list_remove(&b.link);
    lk__list_remove(&b.link);
    assert_string_equal(read_out(&list), "");
}

/* Lists are emptied from the front, and walked with the next link taken before the present one leaves. */
static void a_list_can_be_emptied_while_it_is_walked(void)
{
    struct letter letters[5] = { { .name = 'a' }, { .name = 'b' }, { .name = 'c' }, { .name = 'd' }, { .name = 'e' } };
    struct lk__link list, *next;
    lk__list_init(&list);
    for (int i = 0; i < 5; i++)
        lk__list_append(&list, &letters[i].link);
    for (struct lk__link *l = lk__list_first(&list); l != NULL; l = next) {
        next = lk__list_next(&list, l);
        if (strchr("ace", LK__CONTAINER(l, struct letter, link)->name) != NULL)
            lk__list_remove(l);
    }
    assert_string_equal(read_out(&list), "bd");
    while ((next = lk__list_first(&list)) != NULL)
        lk__list_remove(next);
    assert_string_equal(read_out(&list), "");
}

int main(void)
{
    return plain_run(links_stay_in_the_order_of_arrival, a_link_leaves_from_any_place_and_may_come_back,
                     removing_what_is_in_no_list_is_harmless, a_list_can_be_emptied_while_it_is_walked);
}
