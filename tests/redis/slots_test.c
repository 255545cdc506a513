/* SPDX-License-Identifier: MIT */
/*
 * slots_test.c - the slot of a key, and what a node of a cluster says of all
 *
 * labels: memory
 */
#include "assert_lk.h"
#include "redis/cluster.h"

#include <string.h>

static void slots_of_keys(void **state)
{
    static const struct {
        const char *key;
        unsigned slot;
    } table[] = {
        { "123456789", 0x31c3 % LK__SLOTS },
        { "", 0 },
        { "foo", 12182 },
        { "{foo}", 12182 },
        { "latchkey:queue:mutex:{foo}", 12182 },
        { "latchkey:queue:mutex::bar{foo}", 12182 },
        { "{foo}{bar}", 12182 },
        { "x}{foo}", 12182 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (lk__slot_of(table[i].key, strlen(table[i].key)) != table[i].slot)
            fail_msg("%s: %u, not %u", table[i].key, lk__slot_of(table[i].key, strlen(table[i].key)), table[i].slot);
    assert_int_not_equal(12182, lk__slot_of("{}{foo}", 7)); /* an empty tag: all of it */
    assert_int_not_equal(12182, lk__slot_of("{foo", 4));
}

static void a_map_is_read(void **state)
{
    const char *text =
        "07c3 127.0.0.1:30004@31004,hostname4 slave e7d1 0 1426238317239 4 connected\n"
        "67ed 10.0.0.2:30002@31002,,shard-id=ab master - 0 1426238316232 2 connected 5461-5463 7 [9-<-292f] 8-6 16384\n"
        "292f ::1:30003@31003,db.example master,fail - 0 1426238318243 3 disconnected 10923-10924\n"
        "6ec2 :0@0 master,noaddr - 0 0 6 disconnected 1-2\n"
        "824f :30005@31005 myself,master - 0 1426238317741 5 connected\n"
        "nonsense\n"
        "e7d1 10.0.0.9:99999@1 master - 0 0 1 connected 0-1";
    struct lk__told told;
    unsigned first, last;
    (void)state;
    assert_true(lk__told_next(&text, &told));
    assert_true(told.replica && !told.failed && told.port == 30004);
    assert_string_equal("hostname4", told.name);
    assert_false(lk__told_slots(&told, &first, &last));
    assert_true(lk__told_next(&text, &told));
    assert_false(told.replica);
    assert_string_equal("10.0.0.2", told.host);
    assert_string_equal("", told.name);
    assert_int_equal(30002, told.port);
    assert_true(lk__told_slots(&told, &first, &last) && first == 5461 && last == 5463);
    assert_true(lk__told_slots(&told, &first, &last) && first == 7 && last == 7);
    assert_false(lk__told_slots(&told, &first, &last));
    assert_true(lk__told_next(&text, &told));
    assert_string_equal("::1", told.host);
    assert_string_equal("db.example", told.name);
    assert_true(told.failed);
    assert_true(lk__told_slots(&told, &first, &last) && first == 10923 && last == 10924);
    assert_true(lk__told_next(&text, &told));
    assert_true(told.myself && told.host[0] == '\0' && told.port == 30005);
    assert_false(lk__told_slots(&told, &first, &last));
    assert_false(lk__told_next(&text, &told));
}

static void redirections_are_read(void **state)
{
    unsigned slot;
    char host[256];
    int port;
    (void)state;
    assert_true(lk__told_redirect("MOVED 3999 127.0.0.1:6381", &slot, host, &port));
    assert_true(slot == 3999 && port == 6381 && strcmp(host, "127.0.0.1") == 0);
    assert_true(lk__told_redirect("ASK 16383 ::1:1", &slot, host, &port));
    assert_true(slot == 16383 && port == 1 && strcmp(host, "::1") == 0);
    assert_true(lk__told_redirect("MOVED 0 :7000", &slot, host, &port) && host[0] == '\0');
    static const char *const flaws[] = { "MOVED",       "MOVED 1",    "MOVED x a:1", "MOVED 16384 a:1",
                                         "MOVED 1 a:0", "MOVED 1 a:", "MOVED 1 a",   "MOVED 1 a:65536" };
    for (size_t i = 0; i < sizeof flaws / sizeof *flaws; i++)
        if (lk__told_redirect(flaws[i], &slot, host, &port))
            fail_msg("taken: %s", flaws[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(slots_of_keys), cmocka_unit_test(a_map_is_read),
                                        cmocka_unit_test(redirections_are_read) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
