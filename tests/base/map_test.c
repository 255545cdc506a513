/* SPDX-License-Identifier: MIT */
/*
 * map_test.c - what was put under a kind and a name is found under exactly these
 *
 * labels: memory
 */
#include "assert_lk.h"
#include "base/base.h"

#include <stdio.h>
#include <string.h>

enum { MANY = 100000 }; /* the table has grown some ten times */

struct thing {
    struct lk__entry entry;
    char key[16];
    int visits;
};

static struct thing things[MANY];
static struct lk__map map;

static void put(struct thing *thing, int kind, const char *key, size_t length)
{
    memcpy(thing->key, key, length);
    thing->entry = (struct lk__entry){ NULL, thing->key, length, kind };
    lk__map_insert(&map, &thing->entry);
}

static int empty_map(void **state)
{
    (void)state;
    lk__free(map.many);
    memset(&map, 0, sizeof map);
    memset(things, 0, sizeof things);
    return 0;
}

static void put_many(void)
{
    for (int i = 0; i < MANY; i++) {
        char key[16];
        int length = snprintf(key, sizeof key, "name-%d", i);
        put(&things[i], i % 3, key, (size_t)length);
    }
}

static struct lk__entry *find(int kind, const char *key)
{
    return lk__map_find(&map, kind, key, strlen(key));
}

static void nothing_is_found_in_an_empty_map(void)
{
    assert_null(find(0, ""));
    assert_null(find(1, "orders"));
    assert_int_equal(map.count, 0);
}

/* The same name is a mutex and a latch without the two meeting. */
static void a_kind_and_a_name_are_one_key(void)
{
    put(&things[0], 1, "orders", 6);
    put(&things[1], 2, "orders", 6);
    assert_ptr_equal(find(1, "orders"), &things[0].entry);
    assert_ptr_equal(find(2, "orders"), &things[1].entry);
    assert_null(find(3, "orders"));
    assert_null(find(0, "orders"));
    lk__map_remove(&map, &things[0].entry);
    assert_null(find(1, "orders"));
    assert_ptr_equal(find(2, "orders"), &things[1].entry);
}

/* Names are bytes with a length: a part of one, or one that goes on behind a NUL, is another. */
static void each_byte_of_a_name_counts(void)
{
    static const struct {
        const char *key;
        size_t length;
    } table[] = { { "a", 1 }, { "a\0", 2 }, { "a\0b", 3 }, { "a\0c", 3 },
                  { "", 0 },  { "\0", 1 },  { "A", 1 },    { "\xff", 1 } };
    enum { COUNT = sizeof table / sizeof *table };
    for (size_t i = 0; i < COUNT; i++) {
        assert_null(lk__map_find(&map, 1, table[i].key, table[i].length));
        put(&things[i], 1, table[i].key, table[i].length);
    }
    for (size_t i = 0; i < COUNT; i++)
        assert_ptr_equal(lk__map_find(&map, 1, table[i].key, table[i].length), &things[i].entry);
    assert_int_equal(map.count, COUNT);
}

static void many_more_names_than_buckets_are_all_found(void)
{
    put_many();
    assert_int_equal(map.count, MANY);
    for (int i = 0; i < MANY; i++)
        assert_ptr_equal(find(i % 3, things[i].key), &things[i].entry);
    for (int i = 0; i < MANY; i += 2)
        lk__map_remove(&map, &things[i].entry);
    assert_int_equal(map.count, MANY / 2);
    for (int i = 0; i < MANY; i++)
        assert_ptr_equal(find(i % 3, things[i].key), i % 2 == 0 ? NULL : &things[i].entry);
}

/* A table that did not grow would have thousands to a bucket. */
static void no_chain_gets_long(void)
{
    size_t longest = 0;
    put_many();
    assert_non_null(map.many);
    for (size_t i = 0; i < map.capacity; i++) {
        size_t length = 0;
        for (const struct lk__entry *entry = map.many[i]; entry != NULL; entry = entry->next)
            length++;
        longest = length > longest ? length : longest;
    }
    assert_in_range(longest, 1, 40);
}

static void removing_what_is_not_there_is_harmless(void)
{
    put(&things[0], 1, "orders", 6);
    put(&things[1], 1, "orders", 6); /* never mind that two have one key: it is the entry that is removed */
    lk__map_remove(&map, &things[1].entry);
    lk__map_remove(&map, &things[1].entry);
    assert_int_equal(map.count, 1);
    assert_ptr_equal(find(1, "orders"), &things[0].entry);
}

static void count_visit(struct lk__entry *entry, void *arg)
{
    LK__CONTAINER(entry, struct thing, entry)->visits++;
    ++*(int *)arg;
}

static void remove_visited(struct lk__entry *entry, void *arg)
{
    count_visit(entry, arg);
    lk__map_remove(&map, entry);
    memset(entry, 0xee, sizeof *entry); /* as if it were freed */
}

static void each_entry_is_visited_once(void)
{
    int visits = 0;
    put_many();
    lk__map_each(&map, count_visit, &visits);
    assert_int_equal(visits, MANY);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(things[i].visits, 1);
}

static void a_visited_entry_may_be_removed_and_freed(void)
{
    int visits = 0;
    put_many();
    lk__map_each(&map, remove_visited, &visits);
    assert_int_equal(visits, MANY);
    assert_int_equal(map.count, 0);
    lk__map_each(&map, count_visit, &visits);
    assert_int_equal(visits, MANY);
}

int main(void)
{
    int rc = plain_run_with(empty_map, nothing_is_found_in_an_empty_map, a_kind_and_a_name_are_one_key,
                            each_byte_of_a_name_counts, many_more_names_than_buckets_are_all_found, no_chain_gets_long,
                            removing_what_is_not_there_is_harmless, each_entry_is_visited_once,
                            a_visited_entry_may_be_removed_and_freed);
    empty_map(NULL);
    return rc;
}
