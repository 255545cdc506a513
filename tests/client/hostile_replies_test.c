/* SPDX-License-Identifier: MIT */
/*
 * hostile_replies_test.c - answers that make no sense are refused and cost neither memory nor a hold
 *
 * labels: memory
 * simulated: yes
 * seconds: 16
 */
#include "fake_server.h"
#include "process.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *const nonsense[] = {
    "hello\r\n",
    "*100000000\r\n",  /* a header that promises a hundred million elements */
    "*65\r\n",         /* one more than any of our answers has */
    "$1073741824\r\n", /* a text of a gigabyte */
    "*-7\r\n",
    "$-9\r\n",
    ":12x\r\n",
    "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
    "+OK\r\n", /* well-formed, but no answer to this */
    ":1\r\n",
    "$-1\r\n",
    "*0\r\n",
    "*-1\r\n",
    "*1\r\n:1\r\n",
    "*5\r\n$1\r\n1\r\n$1\r\n1\r\n:0\r\n:0\r\n:0\r\n",
    "*4\r\n:99\r\n:@\r\n:#\r\n:0\r\n",                                /* no such outcome */
    "*4\r\n:1\r\n:@\r\n:#\r\n:0\r\n",                                 /* held, with a token that cannot be */
    "*4\r\n:1\r\n:@\r\n:#\r\n:-5\r\n",                                /* likewise */
    "*4\r\n:1\r\n:@\r\n:0\r\n:5\r\n",                                 /* held, by another request */
    "*4\r\n:1\r\n:@\r\n:#\r\n$1\r\n5\r\n",                            /* a text for the token */
    "*3\r\n:1\r\n:@\r\n:#\r\n",                                       /* held, without a token */
    "*5\r\n:1\r\n:@\r\n:#\r\n:5\r\n:5\r\n",                           /* held, with more than that */
    "*5\r\n:0\r\n:@\r\n:#\r\n:5\r\n:5\r\n",                           /* queued, without a place */
    "*4\r\n:1\r\n:0\r\n:#\r\n:5\r\n",                                 /* held, at time 0 */
    "*4\r\n:4\r\n:@\r\n:#\r\n:5\r\n",                                 /* what another script may answer */
    "*6\r\n:0\r\n:9223372036854775807\r\n:#\r\n:5\r\n:100\r\n:0\r\n", /* queued, in the year 294247 */
    "*4\r\n:1\r\n:9007199254740993\r\n:#\r\n:5\r\n",                  /* held, at a time no script can count */
    "-WHATEVER this is\r\n",
};
enum { NONSENSE = sizeof nonsense / sizeof nonsense[0] };

/* Each answer comes at once, so only a machine that stands still needs so long. */
#define OPTIONS "lease=20s&command_timeout=5s&connect_timeout=10s&retry_max=50ms"

/* What goes on behind a call whose outcome is unknown is told that it is back, and past the deadlines of all copies. */
static void close_client(struct fake *f, lk_client_t *client)
{
    fake_answer(f, "EVALSHA", "*3\r\n:4\r\n:4000000000000000\r\n:#\r\n");
    int code = lk_client_close(client);
    assert_true(code == 0 || code == EIO);
}

/* From now on scripts are answered with `reply`, where @ stands for the present time in microseconds. */
static void answer_scripts(struct fake *f, const char *reply)
{
    struct timespec now;
    char text[128];
    int before = (int)strcspn(reply, "@");
    clock_gettime(CLOCK_REALTIME, &now);
    if (reply[before] == '\0')
        snprintf(text, sizeof text, "%s", reply);
    else
        snprintf(text, sizeof text, "%.*s%lld%s", before, reply, (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000,
                 reply + before + 1);
    fake_answer(f, "EVALSHA", text);
}

/* A broken proxy, another protocol, an attacker: the caller is told, and holds nothing. */
static void nonsense_is_eproto(struct world *w)
{
    struct fake *f = fake_begin(w);
    lk_client_t *client;
    lk_mutex_t orders;
    long before_kib = peak_kib();
    for (int i = 0; i < NONSENSE; i++) {
        assert_lk(0, lk_client_open(&client, fake_url(f, OPTIONS)));
        assert_lk(0, lk_mutex_init(&orders, client, "orders", NULL));
        answer_scripts(f, nonsense[i]);
        print_message("%.20s\n", nonsense[i]);
        assert_lk(EPROTO, lk_mutex_trylock(&orders));
        assert_true(lk_errortext()[0] != 0);
        assert_lk(EPROTO, lk_mutex_lock(&orders));
        assert_lk(EPERM, lk_mutex_unlock(&orders));
        assert_lk(0, lk_mutex_destroy(&orders));
        close_client(f, client);
    }
    if (!SANITIZED)
        assert_between(peak_kib() - before_kib, 0, 16 * 1024);
}

/* The errors a server really has are told apart. */
static void errors_have_their_codes(struct world *w)
{
    static const struct {
        const char *reply;
        int code;
    } errors[] = {
        { "-NOPERM this user has no permissions to run the 'evalsha' command\r\n", EACCES },
        { "-NOAUTH Authentication required.\r\n", EACCES },
        { "-OOM command not allowed when used memory > 'maxmemory'.\r\n", ENOSPC },
        { "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n", EPROTO },
        { "-LOADING Redis is loading the dataset in memory\r\n", ENOTCONN },
        { "-BUSY Redis is busy running a script.\r\n", ENOTCONN },
        { "-READONLY You can't write against a read only replica.\r\n", ENOTCONN },
        { "-NOREPLICAS Not enough good replicas to write.\r\n", ENOTCONN },
        { "-MISCONF Errors writing to the AOF file\r\n", ENOTCONN },
        { "-MASTERDOWN Link with MASTER is down\r\n", ENOTCONN },
    };
    struct fake *f = fake_begin(w);
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        lk_client_t *client;
        lk_mutex_t orders;
        assert_lk(0, lk_client_open(&client, fake_url(f, OPTIONS)));
        assert_lk(0, lk_mutex_init(&orders, client, "orders", NULL));
        fake_answer(f, "EVALSHA", errors[i].reply);
        assert_lk(errors[i].code, lk_mutex_trylock(&orders));
        assert_lk(EPERM, lk_mutex_unlock(&orders));
        assert_lk(0, lk_mutex_destroy(&orders));
        close_client(f, client);
    }
}

