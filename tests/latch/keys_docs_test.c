/* SPDX-License-Identifier: MIT */
/*
 * keys_docs_test.c - docs/keys.md describes what a latch really leaves in Redis
 *
 * labels: memory
 */
#include "page.h"

#include <regex.h>

static struct page page;

static void compare(struct world *w)
{
    page_compare(w, &page, NULL);
}

static void matches(const char *pattern, const char *text)
{
    regex_t regex;
    assert_int_equal(0, regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB));
    if (regexec(&regex, text, 0, NULL, 0) != 0)
        fail_msg("\"%s\" is not of the form %s", text, pattern);
    regfree(&regex);
}

/* All that is there after each operation is in the table, and all in the table was there. */
static void the_table_of_keys_is_right(struct world *w)
{
    page_read(&page, "a countdown latch", "gate", 0);
    lk_latch_t *gate = world_latch(w, world_client(w, ""), "gate");
    assert_lk(0, lk_latch_trysetcount(gate, 2));
    compare(w);
    assert_lk(ETIMEDOUT, lk_latch_waitfor(gate, 20));
    assert_lk(0, lk_latch_countdown(gate));
    compare(w);
    assert_string_equal("1", world_str(w, "GET gate"));
    assert_lk(0, lk_latch_countdown(gate));
    compare(w);
    matches("^opened [0-9]{16}$", world_str(w, "GET latchkey:opened:{gate}"));
    assert_lk(0, lk_latch_wait(gate));
    assert_lk(0, lk_latch_trysetcount(gate, 2));
    compare(w);
    matches("^opened [0-9]{16} set$", world_str(w, "GET latchkey:opened:{gate}"));
    assert_lk(0, lk_latch_delete(gate));
    compare(w);
    matches("^deleted [0-9]{16}$", world_str(w, "GET latchkey:opened:{gate}"));
    assert_lk(0, lk_latch_setcount(gate, 2));
    assert_lk(0, lk_latch_countdownby(gate, 2));
    assert_lk(0, lk_latch_delete(gate)); /* open */
    compare(w);
    matches("^opened [0-9]{16} set$", world_str(w, "GET latchkey:opened:{gate}"));
    assert_int_equal(1, world_elements(w, "HKEYS latchkey:once:{gate}"));
    const char *once = "return redis.call('HKEYS', KEYS[1])[1] .. ' ' .. redis.call('HVALS', KEYS[1])[1]";
    matches("^[0-9a-f]{32}:l[0-9]+x[0-9]+ [0-9]+ 1 [0-9]+$", world_str(w, "EVAL %s 1 latchkey:once:{gate}", once));
    page_was_seen(&page); /* latch/anonymous looks at the others */
}

/* The serial of each end is larger than the one before, whatever the clock does. */
static void serials_grow(struct world *w)
{
    lk_latch_t *gate = world_latch(w, world_client(w, ""), "gate");
    world_redis(w, "SET latchkey:opened:{gate} %s PX 600000", "opened 4000000000000000");
    assert_lk(0, lk_latch_trysetcount(gate, 1));
    assert_string_equal("opened 4000000000000000 set", world_str(w, "GET latchkey:opened:{gate}"));
    assert_lk(0, lk_latch_countdown(gate));
    assert_string_equal("opened 4000000000000001", world_str(w, "GET latchkey:opened:{gate}"));
    assert_lk(0, lk_latch_trysetcount(gate, 1));
    assert_lk(0, lk_latch_delete(gate));
    assert_string_equal("deleted 4000000000000002", world_str(w, "GET latchkey:opened:{gate}"));
}

int main(void)
{
    return world_run(the_table_of_keys_is_right, serials_grow);
}
