/* SPDX-License-Identifier: MIT */
/*
 * client_test.c - every allocation and every system call fails while a client is opened, asked and closed; also
 * in a process that has never used the library
 *
 * labels: memory
 * seconds: 50
 * processors: 10
 * support: failing
 */
#include "failing/failing.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG_MS 5000

/* A client that cannot be opened takes its whole time to say so. */
static const char *options(void)
{
    return failing_lasts() ? "lease=1500ms&connect_timeout=1s" : "lease=3s&connect_timeout=3s&command_timeout=950ms";
}

/* --- opening ---------------------------------------------------------------------------------------------- */

static void end(struct world *w, lk_client_t *client)
{
    lk_mutex_t m;
    failing_end();
    if (client == NULL)
        client = world_open(w, failing_options());
    assert_lk(0, lk_mutex_init(&m, client, "m", NULL));
    assert_lk(0, lk_mutex_lockfor(&m, LONG_MS));
    assert_lk(0, lk_mutex_unlock(&m));
    assert_lk(0, lk_mutex_destroy(&m));
    assert_lk(0, lk_client_close(client));
}

static void open_url(struct world *w)
{
    lk_client_t *client = NULL;
    const char *url = world_url(w, options());
    failing_begin();
    tried(0, lk_client_open(&client, url), ENOMEM, ENOTCONN);
    end(w, client);
}

static int port; /* of the server of this process */

static void open_host(struct world *w)
{
    lk_client_t *client = NULL;
    char url[128];
    snprintf(url, sizeof url, "redis://localhost:%d?%s", port, options());
    failing_begin();
    tried(0, lk_client_open(&client, url), ENOMEM, ENOTCONN);
    end(w, client);
}

static void open_file(struct world *w)
{
    lk_client_t *client = NULL;
    char path[128];
    snprintf(path, sizeof path, "%s/client.json", w->dir);
    FILE *file = fopen(path, "w");
    assert_that(file != NULL);
    fprintf(file,
            "{ \"path\": \"%s\", \"lease\": \"1500ms\", \"client_name\": \"a-name-that-is-somewhat-long\",\n"
            "  \"timeouts\": { \"connect\": \"%s\" } }",
            w->socket, failing_lasts() ? "300ms" : "1500ms");
    assert_that(fclose(file) == 0);
    failing_begin();
    tried(0, lk_client_open_file(&client, path), ENOMEM, ENOTCONN, EINVAL);
    end(w, client);
}

static int provide(lk_credentials_t *credentials, void *arg)
{
    (void)arg;
    strcpy(credentials->user, "default"); /* who needs no password, and takes any */
    strcpy(credentials->password, "any");
    return 0;
}

static void open_provided(struct world *w)
{
    lk_client_t *client = NULL;
    lk_clientattr_t attr = { .size = sizeof attr, .url = world_url(w, options()), .provider = provide,
                             .program = "nightly", .arguments = "--all", .why = "an export" };
    failing_begin();
    tried(0, lk_client_openwith(&client, &attr), ENOMEM, ENOTCONN);
    end(w, client);
}

/* --- what a client can be asked ------------------------------------------------------------------------------- */

static void hear(const lk_event_t *event, void *arg)
{
    (void)event;
    (void)arg;
}

