/* SPDX-License-Identifier: MIT */
/*
 * server_test.c - what a server has to be, looked at when a client is opened
 *
 * labels: threads memory
 * simulated: yes
 */
#include "fake_server.h"
#include "log.h"
#include "rights.h"

#include <stdio.h>
#include <string.h>

/* Opening has that code; words of a failure, or a warning if it opens, contain `words`. NULL: no warning. */
static void opening(int code, const char *url, const char *words)
{
    lk_client_t *client;
    assert_lk(0, log_keep(LK_LOG_WARNING));
    assert_lk(code, lk_client_open(&client, url));
    if (code == 0)
        assert_lk(0, lk_client_close(client));
    assert_lk(0, log_to(NULL, LK_LOG_ERROR, NULL));
    const char *text = code == 0 ? log_kept() : lk_errortext();
    if (words == NULL && log_kept()[0] != '\0')
        fail_msg("%s: a warning: %s", url, log_kept());
    if (words != NULL && strstr(text, words) == NULL)
        fail_msg("%s: no \"%s\" in: %s", url, words, text);
}

static void answer_info(struct fake *f, const char *lines)
{
    char reply[256];
    snprintf(reply, sizeof reply, "$%zu\r\n%s\r\n", strlen(lines), lines);
    fake_answer(f, "INFO", reply);
}

/* The floor is Redis 7.0 and Valkey 7.2, which goes on saying 7.2.4 for the sake of its clients. */
static void the_version_has_a_floor(struct world *w)
{
    struct fake *f = fake_begin(w);
    static const char *const good[] = { "# Server\r\nredis_version:7.0.0\r\n", "redis_version:8.2.1\r\n",
                                        "redis_version:10.0.0\r\n",
                                        "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.0.0\r\n" };
    static const char *const old[] = { "redis_version:6.2.14\r\n", "redis_version:2.8.0\r\n",
                                       "redis_version:6.9.9\r\nvalkey_version:8.0.0\r\n" };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        answer_info(f, good[i]);
        opening(0, fake_url(f, ""), NULL);
    }
    for (size_t i = 0; i < sizeof old / sizeof *old; i++) {
        answer_info(f, old[i]);
        opening(ENOTSUP, fake_url(f, ""), "older than Redis 7.0");
    }
}

/* Locks on a server that evicts are worth a warning; with strict=yes they are not made. */
static void the_policy_is_noeviction(struct world *w)
{
    struct fake *f = fake_begin(w);
    static const char *const evicting[] = { "allkeys-lru", "volatile-lru", "volatile-ttl", "allkeys-random" };
    for (size_t i = 0; i < sizeof evicting / sizeof *evicting; i++) {
        char lines[128];
        snprintf(lines, sizeof lines, "redis_version:7.0.15\r\nmaxmemory_policy:%s\r\n", evicting[i]);
        answer_info(f, lines);
        opening(0, fake_url(f, ""), evicting[i]);
        opening(ENOTSUP, fake_url(f, "strict=yes"), evicting[i]);
    }
    answer_info(f, "redis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\n");
    opening(0, fake_url(f, ""), NULL);
    opening(0, fake_url(f, "strict=yes"), NULL);
}

/* Who does not tell may be as good as any, unless one wants to be sure. */
static void what_is_not_told_is_no_failure_unless_strict(struct world *w)
{
    struct fake *f = fake_begin(w);
    answer_info(f, "loading:0\r\n");
    opening(0, fake_url(f, ""), NULL);
    opening(ENOTSUP, fake_url(f, "strict=yes"), "strict=yes");
    fake_answer(f, "INFO", "-ERR unknown command 'INFO'\r\n");
    opening(0, fake_url(f, ""), NULL);
    opening(ENOTSUP, fake_url(f, "strict=yes"), "strict=yes");
    fake_answer(f, "INFO", "-NOPERM this user has no permissions to run the 'info' command\r\n");
    opening(0, fake_url(f, ""), NULL);
    opening(EACCES, fake_url(f, "strict=yes"), "+info");
}

/* The same with the user of docs/security.md, on a real server. */
static void the_documented_user_may_be_strict(struct world *w)
{
    struct words rights;
    rights_documented(&rights);
    rights_user(w, &rights, "~orders*", NULL);
    opening(0, rights_url(w, "strict=yes"), NULL);
    world_redis(w, "CONFIG SET maxmemory-policy volatile-lru");
    opening(0, rights_url(w, ""), "volatile-lru");
    opening(ENOTSUP, rights_url(w, "strict=yes"), "volatile-lru");
    rights_user(w, &rights, "~orders*", "+info");
    opening(0, rights_url(w, ""), NULL); /* nobody told it */
    opening(EACCES, rights_url(w, "strict=yes"), "+info");
}

