/* SPDX-License-Identifier: MIT */
/*
 * keys_test.c - no two objects share a key, whatever their names, and all keys of one object share a slot
 *
 * labels: memory
 */
#include "assert_lk.h"
#include "object/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- names ---------------------------------------------------------------------------------------------- */

static const char *const allowed[] = { "a",
                                       "{a}",
                                       ":a",
                                       "::a",
                                       ":::a",
                                       "a:",
                                       ":",
                                       "::",
                                       "{:a}",
                                       "{a}:b",
                                       "a:{b}",
                                       ":{a}",
                                       "::{a}",
                                       "x{y}z",
                                       "orders 2024",
                                       "a b",
                                       " ",
                                       "\n",
                                       "a\r\nb",
                                       "{\r\n}",
                                       "\xff",
                                       "{\xff}\xfe",
                                       "\x01",
                                       "*",
                                       "a*",
                                       "[a]",
                                       "latchkey",
                                       "Latchkey:queue:mutex:{a}",
                                       " latchkey:rw:a",
                                       "rw:{a}",
                                       "mutex",
                                       "mutex:{a}",
                                       "rw",
                                       "queue:mutex::{a}",
                                       "redisson",
                                       "Redisson_lock_token:{a}" };

static const char *const refused[] = { "",
                                       "{",
                                       "}",
                                       "{}",
                                       "{}a",
                                       "a{}",
                                       "a{b",
                                       "a}b",
                                       "}a{",
                                       "a}b{c}",
                                       "{a}{b}",
                                       "{{a}}",
                                       "{a}}",
                                       "{{a}",
                                       "{a}b}",
                                       "{a}{",
                                       "x{y}z{",
                                       "a{{b}",
                                       "{}{a}",
                                       "latchkey:",
                                       "latchkey:x",
                                       "redisson_",
                                       "redisson_lock_token:{a}",
                                       "redisson_x" };

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void these_names_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(refused); i++) {
        assert_lk(EINVAL, lk__name_check(refused[i], strlen(refused[i])));
        assert_non_null(lk__name_flaw(refused[i], strlen(refused[i])));
    }
    assert_lk(EINVAL, lk__name_check("a\0b", 3));
    assert_lk(EINVAL, lk__name_check("\0", 1));
    assert_lk(EINVAL, lk__name_check("a", 2));
    assert_lk(EINVAL, lk__name_check("{a}", 2));
}

static void these_names_are_allowed(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(allowed); i++)
        assert_lk(0, lk__name_check(allowed[i], strlen(allowed[i])));
    assert_lk(0, lk__name_check("{a}b{c}", 4)); /* what stands behind it is not looked at */
    assert_lk(0, lk__name_check("{a}b}", 4));
    assert_lk(0, lk__name_check("redisson_", 8));
}

static void a_name_has_at_most_512_bytes(void **state)
{
    char name[LK_NAME_MAX + 2];
    (void)state;
    memset(name, 'n', sizeof name);
    name[LK_NAME_MAX + 1] = '\0';
    assert_lk(EINVAL, lk__name_check(name, LK_NAME_MAX + 1));
    name[LK_NAME_MAX] = '\0';
    assert_lk(0, lk__name_check(name, LK_NAME_MAX));
}

/* A name may come from anywhere; a log line must stay one line. */
static void words_quote_a_name_safely(void **state)
{
    char name[LK_NAME_MAX + 1], text[8];
    (void)state;
    assert_lk(EINVAL, lk__name_check("{a\r\n\x1b[31m\xff", 10));
    assert_string_equal(lk_errortext(), "the name \"{a???[31m?\" may have braces only as one {tag} that is not empty");
    memset(name, 'n', LK_NAME_MAX);
    name[LK_NAME_MAX] = '{';
    assert_lk(EINVAL, lk__name_check(name, LK_NAME_MAX + 1));
    assert_true(strlen(lk_errortext()) < 200);
    lk__name_print(text, sizeof text, "sevenchars", 7);
    assert_string_equal(text, "sevench");
    lk__name_print(text, sizeof text, "sevenchars", 10);
    assert_string_equal(text, "sevench");
    lk__name_print(text, 1, "sevenchars", 10);
    assert_string_equal(text, "");
}

/* --- keys ------------------------------------------------------------------------------------------------ */

