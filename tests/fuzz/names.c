/* SPDX-License-Identifier: MIT */
/*
 * names.c - two names: those refused are exactly those of the rules; the others share no key with each other
 *
 * The first two bytes say where the first name ends.
 */
#include "fuzz.h"
#include "object/keys.h"

static const char *const prefixes[] = {
    "latchkey:queue:mutex", "latchkey:queue:readers", "latchkey:queue:writers", "latchkey:queue:sem",
    "latchkey:queue:permits", "latchkey:alive:mutex", "latchkey:alive:rw", "latchkey:alive:sem",
    "latchkey:alive:permits", "latchkey:total:sem", "latchkey:users:sem", "latchkey:users:permits",
    "latchkey:robust:mutex", "latchkey:robust:rw", "latchkey:rw", "latchkey:permits", "latchkey:total",
    "latchkey:claims", "latchkey:once", "latchkey:opened", "latchkey:settings:mutex", "latchkey:settings:rw",
    "latchkey:settings:sem", "latchkey:queue:cond", "latchkey:alive:cond", "latchkey:moved:cond", "latchkey:cond",
    "latchkey:barrier", "latchkey:parties", "latchkey:past", "latchkey:run", "latchkey:done",
};
static const char *const javas[] = { "redisson_lock_token", "redisson_lock__channel", "redisson_sc" };

enum {
    OURS = sizeof prefixes / sizeof *prefixes,
    JAVAS = sizeof javas / sizeof *javas,
    KEYS = 1 + OURS + JAVAS, /* the name itself is one */
};

struct key {
    char text[LK__KEY_MAX];
    size_t length;
};

/* The rules once more, as keys.h states them, in other words than keys.c. */
static bool is_good(const char *name, size_t length)
{
    size_t opened = 0, closed = 0, opening = 0, closing = 0;
    for (size_t i = 0; i < length; i++) {
        if (name[i] == '\0')
            return false;
        if (name[i] == '{')
            opened++, opening = i;
        if (name[i] == '}')
            closed++, closing = i;
    }
    if (length < 1 || length > LK_NAME_MAX)
        return false;
    if ((length >= 9 && memcmp(name, "latchkey:", 9) == 0) || (length >= 9 && memcmp(name, "redisson_", 9) == 0))
        return false;
    return (opened == 0 && closed == 0) || (opened == 1 && closed == 1 && opening + 1 < closing);
}

static bool judged(const char *name, size_t length)
{
    bool good = is_good(name, length);
    int rc = lk__name_check(name, length);
    require(rc == (good ? 0 : EINVAL));
    require((lk__name_flaw(name, length) == NULL) == good);
    require(good || is_one_line(lk_errortext()));
    return good;
}

static void make_keys(struct key keys[KEYS], const char *name)
{
    keys->length = strlen(name);
    memcpy(keys->text, name, keys->length + 1);
    for (int i = 0; i < OURS; i++)
        keys[1 + i].length = lk__key_ours(keys[1 + i].text, prefixes[i], name);
    for (int i = 0; i < JAVAS; i++)
        keys[1 + OURS + i].length = lk__key_redisson(keys[1 + OURS + i].text, javas[i], name);
    for (int i = 0; i < KEYS; i++)
        require(keys[i].length == strlen(keys[i].text) && keys[i].length < LK__KEY_MAX);
}

/* What a cluster hashes of a key: from the first '{' to the first '}' behind it, unless that is nothing. */
static const char *slot_of(const struct key *key, size_t *length)
{
    const char *opening = strchr(key->text, '{');
    const char *closing = opening != NULL ? strchr(opening, '}') : NULL;
    bool tagged = closing != NULL && closing > opening + 1;
    *length = tagged ? (size_t)(closing - opening) - 1 : key->length;
    return tagged ? opening + 1 : key->text;
}

static void check_slots(const struct key keys[KEYS])
{
    size_t length, other;
    const char *slot = slot_of(&keys[0], &length);
    for (int i = 1; i < KEYS; i++) {
        const char *its = slot_of(&keys[i], &other);
        require(other == length && memcmp(slot, its, length) == 0);
    }
}

/* Keys of one name differ from each other; those of two names differ too, but for what Redisson's rule joins. */
static void check_apart(const struct key mine[KEYS], const struct key yours[KEYS], bool same_name)
{
    for (int i = 0; i < KEYS; i++)
        for (int j = 0; j < KEYS; j++) {
            bool equal = mine[i].length == yours[j].length && memcmp(mine[i].text, yours[j].text, mine[i].length) == 0;
            bool javas_rule = i == j && i > OURS;
            require(!equal || javas_rule || (same_name && i == j));
        }
}

static void print_name(const char *name, size_t length)
{
    char text[32];
    for (size_t size = 1; size <= sizeof text; size += 31) {
        lk__name_print(text, size, name, length);
        require(strlen(text) == (length < size ? length : size - 1) && is_one_line(text));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct key mine[KEYS], yours[KEYS];
    struct input input = { bytes, size };
    size_t first = take_number(&input, 2);
    first %= input.left + 1;
    size_t second = input.left - first;
    char *a = text_of(input.at, first), *b = text_of(input.at + first, second);
    print_name(a, first);
    print_name(b, second);
    bool good_a = judged(a, first), good_b = judged(b, second);
    if (good_a) {
        make_keys(mine, a);
        check_slots(mine);
        check_apart(mine, mine, true);
    }
    if (good_a && good_b) {
        make_keys(yours, b);
        check_apart(mine, yours, strcmp(a, b) == 0);
    }
    free(a);
    free(b);
    return 0;
}
