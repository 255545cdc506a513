/* SPDX-License-Identifier: MIT */
/*
 * epoch_test.c - a node's epoch rises when a connection finds another server, or the same one started anew
 */
#include "assert_lk.h"
#include "redis/redis.h"

#include <netinet/in.h>
#include <string.h>

static struct lk__identity at_port(int port, const char *run_id)
{
    struct lk__identity identity = { .address_size = sizeof(struct sockaddr_in) };
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = (in_port_t)port };
    memcpy(&identity.address, &address, sizeof address);
    strcpy(identity.run_id, run_id);
    return identity;
}

/* What a row of connections finds, one after the other, and the epochs that they belong to. */
static void epochs_by_what_is_found(void)
{
    static const struct {
        const char *what;
        int port;
        const char *run_id;
        bool demoted; /* before */
        unsigned epoch;
    } table[] = {
        { "the first server", 1, "a", false, 1 },
        { "the same one, by another lane", 1, "a", false, 1 },
        { "it does not tell who it is", 1, "", false, 1 },
        { "it tells again", 1, "a", false, 1 },
        { "it was started anew", 1, "b", false, 2 },
        { "it is at another address", 2, "b", false, 3 },
        { "another one is there", 2, "c", false, 4 },
        { "back at the first address", 1, "b", false, 5 },
        { "it was a replica for a while", 1, "b", true, 6 },
        { "and is none any more", 1, "b", false, 6 },
        { "nobody knows who answers elsewhere", 3, "", false, 7 },
        { "it tells: nothing says that it is another one", 3, "d", false, 7 },
        { "and then another one", 3, "e", false, 8 },
    };
    struct lk__server server = { 0 };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct lk__identity found = at_port(table[i].port, table[i].run_id);
        server.demoted = table[i].demoted;
        unsigned epoch = lk__server_meet(&server, &found);
        if (epoch != table[i].epoch)
            fail_msg("%s: epoch %u, not %u", table[i].what, epoch, table[i].epoch);
    }
}

/* An address that is not known makes no other server of it. */
static void unknown_address(void)
{
    struct lk__server server = { 0 };
    struct lk__identity found = at_port(1, "a"), nowhere = { .run_id = "a" };
    assert_int_equal(1, lk__server_meet(&server, &found));
    assert_int_equal(1, lk__server_meet(&server, &nowhere));
    assert_int_equal(1, lk__server_meet(&server, &found));
}

/* What the one of before told of itself is not that of whoever is at the next address. */
static void who_left_takes_along_what_it_told(void)
{
    struct lk__server server = { .told = lk__alloc(sizeof *server.told) };
    struct lk__identity found = at_port(1, "a"), other = at_port(2, "b");
    assert_non_null(server.told);
    assert_int_equal(1, lk__server_meet(&server, &found));
    assert_non_null(server.told);
    lk__server_leave(&server);
    assert_null(server.told);
    assert_int_equal(2, lk__server_meet(&server, &other));
}

/* By the server's clock while it is the same one; by ours when it is another one, whatever that shows. */
static void until_is_over(void)
{
    static const struct {
        const char *what;
        struct lk__until until;
        struct lk__date date;
        int64_t now_us;
        bool over;
    } table[] = {
        { "nothing is awaited", { { 0, 1 }, 0 }, { 5, 1 }, 0, true },
        { "the server is before it", { { 100, 1 }, 50 }, { 99, 1 }, 70, false },
        { "the server is at it", { { 100, 1 }, 50 }, { 100, 1 }, 70, false },
        { "the server is past it", { { 100, 1 }, 50 }, { 101, 1 }, 40, true },
        { "another server's clock is ahead", { { 100, 1 }, 50 }, { 1000, 2 }, 50, false },
        { "another server, and its time is over here", { { 100, 1 }, 50 }, { 99, 2 }, 51, true },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (lk__until_isover(&table[i].until, table[i].date, table[i].now_us) != table[i].over)
            fail_msg("%s", table[i].what);
}

int main(void)
{
    return plain_run(epochs_by_what_is_found, unknown_address, who_left_takes_along_what_it_told, until_is_over);
}