static const char *const prefixes[] = {
    "latchkey:queue:mutex",
    "latchkey:queue:readers",
    "latchkey:queue:writers",
    "latchkey:queue:sem",
    "latchkey:queue:permits",
    "latchkey:alive:mutex",
    "latchkey:alive:rw",
    "latchkey:alive:sem",
    "latchkey:alive:permits",
    "latchkey:total:sem",
    "latchkey:users:sem",
    "latchkey:users:permits",
    "latchkey:robust:mutex",
    "latchkey:robust:rw",
    "latchkey:robust:sem",
    "latchkey:robust:permits",
    "latchkey:rw",
    "latchkey:permits",
    "latchkey:once",
    "latchkey:opened",
    "latchkey:settings:mutex",
    "latchkey:settings:rw",
    "latchkey:settings:sem",
    "latchkey:run",
    "latchkey:done",
    "latchkey:barrier",
    "latchkey:parties",
    "latchkey:past",
};

#define KEYS_OF_A_NAME (COUNT(prefixes) + 1) /* and NAME itself */

/* All names that are tried, none twice. */
struct names {
    char **list;
    size_t count, room;
};

static void add_name(struct names *names, const char *name)
{
    if (lk__name_flaw(name, strlen(name)) != NULL)
        return;
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->list[i], name) == 0)
            return;
    if (names->count == names->room) {
        names->room = names->room * 2 + 64;
        names->list = realloc(names->list, names->room * sizeof *names->list);
        assert_non_null(names->list);
    }
    names->list[names->count] = strdup(name);
    assert_non_null(names->list[names->count++]);
}

/* All texts of up to five of the characters that keys are made of: the most hostile there are. */
static void add_short_names(struct names *names)
{
    static const char letters[] = "a:{}";
    for (size_t length = 1; length <= 5; length++)
        for (size_t number = 0; number < (size_t)1 << (2 * length); number++) {
            char name[8] = "";
            for (size_t i = 0; i < length; i++)
                name[i] = letters[number >> (2 * i) & 3];
            add_name(names, name);
        }
}

/* Names that look like what stands behind a prefix, or like a longer prefix's rest. */
static void add_keys_as_names(struct names *names)
{
    static const char *const tails[] = { "", ":{a}", "::{a}", ":a", "::x{y}z", "{a}", ":{mutex}" };
    for (size_t i = 0; i < COUNT(prefixes); i++)
        for (const char *part = prefixes[i]; part != NULL; part = strchr(part + 1, ':'))
            for (size_t j = 0; j < COUNT(tails); j++) {
                char name[128];
                snprintf(name, sizeof name, "%s%s", part, tails[j]);
                add_name(names, name);
                snprintf(name, sizeof name, "%s%s", part + 1, tails[j]);
                add_name(names, name);
            }
}

/* As long as a name can be, with the tag in different places. */
static void add_long_names(struct names *names)
{
    static const struct {
        const char *head, *tail;
    } ends[] = { { "", "" }, { "{", "}" }, { ":", "" }, { "::", "" }, { "{x}", "" }, { "", "{x}" }, { "", ":" } };
    for (size_t i = 0; i < COUNT(ends); i++) {
        char name[LK_NAME_MAX + 1];
        size_t head = strlen(ends[i].head), tail = strlen(ends[i].tail);
        memset(name, 'n', LK_NAME_MAX);
        memcpy(name, ends[i].head, head);
        memcpy(name + LK_NAME_MAX - tail, ends[i].tail, tail + 1);
        assert_null(lk__name_flaw(name, LK_NAME_MAX));
        add_name(names, name);
    }
}

static int make_names(void **state)
{
    struct names *names = calloc(1, sizeof *names);
    assert_non_null(names);
    for (size_t i = 0; i < COUNT(allowed); i++)
        add_name(names, allowed[i]);
    add_short_names(names);
    add_keys_as_names(names);
    add_long_names(names);
    *state = names;
    return 0;
}

static int free_names(void **state)
{
    struct names *names = *state;
    for (size_t i = 0; i < names->count; i++)
        free(names->list[i]);
    free(names->list);
    free(names);
    return 0;
}

