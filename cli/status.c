/* SPDX-License-Identifier: MIT */
/*
 * status.c - `latchkey status`: a line for each object of a name
 */
#include "client.h"
#include "command.h"
#include "found.h"
#include "look.h"
#include "terminal.h"
#include "words.h"

#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

enum { WHOLE_WIDTH = 129 /* of a line with the token and the whole owner */ };

static void print_object(const char *name, const struct row *row)
{
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
    json_dumpf(object, stdout, JSON_COMPACT);
    json_decref(object);
    putchar('\n');
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

static void print_row(const char *name, const struct row *row)
{
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
}

static void print_rows(const struct settings *s, const char *name, const struct rows *rows)
{
    static const struct row free_row = { "-", "free", 0, 0, -1, -1, 0, { 0 } };
    for (int i = 0; i < rows->count || i == 0; i++) {
        const struct row *row = rows->count > 0 ? &rows->row[i] : &free_row;
        (s->json ? print_object : print_row)(name, row);
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
            print_rows(s, operands[i], &rows);
        all_taken = all_taken && is_taken(&rows);
    }
    close_client(client);
    if (code == 0)
        code = flush_output();
    return code == 0 && s->check && !all_taken ? EXIT_NO : code;
}