/* An answer that no script of ours gives renews nothing: the hold ends with the lease it had. */
static void nonsense_renews_nothing(struct world *w)
{
    static const char *const renewals[] = { "*3\r\n:7\r\n:@\r\n:#\r\n",
                                            "*3\r\n:4\r\n:@\r\n:0\r\n",
                                            "*2\r\n:4\r\n:@\r\n",
                                            "*4\r\n:4\r\n:@\r\n:#\r\n:1\r\n",
                                            "*1\r\n:4\r\n",
                                            "*3\r\n:4\r\n:0\r\n:#\r\n",
                                            "*3\r\n:4\r\n:9007199254740993\r\n:#\r\n",
                                            "+OK\r\n" };
    static const lk_mutexattr_t brief = { .size = sizeof brief, .lease_ms = 500 };
    struct fake *f = fake_begin(w);
    for (size_t i = 0; i < sizeof renewals / sizeof renewals[0]; i++) {
        lk_client_t *client;
        lk_mutex_t orders;
        int64_t left_ms;
        assert_lk(0, lk_client_open(&client, fake_url(f, OPTIONS)));
        assert_lk(0, lk_mutex_init(&orders, client, "orders", &brief));
        answer_scripts(f, "*4\r\n:1\r\n:@\r\n:#\r\n:7\r\n");
        assert_lk(0, lk_mutex_lock(&orders));
        answer_scripts(f, renewals[i]);
        eventually(lk_mutex_remaining(&orders, &left_ms) == ESTALE, 500 + SLACK_MS);
        assert_lk(ESTALE, lk_mutex_unlock(&orders));
        assert_lk(0, lk_mutex_destroy(&orders));
        close_client(f, client);
    }
}

/*
 * A refusal that only an ECHO can prove, and a server that becomes busy between the two: the answer is not believed, and
 * then there is nobody to ask. That is a server which is away, not one that speaks nonsense: a wait goes on, and what may
 * have been done is unknown.
 */
static void busy_before_its_proof(struct fake *f)
{
    static const char busy[] = "-BUSY Redis is busy running a script.\r\n";
    fake_answer(f, "EVALSHA", "-NOSCRIPT No matching script.\r\n");
    fake_answer(f, "ECHO", busy);
    fake_answer(f, "ROLE", busy);
}

static void a_wait_outlives_a_proof_that_does_not_come(struct world *w)
{
    struct fake *f = fake_begin(w);
    lk_client_t *client = fake_client(f, "lease=6s&command_timeout=1s&connect_timeout=1s");
    lk_latch_t *gate = world_latch(w, client, "gate");
    busy_before_its_proof(f);
    int64_t began_ms = now_ms();
    assert_lk(ENOTCONN, lk_latch_waitfor(gate, 3000));
    assert_between(now_ms() - began_ms, 3000, 3000 + 1000 + SLACK_MS);
}

static void what_is_not_proven_is_unknown(struct world *w)
{
    struct fake *f = fake_begin(w);
    lk_client_t *client;
    lk_mutex_t orders;
    assert_lk(0, open_patiently(&client, fake_url(f, "lease=6s&command_timeout=1s&connect_timeout=1s")));
    assert_lk(0, lk_mutex_init(&orders, client, "orders", NULL));
    busy_before_its_proof(f);
    assert_lk(EIO, lk_mutex_trylock(&orders));
    assert_lk(EPERM, lk_mutex_unlock(&orders));
    assert_lk(0, lk_mutex_destroy(&orders));
    assert_lk(EIO, lk_client_close(client)); /* what came of it could not be undone */
}

/* One that is busy by then is not one that refuses ECHO. */
static void an_echo_that_is_refused_for_now(struct world *w)
{
    struct fake *f = fake_begin(w);
    fake_answer(f, "ECHO", "-BUSY Redis is busy running a script.\r\n");
    lk_client_t *client;
    assert_lk(ENOTCONN, lk_client_open(&client, fake_url(f, "connect_timeout=10s")));
    assert_non_null(strstr(lk_errortext(), "BUSY"));
}

int main(void)
{
    return world_run(nonsense_is_eproto, errors_have_their_codes, nonsense_renews_nothing,
                     a_wait_outlives_a_proof_that_does_not_come, what_is_not_proven_is_unknown,
                     an_echo_that_is_refused_for_now);
}