static void key_of(char key[LK__KEY_MAX], const char *name, size_t which)
{
    size_t length;
    if (which == COUNT(prefixes))
        length = (size_t)snprintf(key, LK__KEY_MAX, "%s", name);
    else
        length = lk__key_ours(key, prefixes[which], name);
    assert_int_equal(length, strlen(key));
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Two objects with one key would corrupt each other, or let one name's waiters starve the other's. */
static void no_two_keys_are_equal(void **state)
{
    const struct names *names = *state;
    size_t total = names->count * KEYS_OF_A_NAME;
    char **keys = calloc(total, sizeof *keys);
    assert_non_null(keys);
    assert_true(names->count > 300);
    for (size_t i = 0; i < total; i++) {
        char key[LK__KEY_MAX];
        key_of(key, names->list[i / KEYS_OF_A_NAME], i % KEYS_OF_A_NAME);
        keys[i] = strdup(key);
        assert_non_null(keys[i]);
    }
    qsort(keys, total, sizeof *keys, by_text);
    for (size_t i = 1; i < total; i++)
        if (strcmp(keys[i - 1], keys[i]) == 0)
            fail_msg("two keys are \"%s\"", keys[i]);
    for (size_t i = 0; i < total; i++)
        free(keys[i]);
    free(keys);
}

/* The slot of a key as Redis Cluster computes it: CRC16 (XMODEM) of the hash tag, or of all if there is none. */
static unsigned slot_of(const char *key)
{
    size_t length = strlen(key);
    const char *opening = strchr(key, '{'), *closing = opening != NULL ? strchr(opening, '}') : NULL;
    if (closing != NULL && closing > opening + 1) {
        key = opening + 1;
        length = (size_t)(closing - key);
    }
    unsigned crc = 0;
    for (size_t i = 0; i < length; i++) {
        crc ^= (unsigned)(unsigned char)key[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = ((crc << 1) ^ ((crc & 0x8000) != 0 ? 0x1021U : 0)) & 0xffff;
    }
    return crc % 16384;
}

/* A script may touch keys of one slot only. */
static void all_keys_of_an_object_share_a_slot(void **state)
{
    const struct names *names = *state;
    assert_int_equal(slot_of("123456789"), 0x31c3); /* the algorithm's own test value */
    assert_int_equal(slot_of("a{123456789}b"), 0x31c3);
    for (size_t i = 0; i < names->count; i++) {
        const char *name = names->list[i];
        char key[LK__KEY_MAX];
        for (size_t j = 0; j < COUNT(prefixes); j++) {
            key_of(key, name, j);
            if (slot_of(key) != slot_of(name))
                fail_msg("\"%s\" and \"%s\" are in two slots", name, key);
        }
        lk__key_redisson(key, "redisson_lock_token", name);
        if (slot_of(key) != slot_of(name))
            fail_msg("\"%s\" and \"%s\" are in two slots", name, key);
    }
}

static void keys_look_like_this(void **state)
{
    char key[LK__KEY_MAX];
    (void)state;
    assert_int_equal(lk__key_ours(key, "latchkey:queue:mutex", "orders"), 29);
    assert_string_equal(key, "latchkey:queue:mutex:{orders}");
    lk__key_ours(key, "latchkey:queue:mutex", "{shop}:orders");
    assert_string_equal(key, "latchkey:queue:mutex::{shop}:orders");
    assert_int_equal(lk__key_redisson(key, "redisson_lock_token", "orders"), 28);
    assert_string_equal(key, "redisson_lock_token:{orders}");
    lk__key_redisson(key, "redisson_lock_token", "{shop}:orders");
    assert_string_equal(key, "redisson_lock_token:{shop}:orders");
    lk__key_redisson(key, "redisson_lock__channel", "x{y}z");
    assert_string_equal(key, "redisson_lock__channel:x{y}z");
}

static void the_longest_key_fits(void **state)
{
    char name[LK_NAME_MAX + 1], key[LK__KEY_MAX];
    (void)state;
    memset(name, 'n', LK_NAME_MAX);
    name[LK_NAME_MAX] = '\0';
    for (size_t i = 0; i < COUNT(prefixes); i++)
        assert_int_equal(lk__key_ours(key, prefixes[i], name), strlen(prefixes[i]) + LK_NAME_MAX + 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(these_names_are_refused),      cmocka_unit_test(these_names_are_allowed),
        cmocka_unit_test(a_name_has_at_most_512_bytes), cmocka_unit_test(words_quote_a_name_safely),
        cmocka_unit_test(no_two_keys_are_equal),        cmocka_unit_test(all_keys_of_an_object_share_a_slot),
        cmocka_unit_test(keys_look_like_this),          cmocka_unit_test(the_longest_key_fits),
    };
    return cmocka_run_group_tests(tests, make_names, free_names);
}