/* All that belongs into statistics is there. */
static void check_statistics(const char *json)
{
    static const char *const words[] = { "version", "client",    "reconnects", "mutex", "rwlock",
                                         "permits", "semaphore", "latch",      "le",    "acquisitions" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_that(strstr(json, words[i]) != NULL);
    assert_that(strstr(json, "\"objects_left_out\": 0") != NULL);
}

/* All of them, to the last line. */
static void check_metrics(const char *text)
{
    static const char last[] = "\nlatchkey_objects_left_out 0\n";
    size_t length = strlen(text);
    assert_that(length > strlen(last) && strcmp(text + length - strlen(last), last) == 0);
    assert_that(strstr(text, "latchkey_object_waiting{kind=\"mutex\",name=\"another\"} 0\n") != NULL);
    assert_that(strstr(text, "latchkey_hold_seconds_count{kind=\"redlock\"} 0\n") != NULL);
}

static void ask(struct world *w)
{
    lk_client_t *client = world_open(w, failing_options());
    lk_event_t event = LK_EVENT_INIT;
    lk_mutex_t another;
    char *json = NULL;
    lk_events_t *queue = NULL;
    uint64_t handle = 0;
    int fd;
    assert_lk(0, lk_mutex_init(&another, client, "another", NULL));
    failing_begin();
    if (tried(0, lk_client_stats(client, &json), ENOMEM) == 0)
        check_statistics(json);
    lk_free(json);
    json = NULL;
    if (tried(0, lk_client_metrics(client, 10, &json), ENOMEM) == 0)
        check_metrics(json);
    lk_free(json);
    if (tried(0, lk_client_addlistener(client, hear, NULL, &handle), ENOMEM) == 0)
        tried(0, lk_client_removelistener(client, handle));
    if (tried(0, lk_events_open(client, &queue), ENOMEM) == 0) {
        tried(0, lk_events_fd(queue, &fd), ENOMEM);
        tried(EAGAIN, lk_events_next(queue, &event));
    }
    tried(0, lk_events_close(queue));
    if (tried(0, lk_addlog(NULL, LK_LOG_WARNING, NULL, &handle), ENOMEM) == 0)
        tried(0, lk_removelog(handle));
    tried(0, lk_client_setdefault(client));
    if (tried(0, lk_client_setdefaulturl("redis://app:secret@cache.example?prefix=shop:"), ENOMEM) != 0)
        tried(0, lk_client_setdefault(NULL));
    tried(0, lk_client_setdefaulturl(NULL));
    failing_end();
    assert_lk(0, lk_mutex_destroy(&another));
    end(w, client);
}

static void ask_servers(struct world *w)
{
    lk_clientattr_t attr = { .size = sizeof attr, .url = world_url(w, options()) };
    char *json = NULL;
    failing_begin();
    if (tried(0, lk_survey(&attr, &json), ENOMEM, ENOTCONN) == 0)
        assert_that(strstr(json, "\"maxmemory_policy\"") != NULL && strstr(json, "\"timeout\"") != NULL);
    lk_free(json);
    end(w, NULL);
}

/* --- a process that has never used the library --------------------------------------------------------------------- */

static lk_mutex_t orders = LK_MUTEX_INITIALIZER("orders");

static long *left_behind; /* shared: blocks that a process keeps, once, however it went; -1: not known yet */

static void use_static(const char *patient_url)
{
    lk_client_t *client;
    long before = failing_blocks();
    failing_begin();
    if (tried(0, lk_mutex_lockfor(&orders, failing_patience_ms()), ENOMEM, ENOTCONN, EIO, ETIMEDOUT) == 0)
        tried(0, lk_mutex_unlock(&orders), ENOTCONN, EIO, ESTALE);
    failing_end();
    use_default(patient_url);
    assert_lk(0, lk_mutex_lockfor(&orders, LONG_MS));
    assert_lk(0, lk_mutex_unlock(&orders));
    assert_lk(0, lk_mutex_destroy(&orders));
    assert_lk(0, lk_client_default(&client));
    assert_lk(0, lk_client_close(client));
    if (*left_behind < 0)
        *left_behind = failing_blocks() - before;
    if (failing_blocks() - before != *left_behind)
        assert_failed(__FILE__, __LINE__, "%ld blocks are left, not %ld", failing_blocks() - before, *left_behind);
}

static void first_use(struct world *w)
{
    int status;
    const char *patient_url = world_url(w, failing_options());
    use_default(world_url(w, options()));
    pid_t pid = fork();
    assert_that(pid >= 0);
    if (pid == 0) {
        use_static(patient_url);
        _exit(failing_happened() ? 3 : 0);
    }
    assert_that(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    assert_that(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3);
    failing_tell(WEXITSTATUS(status) == 3);
}

static void all_of(struct world *w, enum failing kind)
{
    left_behind = mmap(NULL, sizeof *left_behind, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *left_behind = -1;
    each_failure(w, "first use", kind, first_use);
    each_failure(w, "open", kind, open_url);
    port = free_port();
    world_redis(w, "CONFIG SET port %d", port);
    each_failure(w, "open host", kind, open_host);
    each_failure(w, "open file", kind, open_file);
    each_failure(w, "open provided", kind, open_provided);
    each_failure(w, "ask", kind, ask);
    each_failure(w, "ask servers", kind, ask_servers);
    munmap(left_behind, sizeof *left_behind);
}

int main(void)
{
    return all_failures(all_of);
}
