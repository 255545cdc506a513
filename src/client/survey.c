/* SPDX-License-Identifier: MIT */
/*
 * survey.c - what each server said when a client was opened for that, as JSON
 *
 * Without memory for a part there is no text at all: NULL is passed up.
 */
#include "client/client.h"

#include <latchkey/survey.h>

#include <jansson.h>
#include <string.h>

/* A text that JSON takes as it is. */
static bool is_plain(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < ' ' || (unsigned char)text[i] > '~')
            return false;
    return true;
}

/* Lines of "name:value", as INFO has them. */
static json_t *fields_json(const char *text)
{
    if (text == NULL)
        return json_null();
    json_t *fields = json_object();
    bool good = fields != NULL;
    for (size_t length; good && *text != '\0'; text += length + strspn(text + length, "\r\n")) {
        char name[64];
        length = strcspn(text, "\r\n");
        size_t name_length = strcspn(text, ":");
        if (*text == '#' || name_length >= length || name_length >= sizeof name || !is_plain(text, length))
            continue;
        memcpy(name, text, name_length);
        name[name_length] = '\0';
        json_t *value = json_stringn(text + name_length + 1, length - name_length - 1);
        good = json_object_set_new(fields, name, value) == 0;
    }
    if (good)
        return fields;
    json_decref(fields);
    return NULL;
}

/* A text without what the server may have put into it that JSON does not take. */
static json_t *text_json(const char *text)
{
    return json_string(is_plain(text, strlen(text)) ? text : "?");
}

static json_t *told_json(const char *where, const struct lk__survey *told)
{
    return json_pack("{s:o, s:o, s:o, s:I, s:o, s:o}", "address", text_json(where), "info", fields_json(told->info),
                     "config", fields_json(told->config), "ahead_us", (json_int_t)told->ahead_us, "missing",
                     text_json(told->missing), "warning", text_json(told->warning));
}

static json_t *server_json(struct lk__node *node, bool up)
{
    char where[128], why[LK__ERRMSG_MAX] = "";
    struct lk__survey *told = lk__node_survey(node, where, sizeof where);
    if (up && told != NULL) {
        json_t *server = told_json(where, told);
        lk__survey_free(told);
        return server;
    }
    lk__survey_free(told);
    if (up || lk__conn_lasterror(&node->lanes[LK__LANE_COMMANDS], why, sizeof why) == 0)
        strcpy(why, "no answer in time");
    return json_pack("{s:o, s:o}", "address", text_json(where), "error", text_json(why));
}

/* All at once, and then each for as long as there is time. */
static json_t *servers_json(lk_client_t *client)
{
    struct lk__parker parker;
    struct lk__node *node;
    json_t *servers = json_array();
    bool good = servers != NULL;
    int64_t until_us = lk__now_us() + client->options->connect_timeout_ms * 1000;
    lk__parker_init(&parker);
    for (unsigned n = 0; (node = lk__node_nth(&client->node, n)) != NULL; n++)
        lk__node_want(node, LK__LANE_COMMANDS);
    for (unsigned n = 0; good && (node = lk__node_nth(&client->node, n)) != NULL; n++) {
        bool up = lk__conn_awaitup(&node->lanes[LK__LANE_COMMANDS], &parker, 0, until_us) == 0;
        good = json_array_append_new(servers, server_json(node, up)) == 0;
    }
    lk__parker_destroy(&parker);
    if (good)
        return servers;
    json_decref(servers);
    return NULL;
}

static const char *kind_of(const struct lk__options *options)
{
    if (options->quorum)
        return "quorum";
    if (options->cluster)
        return "cluster";
    if (options->service != NULL)
        return "sentinel";
    return options->server_count > 1 ? "several" : "server";
}

static json_t *options_json(const struct lk__options *o)
{
    const char *tls = !o->tls.on ? "no" : o->tls.unverified ? "unverified" : "yes";
    return json_pack("{s:s, s:s, s:b, s:b, s:b, s:b, s:I, s:I, s:I, s:i}", "kind", kind_of(o), "tls", tls, "socket",
                     o->path != NULL, "password", o->password != NULL || o->provider != NULL, "user", o->user != NULL,
                     "pubsub", !o->no_pubsub, "lease_ms", (json_int_t)o->lease_ms, "command_timeout_ms",
                     (json_int_t)o->command_timeout_ms, "clock_skew_ms", (json_int_t)o->clock_skew_ms, "wait_replicas",
                     o->wait_replicas);
}

static char *write_json(lk_client_t *client)
{
    json_t *all = json_pack("{s:s, s:o, s:o}", "version", lk_version(), "options", options_json(client->options),
                            "servers", servers_json(client));
    char *text = all != NULL ? lk__json_text(all) : NULL;
    json_decref(all);
    return text;
}

int lk_survey(const lk_clientattr_t *attr, char **json)
{
    lk_client_t *client = NULL;
    char *text = NULL;
    if (json == NULL)
        return lk__fail(EINVAL, "lk_survey: nowhere to put the text");
    struct lk__apistate api = lk__api_enter();
    int rc = lk__client_opensurvey(&client, attr);
    if (rc == 0) {
        text = write_json(client);
        (void)lk_client_close(client); /* it held nothing */
        rc = text == NULL ? lk__fail(ENOMEM, "out of memory for what the servers say") : 0;
    }
    if (rc == 0)
        *json = text;
    return lk__api_leave(&api, rc);
}
