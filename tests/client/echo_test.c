/* SPDX-License-Identifier: MIT */
/*
 * echo_test.c - an error is believed when a number that was sent after it comes back in its place
 *
 * labels: memory
 */
#include "fake_server.h"
#include "log.h"

#include <stdio.h>
#include <string.h>

/* Each answer comes at once, so only a machine that stands still needs so long. */
#define OPTIONS "lease=20s&command_timeout=5s&connect_timeout=10s&retry_max=50ms"
/* Where no connection comes up any more all of it is used up. */
#define BRIEF "lease=20s&command_timeout=200ms&connect_timeout=10s&retry_max=50ms"

static const char refusal[] = "-NOPERM no permissions to access a key\r\n";

/* To what goes on behind a call whose outcome is unknown: it is back, and no copy of it is within its deadline. */
static const char done[] = "*3\r\n:4\r\n:4000000000000000\r\n:#\r\n";

static lk_client_t *client;
static lk_mutex_t orders;

static void open_orders(struct fake *f, const char *options)
{
    assert_lk(0, open_patiently(&client, fake_url(f, options)));
    assert_lk(0, lk_mutex_init(&orders, client, "orders", NULL));
}

static void close_orders(struct fake *f)
{
    fake_answer(f, "EVALSHA", done);
    assert_lk(EPERM, lk_mutex_unlock(&orders));
    assert_lk(0, lk_mutex_destroy(&orders));
    int code = lk_client_close(client);
    assert_true(code == 0 || code == EIO);
}

/* What the server says to scripts and to ECHO from now on, once a client is open; the code that this then has. */
static void refused(struct fake *f, const char *script, const char *echo, int code)
{
    int64_t asked;
    open_orders(f, OPTIONS);
    fake_answer(f, "EVALSHA", script);
    fake_answer(f, "ECHO", echo);
    asked = fake_asked(f, "ECHO");
    assert_lk(code, lk_mutex_trylock(&orders));
    assert_true(fake_asked(f, "ECHO") > asked);
    close_orders(f);
    fake_answer(f, "ECHO", FAKE_ECHO);
}

static void an_error_is_believed_when_its_number_comes_back(struct world *w)
{
    struct fake *f = fake_begin(w);
    refused(f, refusal, FAKE_ECHO, EACCES);
}

/* The refusal may be somebody else's: then nothing is known, and the connection is of no use any more. */
static void another_answer_ends_the_connection(struct world *w)
{
    static const char *const others[] = { "$20\r\n00000000000000000000\r\n", "+OK\r\n", ":1\r\n", "*2\r\n:1\r\n:1\r\n",
                                          "$-1\r\n" };
    struct fake *f = fake_begin(w);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        int64_t connections = fake_asked(f, "ROLE");
        print_message("%.20s\n", others[i]);
        open_orders(f, BRIEF);
        fake_answer(f, "EVALSHA", refusal);
        fake_answer(f, "ECHO", others[i]);
        int code = lk_mutex_trylock(&orders);
        assert_true(code == EPROTO || code == EIO);
        assert_true(lk_errorsettles() != 0);
        fake_answer(f, "ECHO", FAKE_ECHO);
        eventually(fake_asked(f, "ROLE") > connections + 1, 5000);
        close_orders(f);
    }
}

/* Another request's answer, or nobody's: what comes behind it would be so, too. */
static void an_answer_that_cannot_be_this_one_ends_the_connection(struct world *w)
{
    static const char *const others[] = { "+OK\r\n", "*2\r\n:1\r\n:1\r\n",
                                          "*4\r\n:1\r\n:1700000000000000\r\n+#\r\n:1\r\n",
                                          /* whole and in order, but the number is another request's */
                                          "*3\r\n:3\r\n:1700000000000000\r\n:0\r\n",
                                          "*3\r\n:3\r\n:1700000000000000\r\n:#0\r\n" };
    struct fake *f = fake_begin(w);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        open_orders(f, OPTIONS);
        int64_t connections = fake_asked(f, "ROLE");
        fake_answer(f, "EVALSHA", others[i]);
        assert_lk(EPROTO, lk_mutex_trylock(&orders));
        eventually(fake_asked(f, "ROLE") > connections + 1, 5000); /* the watchdog's is one, too */
        close_orders(f);
    }
}

/* A right that is taken away under a running client, and a server that refuses everything: no doubt is left. */
static void a_refusal_of_the_number_itself_is_as_good(struct world *w)
{
    struct fake *f = fake_begin(w);
    refused(f, refusal, "-NOPERM this user has no permissions to run the 'echo' command\r\n", EACCES);
    refused(f, "-NOAUTH Authentication required.\r\n", "-NOAUTH Authentication required.\r\n", EACCES);
}

/* The same stray line twice, in front of the request: the second error is no proof of the first. */
static void an_error_that_comes_twice_proves_nothing(struct world *w)
{
    static const char unknown[] = "-ERR unknown command 'hello', with args beginning with: \r\n";
    struct fake *f = fake_begin(w);
    refused(f, unknown, unknown, EPROTO);
}

/* Some servers know no ECHO. They are used as they are, and it is said once. */
static void a_server_without_echo_is_believed(struct world *w)
{
    struct fake *f = fake_begin(w);
    assert_lk(0, log_keep(LK_LOG_WARNING));
    fake_answer(f, "ECHO", "-ERR unknown command 'ECHO'\r\n");
    open_orders(f, OPTIONS);
    eventually(strstr(log_kept(), "ECHO") != NULL, 5000);
    fake_answer(f, "EVALSHA", refusal);
    assert_lk(EACCES, lk_mutex_trylock(&orders));
    eventually(fake_asked(f, "ROLE") == 2 && fake_asked(f, "ECHO") == 2, 5000); /* once for each connection */
    close_orders(f);
    assert_lk(0, log_to(NULL, LK_LOG_WARNING, NULL));
}

/* Nor does a connection come up whose first answers are out of their places. */
static void a_greeting_ends_with_a_number(struct world *w)
{
    struct fake *f = fake_begin(w);
    fake_answer(f, "ECHO", "$20\r\n00000000000000000000\r\n");
    assert_lk(EPROTO, lk_client_open(&client, fake_url(f, OPTIONS)));
}

int main(void)
{
    return world_run(an_error_is_believed_when_its_number_comes_back, another_answer_ends_the_connection,
                     an_answer_that_cannot_be_this_one_ends_the_connection, a_refusal_of_the_number_itself_is_as_good,
                     an_error_that_comes_twice_proves_nothing, a_server_without_echo_is_believed,
                     a_greeting_ends_with_a_number);
}
