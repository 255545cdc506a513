/* SPDX-License-Identifier: MIT */
/*
 * describe.c - what a client says of itself at its servers, for people who see that it holds something
 *
 * It is said from the first hold on, by the watchdog and not in the handshake: nobody asks after who holds nothing, no
 * handshake knows which node of a cluster has the slot of the key, and whoever opens a client would wait for the answer.
 *
 * No command line is said unless somebody asks for that: passwords stand there.
 */
#include "client/describe.h"
#include "client/scripts.h"
#include "config/name.h"

#include <latchkey/inspect.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    LASTS_LEAST_MS = 90000, /* longer than a watchdog stands still that is alive, and short enough for dead clients */
    FIELD_MAX = sizeof((lk_who_t *)0)->arguments
};

#define ROOM_OF(field) sizeof((lk_who_t *)0)->field

/* Names, quotes, commas, the pid; of the texts each character may take two. */
enum { WORDS_MAX = 2 * (ROOM_OF(host) + ROOM_OF(program) + ROOM_OF(arguments) + ROOM_OF(why)) + 128 };

struct description {
    struct lk__notice notice; /* the first: it is freed by that */
    struct lk__client_keys keys;
    struct lk__client_describe_args up, down;
    char key[LK__WHO_KEY];
    char words[];
};

void lk__who_key(char key[LK__WHO_KEY], const char *id)
{
    snprintf(key, LK__WHO_KEY, "%s:%.*s", "latchkey:who", LK__ID_LENGTH, id);
}

/* ,"name":"text", cut to fit into `size`, in printable ASCII: it goes to terminals and dashboards. NULL: nothing. */
static char *add_text(char *at, const char *name, const char *text, size_t size)
{
    char plain[FIELD_MAX];
    if (text == NULL)
        return at;
    lk__name_print(plain, size, text, strlen(text));
    at += sprintf(at, ",\"%s\":\"", name);
    for (const char *c = plain; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            *at++ = '\\';
        *at++ = *c;
    }
    return stpcpy(at, "\"");
}

static void write_words(char words[WORDS_MAX], const struct lk__options *options)
{
    char host[ROOM_OF(host)] = "";
    (void)gethostname(host, sizeof host - 1);
    char *at = words + sprintf(words, "{\"pid\":%ld", (long)getpid());
    at = add_text(at, "host", host, ROOM_OF(host));
    at = add_text(at, "program", options->program != NULL ? options->program : program_invocation_short_name,
                  ROOM_OF(program));
    at = add_text(at, "arguments", options->arguments, ROOM_OF(arguments));
    at = add_text(at, "why", options->why, ROOM_OF(why));
    strcpy(at, "}");
}

static struct lk__command command_of(const struct description *description, const struct lk__client_describe_args *args)
{
    return (struct lk__command){ .script = &lk__lua_client_describe, .keys = &description->keys, .args = args };
}

static void fill_notice(struct description *description, const struct lk__options *options)
{
    struct lk__notice *notice = &description->notice;
    notice->what = "the description of this client";
    notice->lasts_ms = 2 * options->lease_ms > LASTS_LEAST_MS ? 2 * options->lease_ms : LASTS_LEAST_MS;
    description->keys.who = description->key;
    description->up = (struct lk__client_describe_args){ .words = description->words, .lasts_ms = notice->lasts_ms };
    description->down = (struct lk__client_describe_args){ .words = "", .flags = LK__CLIENT_CLOSED };
    notice->up = command_of(description, &description->up);
    notice->down = command_of(description, &description->down);
    notice->count = options->quorum ? options->server_count : 1;
    for (unsigned i = 0; options->quorum && i < notice->count; i++)
        notice->sheets[i].place = i + 1;
}

int lk__client_describe(const lk_client_t *client, struct lk__notice **notice)
{
    char words[WORDS_MAX];
    const struct lk__options *options = client->options;
    *notice = NULL;
    if (options->undescribed || options->survey)
        return 0;
    write_words(words, options);
    struct description *description = lk__alloc(sizeof *description + strlen(words) + 1);
    if (description == NULL)
        return lk__fail(ENOMEM, "out of memory for a client");
    strcpy(description->words, words);
    lk__who_key(description->key, client->id);
    fill_notice(description, options);
    *notice = &description->notice;
    return 0;
}
