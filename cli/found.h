/* SPDX-License-Identifier: MIT */
/*
 * found.h - objects that a walk found, and how they are said: `latchkey ls`, `top` and `force-release`
 */
#ifndef CLI_FOUND_H
#define CLI_FOUND_H

#include "command.h"

#include <jansson.h>
#include <latchkey/latchkey.h>

struct found {
    lk_inspected_t *each;
    size_t count, room;
    lk_inspectstats_t stats;
    lk_client_t *client;
    struct acquaintance *met; /* clients that were asked for */
    size_t met_count;
};

/* Walk through all that there is; 0, or an exit code: complained. found_free() in any case. */
int find_all(const struct settings *settings, lk_client_t *client, const char *pattern, unsigned kinds,
             struct found *found);
void found_free(struct found *found);

/* What could not be seen is said, so that an empty table is no promise: after the table, which may clear the screen. */
void tell_unseen(const struct settings *settings, const lk_inspectstats_t *stats);

void sort_by_name(struct found *found);
void sort_by_waiting(struct found *found); /* those first who keep most others waiting, then for longest */

/*
 * A table as wide as the terminal, if standard output is one; at most `most` lines, 0: all. Who holds something is asked for,
 * of so many clients that it takes no time to speak of.
 */
void print_found(struct found *found, size_t most);
/* An object a line. */
void print_found_json(struct found *found);

/* Bytes that a terminal would not print as they are become '?'. */
void make_printable(char *text);
/* The same of a name in a copy, which is returned. */
const char *printable_name(char copy[LK_NAME_MAX + 1], const char *name);

/* For JSON: a text that is no UTF-8 is said with '?'. The caller's. */
json_t *text_of(const char *text);

/* Print a line of --json, with the server in use. Takes `object`. */
void print_json(const struct settings *settings, json_t *object);

#endif
