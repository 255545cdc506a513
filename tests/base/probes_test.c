/* SPDX-License-Identifier: MIT */
/*
 * probes_test.c - the library has the tracepoints that docs/statistics.md lists, with as many arguments, if it has any
 */
#include "base/probe.h"
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DOCS LK_SOURCE_DIR "/docs/statistics.md"

static char notes[65536], docs[65536];

static void read_all(FILE *file, char *text, size_t size)
{
    assert_non_null(file);
    text[fread(text, 1, size - 1, file)] = '\0';
}

/* The arguments of each place where it is, "8@%rax -4@$1"; how many places there are. */
static int places(const char *name, int arguments)
{
    static const char provided[] = "    Provider: latchkey\n";
    char line[64];
    int count = 0;
    snprintf(line, sizeof line, "    Name: %s\n", name);
    for (const char *at = notes; (at = strstr(at, line)) != NULL; at++, count++) {
        const char *provider = at - strlen(provided), *given = strstr(at, "    Arguments: ");
        int found = 0;
        assert_true(provider >= notes && strncmp(provider, provided, strlen(provided)) == 0);
        assert_non_null(given);
        for (const char *end = strchr(given, '\n'); given < end; given++)
            found += *given == '@';
        assert_int_equal(found, arguments);
    }
    return count;
}

/* How many are named in its row: words behind commas. */
static int described(const char *name)
{
    char row[64];
    snprintf(row, sizeof row, "\n| `%s` | ", name);
    const char *at = strstr(docs, row);
    if (at == NULL)
        fail_msg("docs/statistics.md does not describe the tracepoint %s", name);
    at = strstr(at + strlen(row), " | "); /* past when it is */
    int count = 1;
    for (const char *end = strchr(at, '\n'); at < end && *at != '('; at++)
        count += *at == ',';
    return count;
}

static void all_are_in_the_library(void)
{
    static const char *const names[] = { "acquire", "wait", "grant", "renew", "lost", "release" };
    FILE *file = fopen(DOCS, "r");
    if (!LK__PROBES || file == NULL || system("command -v readelf >/dev/null 2>&1") != 0)
        skip();
    read_all(file, docs, sizeof docs);
    fclose(file);
    file = popen("readelf -nW " LK_LIBRARY, "r");
    read_all(file, notes, sizeof notes);
    assert_int_equal(0, pclose(file));
    int count = 0, all = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int found = places(names[i], described(names[i]));
        if (found == 0)
            fail_msg("the library has no tracepoint %s", names[i]);
        count += found;
    }
    for (const char *at = notes; (at = strstr(at, "Provider: latchkey\n")) != NULL; at++)
        all++;
    assert_int_equal(count, all); /* and no others */
}

int main(void)
{
    return plain_run(all_are_in_the_library);
}