/* What a replica grants, its master does not know. */
static void a_replica_is_of_no_use(struct world *w)
{
    struct words rights;
    lk_client_t *client;
    lk_mutex_t orders;
    rights_documented(&rights);
    rights_user(w, &rights, "~orders*", NULL);
    world_redis(w, "REPLICAOF 127.0.0.1 1");
    opening(ENOTCONN, rights_url(w, ""), "replica");

    rights_user(w, &rights, "~orders*", "+role"); /* then the first lock finds out */
    assert_lk(0, lk_client_open(&client, rights_url(w, "command_timeout=300ms")));
    assert_lk(0, lk_mutex_init(&orders, client, "orders", NULL));
    assert_lk(ENOTCONN, lk_mutex_lockfor(&orders, 100));
    if (strstr(lk_errortext(), "READONLY") == NULL)
        fail_msg("no READONLY in: %s", lk_errortext());
    assert_lk(0, lk_mutex_destroy(&orders));
    lk_client_close(client); /* EIO is as good: it was asked, and refused */
    world_redis(w, "REPLICAOF NO ONE");
}

/* The script that looks at the rights is no reason to refuse a server that answers it otherwise. */
static void an_answer_to_the_probe_that_says_nothing(struct world *w)
{
    struct fake *f = fake_begin(w);
    fake_answer(f, "EVAL", ":1\r\n");
    opening(0, fake_url(f, ""), NULL);
    fake_answer(f, "EVAL", "*2\r\n$0\r\n\r\n$0\r\n\r\n");
    opening(0, fake_url(f, ""), NULL);
    fake_answer(f, "EVAL", "*2\r\n$0\r\n\r\n$6\r\n+zcard\r\n");
    opening(0, fake_url(f, ""), "+zcard");
    fake_answer(f, "EVAL", "*2\r\n$5\r\n+zadd\r\n$0\r\n\r\n");
    opening(EACCES, fake_url(f, ""), "+zadd");
    fake_answer(f, "EVAL", "-NOPERM this user has no permissions to run the 'eval' command\r\n");
    opening(EACCES, fake_url(f, ""), "+eval");
}

/* To look at all of it takes one connection, one script, and nothing is written. */
static void looking_costs_one_script(struct world *w)
{
    int64_t evals = world_commands(w, "eval"), dirty = world_counter(w, "rdb_changes_since_last_save");
    opening(0, world_url(w, ""), NULL);
    assert_true(world_commands(w, "eval") == evals + 1);
    assert_true(world_counter(w, "rdb_changes_since_last_save") == dirty);
    assert_null(strstr(world_str(w, "INFO errorstats"), "errorstat_")); /* nor does anything fail */
}

/* --- the password is told to nobody -------------------------------------------------------------------------- */

#define PASSWORD "TOPSECRET-42"

static char logged[8192];

static void keep_all(void *arg, int level, const char *line)
{
    size_t used = strlen(logged);
    (void)arg;
    (void)level;
    snprintf(logged + used, sizeof logged - used, "%s\n", line);
}

/* Opening fails, and neither the words of it nor the log have the password or its beginning. */
static void refused_without_the_password(const char *url, const char *words)
{
    lk_client_t *client;
    logged[0] = '\0';
    assert_lk(0, log_to(keep_all, LK_LOG_DEBUG, NULL));
    assert_int_not_equal(0, lk_client_open(&client, url));
    assert_lk(0, log_to(NULL, LK_LOG_ERROR, NULL));
    assert_says(words);
    if (strstr(lk_errortext(), "TOPSEC") != NULL || strstr(logged, "TOPSEC") != NULL)
        fail_msg("the password is told: %s\n%s", lk_errortext(), logged);
}

/* A server that does not know AUTH quotes what came with it. */
static void a_server_without_auth_is_not_quoted(void)
{
    struct world *w = world_begin("--rename-command AUTH login");
    char url[256];
    snprintf(url, sizeof url, "unix://app:" PASSWORD "@%s", w->socket);
    refused_without_the_password(url, "refuses the user or the password: ERR");
    snprintf(url, sizeof url, "unix://:" PASSWORD "@%s", w->socket);
    refused_without_the_password(url, "refuses the user or the password: ERR");
    world_end(w);
}

/* Whichever question a server or a proxy answers with words about another; the last questions first. */
static void no_answer_gives_the_password_away(struct world *w)
{
    static const char *const quotes[] = {
        "-ERR unknown command 'AUTH', with args beginning with: 'app' '" PASSWORD "'\r\n",
        "-ERR args beginning with: 'TOPSECRET...'\r\n",
        "-" PASSWORD "\r\n",
        "-NOPERM '" PASSWORD "' '" PASSWORD "'\r\n",
    };
    static const char *const commands[] = { "EVAL", "TIME", "ROLE", "SELECT", "AUTH" };
    struct fake *f = fake_begin(w);
    char url[256];
    snprintf(url, sizeof url, "unix://app:" PASSWORD "@%s?db=3", fake_url(f, "") + strlen("unix://"));
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        for (size_t j = 0; j < sizeof quotes / sizeof *quotes; j++) {
            fake_answer(f, commands[i], quotes[j]);
            refused_without_the_password(url, "");
        }
}

int main(void)
{
    int failed =
        world_run(the_version_has_a_floor, the_policy_is_noeviction, what_is_not_told_is_no_failure_unless_strict,
                  the_documented_user_may_be_strict, a_replica_is_of_no_use, an_answer_to_the_probe_that_says_nothing,
                  looking_costs_one_script, no_answer_gives_the_password_away);
    return failed + plain_run(a_server_without_auth_is_not_quoted);
}
