/* SPDX-License-Identifier: MIT */
/*
 * hostile_replies_test.c - answers to a walk and to a question for holders that make no sense: the caller is told, and
 * stands where it stood
 *
 * labels: memory
 */
#include "fake_server.h"

#include <string.h>

/* What our script says before what it found; and at the end of a walk, so that whoever believes it does not ask on. */
#define FOUND(hidden, keys, cursor) "*7\r\n:4\r\n:1700000000000000\r\n:#\r\n" cursor hidden keys
#define WELL FOUND(":0\r\n", ":3\r\n", "$1\r\n0\r\n")
#define OBJECT "1 2 1 0 900 5 -1 -1 -1 7 5 1 a:1:1x" /* a mutex of the name x */

static const char *const nonsense[] = {
    "hello\r\n",
    "+OK\r\n",
    "$-1\r\n",
    "*0\r\n",
    "*1073741824\r\n",
    "*3\r\n:4\r\n:1700000000000000\r\n:#\r\n",
    "*7\r\n:99\r\n:1700000000000000\r\n:#\r\n$1\r\n5\r\n:0\r\n:3\r\n$0\r\n\r\n",   /* no such outcome */
    "*7\r\n:4\r\n:1700000000000000\r\n:0\r\n$1\r\n5\r\n:0\r\n:3\r\n$0\r\n\r\n",    /* of another request */
    "*7\r\n:4\r\n:1700000000000000\r\n:#\r\n:5\r\n:0\r\n:3\r\n$0\r\n\r\n",         /* a cursor that is no text */
    FOUND(":0\r\n", ":3\r\n", "$24\r\n123456789012345678901234\r\n") "$0\r\n\r\n", /* one that is too long */
    FOUND("$1\r\n0\r\n", ":3\r\n", "$1\r\n5\r\n") "$0\r\n\r\n",                    /* a text for a number */
    WELL ":0\r\n",
    WELL "$5\r\nhello\r\n",
    WELL "$3\r\n1 2\r\n",
    WELL "$34\r\n1 2 1 0 900 5 -1 -1 -1 7 99 1 a:1:\r\n", /* names that go on behind the end */
    WELL "$34\r\n1 2 1 0 900 5 -1 -1 -1 7 -5 9 a:1:\r\n",
    WELL "$45\r\n1 2 1 0 900 5 -1 -1 -1 7 9223372036854775807 \r\n",
    WELL "$39\r\n" OBJECT "1 2 \r\n", /* one that is good, and then half of one */
};
enum { NONSENSE = sizeof nonsense / sizeof *nonsense };

static void a_walk_stands_where_it_stood(struct world *w)
{
    struct fake *f = fake_begin(w);
    lk_inspectstats_t stats = LK_INSPECTSTATS_INIT;
    lk_inspected_t object = LK_INSPECTED_INIT;
    lk_inspect_t *walk;
    lk_client_t *client = fake_client(f, "connect_timeout=10s");
    assert_lk(0, lk_inspect_open(&walk, client, NULL));
    for (int i = 0; i < NONSENSE; i++) {
        strcpy(object.name, "as it was");
        fake_answer(f, "EVALSHA", nonsense[i]);
        print_message("%.60s\n", nonsense[i]);
        assert_lk(EPROTO, lk_inspect_next(walk, &object));
        assert_string_equal("as it was", object.name);
        assert_lk(0, lk_inspect_stats(walk, &stats));
        assert_true(stats.keys == 0 && stats.hidden == 0 && stats.servers == 1);
    }
    fake_answer(f, "EVALSHA", FOUND(":2\r\n", ":3\r\n", "$1\r\n0\r\n") "$35\r\n" OBJECT "\r\n");
    assert_lk(0, lk_inspect_next(walk, &object));
    assert_string_equal("x", object.name);
    assert_string_equal("a:1:1", object.holder);
    assert_lk(ENOENT, lk_inspect_next(walk, &object));
    assert_lk(0, lk_inspect_stats(walk, &stats));
    assert_true(stats.keys == 3 && stats.hidden == 2);
    lk_inspect_close(walk);
}

#define HOLDERS "\r\n:4\r\n:1700000000000000\r\n:#\r\n"

static void a_list_is_what_it_was(struct world *w)
{
    static const char *const lists[] = { "hello\r\n", "*0\r\n", "*3" HOLDERS, "*4" HOLDERS "$1\r\n1\r\n",
                                         "*5" HOLDERS ":1\r\n:1\r\n" };
    struct fake *f = fake_begin(w);
    lk_holder_t holders[2];
    unsigned count = 77;
    lk_client_t *client = fake_client(f, "connect_timeout=10s");
    memset(holders, 0x5a, sizeof holders);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        fake_answer(f, "EVALSHA", lists[i]);
        print_message("%s\n", lists[i]);
        assert_lk(EPROTO, lk_inspect_holders(client, LK_KIND_RWLOCK, "x", holders, sizeof *holders, 2, &count));
        assert_int_equal(77, count);
    }
    char long_id[512] = "*5" HOLDERS ":2\r\n$200\r\n900 ";
    size_t length = strlen(long_id);
    memset(long_id + length, 'a', 196);
    strcpy(long_id + length + 196, "\r\n");
    fake_answer(f, "EVALSHA", long_id);
    assert_lk(0, lk_inspect_holders(client, LK_KIND_RWLOCK, "x", holders, sizeof *holders, 1, &count));
    assert_int_equal(159, strlen(holders[0].id)); /* cut to fit */
    assert_same(900, holders[0].remaining_ms);
    assert_int_equal(0x5a, (unsigned char)holders[1].id[0]);
}

int main(void)
{
    return world_run(a_walk_stands_where_it_stood, a_list_is_what_it_was);
}
