/* SPDX-License-Identifier: MIT */
#include "environment.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Cut from the text what begins at `from` and ends before `to`. */
static void cut(char *from, const char *to)
{
    memmove(from, to, strlen(to) + 1);
}

/* Leave out user and password in front of the server, and the password for Sentinels. */
static void cut_secrets(char *url)
{
    static const char sentinel[] = "sentinel_password=";
    char *server = strstr(url, "://");
    if (server != NULL) {
        server += 3;
        char *end = server + strcspn(server, "/?"), *at = memrchr(server, '@', (size_t)(end - server));
        if (at != NULL)
            cut(server, at + 1);
    }
    char *secret = strstr(url, sentinel);
    if (secret != NULL) {
        char *next = secret + strcspn(secret, "&");
        if (*next != 0)
            cut(secret, next + 1);
        else
            cut(secret > url ? secret - 1 : secret, next); /* with what divides it from the one before */
    }
}

static void clean_url(const char *variable)
{
    const char *value = getenv(variable);
    char *url = value != NULL ? strdup(value) : NULL;
    if (url == NULL)
        return;
    cut_secrets(url);
    if (strchr(url, '@') != NULL || strstr(url, "password") != NULL) /* not understood */
        unsetenv(variable);
    else
        setenv(variable, url, 1);
    free(url);
}

/* "${NAME}" or "${NAME:-text}" of a configuration file: the password is in that variable. */
static void unset_reference(const json_t *root, const char *key)
{
    const char *text = json_string_value(json_object_get(root, key));
    if (text == NULL || strncmp(text, "${", 2) != 0)
        return;
    char *name = strndup(text + 2, strcspn(text + 2, ":}"));
    if (name != NULL)
        unsetenv(name);
    free(name);
}

static void forget_secrets(const struct settings *s)
{
    clean_url("LATCHKEY_URL");
    clean_url("REDIS_URL");
    clean_url("VALKEY_URL");
    unsetenv("LATCHKEY_PASSWORD");
    unsetenv("REDISCLI_AUTH");
    unsetenv("VALKEYCLI_AUTH");
    struct stat about;
    if (s->config == NULL || stat(s->config, &about) != 0 || !S_ISREG(about.st_mode)) /* a pipe was read, and is over */
        return;
    json_t *root = json_load_file(s->config, 0, NULL);
    unset_reference(root, "password");
    unset_reference(root, "sentinel_password");
    json_decref(root);
}

static void set_number(const char *variable, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    setenv(variable, text, 1);
}

void set_environment(const struct settings *s, const struct grant_words *grant)
{
    if (!s->keep_env)
        forget_secrets(s);
    setenv("LATCHKEY_NAME", grant->name, 1);
    setenv("LATCHKEY_OWNER", grant->owner, 1);
    setenv("LATCHKEY_MODE", grant->mode, 1);
    set_number("LATCHKEY_LEASE_MS", (uint64_t)grant->lease_ms);
    unsetenv("LATCHKEY_TOKEN"); /* of a latchkey around this one */
    if (grant->token != 0)
        set_number("LATCHKEY_TOKEN", grant->token);
}
