/* SPDX-License-Identifier: MIT */
/*
 * names_test.c - which names are allowed, and that none of them meet
 *
 * labels: memory
 */
#include "world.h"

#include <string.h>

static char longest[LK_NAME_MAX + 1], too_long[LK_NAME_MAX + 2];

static const char *const refused[] = {
    "",          "{}",
    "a{}",       "{}a",
    "{",         "}",
    "a{b",       "a}b",
    "{a",        "a}",
    "}{",        "{a}{b}",
    "{a}b}",     "{a{b}",
    "{{a}}",     "a{b}c{d}",
    "latchkey:", "latchkey:queue:mutex:{a}",
    "redisson_", "redisson_lock_token:{a}",
    too_long,
};

static const char *const fine[] = {
    "a",    "{a}",   "a{b}", "{a}b", "a{b}c", "{a:b}",    "latchkey", "redisson",      "xlatchkey:", " ",     "a b",
    "a\nb", "a\r\n", "*",    "a?b",  "[a]",   "\xc3\xa4", "\xff\xfe", "queue:mutex:a", ":{a}",       longest,
};
enum { REFUSED = sizeof refused / sizeof refused[0], FINE = sizeof fine / sizeof fine[0] };

static void fill_long_names(void)
{
    memset(longest, 'x', sizeof longest - 1);
    memset(too_long, 'x', sizeof too_long - 1);
}

/* A name that would mix keys of different objects never reaches the server. */
static void bad_names_are_refused_before_anything_is_sent(struct world *w)
{
    lk_client_t *client = world_client(w, "");
    lk_mutex_t m;
    fill_long_names();
    int64_t commands = world_counter(w, "total_commands_processed");
    for (int i = 0; i < REFUSED; i++) {
        assert_lk(EINVAL, lk_mutex_init(&m, client, refused[i], NULL));
        assert_true(lk_errortext()[0] != 0);
        assert_lk(EINVAL, lk_mutex_init(&m, NULL, refused[i], NULL)); /* needs no server to know */
    }
    assert_lk(EINVAL, lk_mutex_init(&m, client, NULL, NULL));
    assert_lk(EINVAL, lk_mutex_init(NULL, client, "a", NULL));
    assert_int_equal(commands + 1, world_counter(w, "total_commands_processed")); /* INFO itself */
}

/* A static mutex with such a name says so at its first use. */
static void a_static_mutex_with_a_bad_name_never_locks(struct world *w)
{
    lk_mutex_t m = LK_MUTEX_INITIALIZER("a{b"), nameless = LK_MUTEX_INITIALIZER(NULL);
    use_default(world_url(w, ""));
    assert_lk(EINVAL, lk_mutex_lock(&m));
    assert_lk(EINVAL, lk_mutex_trylock(&m));
    assert_lk(EINVAL, lk_mutex_lock(&nameless));
    close_default();
}

/* All at once, each held: no two of them share a key that matters, and each is what the user called it. */
static void good_names_are_all_different_mutexes(struct world *w)
{
    lk_client_t *client = world_client(w, ""), *other = world_client(w, "");
    static lk_mutex_t *mutexes[FINE], *again[FINE];
    uint64_t tokens[FINE];
    fill_long_names();
    for (int i = 0; i < FINE; i++) {
        mutexes[i] = world_mutex(w, client, fine[i], NULL);
        again[i] = world_mutex(w, other, fine[i], NULL);
        assert_lk(0, lk_mutex_trylock(mutexes[i]));
        assert_lk(0, lk_mutex_token(mutexes[i], &tokens[i]));
        assert_string_equal("hash", world_str(w, "TYPE %b", fine[i], strlen(fine[i])));
    }
    for (int i = 0; i < FINE; i++) {
        lk_mutexinfo_t info = LK_MUTEXINFO_INIT;
        assert_lk(EBUSY, lk_mutex_trylock(again[i]));
        assert_lk(ETIMEDOUT, lk_mutex_lockfor(again[i], 2)); /* makes the queue's keys */
        assert_lk(0, lk_mutex_info(again[i], &info));
        assert_int_equal(1, info.holds);
        assert_int_equal(0, info.waiters);
        assert_true(info.token >= tokens[i]); /* "a" and "{a}" share Redisson's counter, and nothing else */
        assert_lk(0, lk_mutex_unlock(mutexes[i]));
        world_close(w, mutexes[i]);
        world_close(w, again[i]);
    }
}

/* A client's prefix is part of the name: it counts for the length, and keeps teams apart. */
static void a_prefix_is_part_of_the_name(struct world *w)
{
    lk_client_t *client = world_client(w, "prefix=team-a:");
    lk_mutex_t m;
    fill_long_names();
    assert_lk(EINVAL, lk_mutex_init(&m, client, longest, NULL));
    assert_lk(0, lk_mutex_init(&m, client, "latchkey:is-fine-here", NULL));
    assert_lk(0, lk_mutex_lock(&m));
    assert_int_equal(1, world_holds(w, "team-a:latchkey:is-fine-here"));
    assert_lk(0, lk_mutex_unlock(&m));
    assert_lk(0, lk_mutex_destroy(&m));
}

/* The name is copied: the caller's memory may go. */
static void the_name_is_copied(struct world *w)
{
    lk_client_t *client = world_client(w, "");
    char name[] = "orders";
    lk_mutex_t m;
    assert_lk(0, lk_mutex_init(&m, client, name, NULL));
    memset(name, 'x', sizeof name - 1);
    assert_lk(0, lk_mutex_lock(&m));
    assert_int_equal(1, world_holds(w, "orders"));
    assert_lk(0, lk_mutex_unlock(&m));
    assert_lk(0, lk_mutex_destroy(&m));
}

int main(void)
{
    return world_run(bad_names_are_refused_before_anything_is_sent, a_static_mutex_with_a_bad_name_never_locks,
                     good_names_are_all_different_mutexes, a_prefix_is_part_of_the_name, the_name_is_copied);
}
