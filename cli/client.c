/* SPDX-License-Identifier: MIT */
#include "client.h"
#include "words.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>

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

int open_client(const struct settings *s, lk_client_t **client)
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
    if (rc == 0)
        return EXIT_OK;
    (void)complain_of(s->command->name, rc);
    return open_code_of(rc);
}

void close_client(lk_client_t *client)
{
    (void)lk_client_close(client);
}

void name_owner(lk_client_t *client, const lk_owner_t *owner, char *text, unsigned size)
{
    char *stats = NULL;
    text[0] = 0;
    if (lk_client_stats(client, &stats) != 0)
        return;
    json_t *root = json_loads(stats, 0, NULL);
    const char *id = json_string_value(json_object_get(json_object_get(root, "client"), "id"));
    if (id != NULL)
        snprintf(text, size, "%s:%llu", id, (unsigned long long)lk_owner_number(owner));
    json_decref(root);
    lk_free(stats);
}
