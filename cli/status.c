/* SPDX-License-Identifier: MIT */
/*
 * status.c - `latchkey status`: a line for each object of a name, and below it those of whom something is known
 */
#include "client.h"
#include "command.h"
#include "found.h"
#include "look.h"
#include "terminal.h"
#include "who.h"
#include "words.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WHOLE_WIDTH = 129 /* of a line with the token and the whole owner */ };

/* An object, and who has to do with it. */
struct used {
    const struct settings *settings;
    const char *name;
    const struct row *row;
    struct people holders, waiters;
};

/* Who is the owner that the row names; NULL: nothing is known, or it is another one by now. */
static const lk_who_t *owner_of(const struct used *used)
{
    for (unsigned i = 0; i < used->holders.count && i < PEOPLE_MAX; i++) {
        const struct person *person = &used->holders.person[i];
        if (person->known && strcmp(person->id, used->row->owner) == 0)
            return &person->who;
    }
    return NULL;
}

static void print_object(const struct used *used)
{
    const char *name = used->name;
    const struct row *row = used->row;
    json_t *object = json_pack("{s:o, s:s, s:s, s:I, s:I}", "name", text_of(name), "kind", row->kind, "mode", row->mode,
                               "holders", (json_int_t)row->holders, "waiters", (json_int_t)row->waiters);
    if (row->ttl_ms >= 0)
        json_object_set_new(object, "ttl_ms", json_integer(row->ttl_ms));
    if (row->count >= 0)
        json_object_set_new(object, "count", json_integer(row->count));
    if (row->token != 0)
        json_object_set_new(object, "token", json_integer((json_int_t)row->token));
    if (row->owner[0] != 0)
        json_object_set_new(object, "owner", json_string(row->owner));
    if (owner_of(used) != NULL)
        json_object_set_new(object, "who", who_object(owner_of(used)));
    if (used->holders.count > 0)
        json_object_set_new(object, "held_by", people_array(&used->holders));
    if (used->waiters.count > 0)
        json_object_set_new(object, "waited_by", people_array(&used->waiters));
    print_json(used->settings, object);
}

/* On a terminal that has no room for all: without the token, and the beginning of the owner. */
static bool is_narrow(void)
{
    return isatty(STDOUT_FILENO) && terminal_width() < WHOLE_WIDTH;
}

static void print_heading(void)
{
    printf("%-20s %-8s %-13s %7s %7s %8s ", "NAME", "KIND", "MODE", "HOLDERS", "WAITERS", "TTL");
    if (!is_narrow())
        printf("%17s ", "TOKEN");
    puts("OWNER");
}

/* A line for each of whom something is known, no wider than the terminal. */
static void print_people(const char *what, const struct people *people)
{
    char words[WHO_WORDS];
    bool known = false;
    int width = isatty(STDOUT_FILENO) ? terminal_width() : WHO_WORDS;
    for (unsigned i = 0; i < people->count && i < PEOPLE_MAX; i++)
        if (people->person[i].known) {
            printf("  %s %.*s\n", what, width > 20 ? width - 11 : 9, who_words(words, &people->person[i].who));
            known = true;
        }
    if (known && people->count > PEOPLE_MAX)
        printf("  %s and %u more\n", what, people->count - PEOPLE_MAX);
}

static void print_used(const struct used *used)
{
    const char *name = used->name;
    const struct row *row = used->row;
    char mode[32], ttl[24] = "-", token[24] = "-", shown[LK_NAME_MAX + 1];
    snprintf(mode, sizeof mode, "%s", row->mode);
    if (row->count > 0)
        snprintf(mode, sizeof mode, "count %lld", (long long)row->count);
    if (row->ttl_ms >= 0)
        snprintf(ttl, sizeof ttl, "%.1fs", (double)row->ttl_ms / 1e3);
    if (row->token != 0)
        snprintf(token, sizeof token, "%llu", (unsigned long long)row->token);
    const char *owner = row->owner[0] != 0 ? row->owner : "-";
    printf("%-20s %-8s %-13s %7u %7u %8s ", printable_name(shown, name), row->kind, mode, row->holders,
           row->waiters, ttl);
    if (is_narrow())
        printf("%.8s\n", owner);
    else
        printf("%17s %s\n", token, owner);
    print_people("held by ", &used->holders);
    print_people("waits:  ", &used->waiters);
}

/* What others do meanwhile may leave nothing to tell; what cannot be asked is not told. */
static void ask_people(lk_client_t *client, struct used *used)
{
    if (used->row->holders > 0 && ask_holders(client, used->row->kind, used->name, &used->holders) != 0)
        used->holders.count = 0;
    if (used->row->waiters > 0 && ask_waiters(client, used->row->kind, used->name, &used->waiters) != 0)
        used->waiters.count = 0;
}

static void print_rows(const struct settings *s, lk_client_t *client, const char *name, const struct rows *rows)
{
    static const struct row free_row = { "-", "free", 0, 0, -1, -1, 0, { 0 } };
    for (int i = 0; i < rows->count || i == 0; i++) {
        struct used used = { .settings = s, .name = name, .row = rows->count > 0 ? &rows->row[i] : &free_row };
        ask_people(client, &used);
        (s->json ? print_object : print_used)(&used);
    }
}

static bool is_taken(const struct rows *rows)
{
    for (int i = 0; i < rows->count; i++)
        if (rows->row[i].holders > 0)
            return true;
    return false;
}

int run_status(struct settings *s, int count, char **operands)
{
    lk_client_t *client;
    bool all_taken = true;
    int code = open_client(s, &client);
    if (code != 0)
        return code;
    if (!s->json)
        print_heading();
    for (int i = 0; i < count && code == 0; i++) {
        struct rows rows = { 0 };
        int rc = look_at_name(&rows, client, operands[i]);
        if (rc != 0)
            code = complain_of(operands[i], rc);
        else
            print_rows(s, client, operands[i], &rows);
        all_taken = all_taken && is_taken(&rows);
    }
    close_client(client);
    if (code == 0)
        code = flush_output();
    return code == 0 && s->check && !all_taken ? EXIT_NO : code;
}
