/* SPDX-License-Identifier: MIT */
#include "client.h"
#include "words.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define SYSTEM_FILE "/etc/latchkey.json"

/* A dangling link and a file in an unreadable folder count as there: opening them reports the error. */
static bool is_there(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

/*
 * The first source that exists is used. Its errors are final, because the next source may name another server, and a
 * lock there would exclude nobody.
 */
int find_server(struct settings *s)
{
    static char user_file[PATH_MAX];
    const char *home = secure_getenv("HOME"), *shared = secure_getenv("REDIS_URL");
    if (home != NULL && home[0] != 0)
        snprintf(user_file, sizeof user_file, "%s/.config/latchkey.json", home);
    if (s->url != NULL)
        s->source = "--url";
    else if (s->config != NULL)
        s->source = s->config;
    else if (secure_getenv("LATCHKEY_URL") != NULL)
        s->source = "LATCHKEY_URL";
    else if (shared != NULL && shared[0] != 0)
        s->source = "REDIS_URL";
    else if (is_there(user_file))
        s->source = s->config = user_file;
    else if (is_there(SYSTEM_FILE))
        s->source = s->config = SYSTEM_FILE;
    if (s->source != NULL)
        return EXIT_OK;
    complain("%s: no server is configured: give --url, set LATCHKEY_URL, or write {\"url\": \"redis://HOST\"} into "
             "~/.config/latchkey.json or " SYSTEM_FILE,
             s->command->name);
    return EXIT_CONFIGURATION;
}

/* On a thread of the library. What a call failed at is told by whoever called. */
static void log_line(void *arg, int level, const char *line)
{
    (void)arg;
    if (level != LK_LOG_ERROR)
        complain("%s", line);
}

int open_code_of(int rc)
{
    if (rc == EINVAL || rc == ENOENT)
        return EXIT_CONFIGURATION;
    return rc == EPROTO ? EXIT_UNREACHABLE : exit_code_of(rc);
}

/* A text that the statistics have of the client; "" if there is no memory for it. */
static void copy_text(lk_client_t *client, const char *field, char *text, size_t size)
{
    char *stats = NULL;
    text[0] = 0;
    if (lk_client_stats(client, &stats) != 0)
        return;
    json_t *root = json_loads(stats, 0, NULL);
    const char *value = json_string_value(json_object_get(json_object_get(root, "client"), field));
    if (value != NULL)
        snprintf(text, size, "%s", value);
    json_decref(root);
    lk_free(stats);
}

int open_client(struct settings *s, lk_client_t **client)
{
    int level = s->verbose ? LK_LOG_INFO : LK_LOG_WARNING;
    int rc = lk_addlog(s->quiet ? NULL : log_line, level, NULL, NULL);
    lk_clientattr_t attr = LK_CLIENTATTR_INIT;
    attr.url = s->url;
    attr.json_path = s->config;
    attr.program = s->program;
    attr.arguments = s->arguments;
    attr.why = s->why;
    if (rc == 0)
        rc = lk_client_openwith(client, &attr);
    if (rc != 0) {
        (void)complain_of(s->command->name, rc);
        return open_code_of(rc);
    }
    copy_text(*client, "server", s->server, sizeof s->server);
    if (s->verbose)
        complain("server %s (from %s)", s->server, s->source);
    return EXIT_OK;
}

void close_client(lk_client_t *client)
{
    (void)lk_client_close(client);
}

void name_owner(lk_client_t *client, const lk_owner_t *owner, char *text, unsigned size)
{
    char id[64];
    copy_text(client, "id", id, sizeof id);
    text[0] = 0;
    if (id[0] != 0)
        snprintf(text, size, "%s:%llu", id, (unsigned long long)lk_owner_number(owner));
}
