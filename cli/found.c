/* SPDX-License-Identifier: MIT */
/*
 * found.c - objects that a walk found: collected, sorted, and said as a table or as JSON
 */
#include "found.h"
#include "who.h"
#include "words.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { ASKED_MAX = 256 };

/* A client that holds something. */
struct acquaintance {
    char id[CLIENT_ID + 1];
    bool known;
    lk_who_t who;
};

/* --- found -------------------------------------------------------------------------------------------------------- */

static int add(struct found *found, const lk_inspected_t *object)
{
    if (found->count == found->room) {
        size_t room = found->room == 0 ? 64 : 2 * found->room;
        lk_inspected_t *each = realloc(found->each, room * sizeof *each);
        if (each == NULL)
            return ENOMEM;
        found->each = each;
        found->room = room;
    }
    found->each[found->count++] = *object;
    return 0;
}

static int walk_through(lk_inspect_t *walk, struct found *found)
{
    lk_inspected_t object = LK_INSPECTED_INIT;
    int rc;
    while ((rc = lk_inspect_next(walk, &object)) == 0)
        if (add(found, &object) != 0)
            return ENOMEM;
    return rc == ENOENT ? lk_inspect_stats(walk, &found->stats) : rc;
}

static int compare_names(const void *a, const void *b)
{
    const lk_inspected_t *left = a, *right = b;
    int names = strcmp(left->name, right->name);
    if (names == 0)
        names = (left->kind > right->kind) - (left->kind < right->kind);
    return names != 0 ? names : (left->server > right->server) - (left->server < right->server);
}

/* SCAN may have said some of them twice: the second look is the later one. */
static void drop_repeated(struct found *found)
{
    size_t kept = 0;
    for (size_t i = 0; i < found->count; i++) {
        if (kept > 0 && compare_names(&found->each[kept - 1], &found->each[i]) == 0)
            kept--;
        found->each[kept++] = found->each[i];
    }
    found->count = kept;
}

void sort_by_name(struct found *found)
{
    if (found->count > 0)
        qsort(found->each, found->count, sizeof *found->each, compare_names);
}

static int compare_waiting(const void *a, const void *b)
{
    const lk_inspected_t *left = a, *right = b;
    if (left->waiters != right->waiters)
        return left->waiters < right->waiters ? 1 : -1;
    if (left->waited_ms != right->waited_ms)
        return left->waited_ms < right->waited_ms ? 1 : -1;
    if (left->held_ms != right->held_ms)
        return left->held_ms < right->held_ms ? 1 : -1;
    return compare_names(a, b);
}

void sort_by_waiting(struct found *found)
{
    if (found->count > 0)
        qsort(found->each, found->count, sizeof *found->each, compare_waiting);
}

void tell_unseen(const struct settings *s, const lk_inspectstats_t *stats)
{
    if (stats->hidden > 0 && !s->quiet)
        complain("%s: access rules (ACL) keep %llu of %llu keys from this user", s->command->name, stats->hidden,
                 stats->keys);
    if (stats->servers_away > 0 && !s->quiet)
        complain("%s: %u of %u servers of the quorum do not answer: what they have is not told", s->command->name,
                 stats->servers_away, stats->servers);
    if (stats->slots_missing > 0 && !s->quiet)
        complain("%s: %u slots of the cluster have no node that is known", s->command->name, stats->slots_missing);
}

int find_all(const struct settings *s, lk_client_t *client, const char *pattern, unsigned kinds, struct found *found)
{
    lk_inspectattr_t attr = LK_INSPECTATTR_INIT;
    lk_inspect_t *walk;
    *found = (struct found){ .stats = LK_INSPECTSTATS_INIT, .client = client };
    attr.pattern = pattern;
    attr.kinds = kinds;
    int rc = lk_inspect_open(&walk, client, &attr);
    if (rc == 0) {
        rc = walk_through(walk, found);
        lk_inspect_close(walk);
    }
    if (rc != 0)
        return complain_of(s->command->name, rc);
    sort_by_name(found);
    drop_repeated(found);
    return EXIT_OK;
}

void found_free(struct found *found)
{
    free(found->each);
    free(found->met);
    *found = (struct found){ 0 };
}

/* --- said --------------------------------------------------------------------------------------------------------- */

static const char *kind_of(const lk_inspected_t *object)
{
    static const char *const names[] = {
        [LK_KIND_MUTEX] = "mutex",     [LK_KIND_RWLOCK] = "rwlock",  [LK_KIND_SEM] = "semaphore",
        [LK_KIND_PERMITS] = "permits", [LK_KIND_LATCH] = "latch",    [LK_KIND_ONCE] = "once",
        [LK_KIND_BARRIER] = "barrier", [LK_KIND_COND] = "condition", [LK_KIND_REDLOCK] = "redlock",
    };
    bool known = object->kind > 0 && object->kind < (int)(sizeof names / sizeof *names);
    return known && names[object->kind] != NULL ? names[object->kind] : "?";
}

static const char *state_of(const lk_inspected_t *object)
{
    static const char *const names[] = {
        [LK_STATE_FREE] = "free",           [LK_STATE_EXCLUSIVE] = "exclusive",
        [LK_STATE_SHARED] = "shared",       [LK_STATE_COUNTING] = "counting",
        [LK_STATE_OPEN] = "open",           [LK_STATE_COMPLETE] = "complete",
        [LK_STATE_BROKEN] = "broken",       [LK_STATE_OWNERDEAD] = "owner-dead",
        [LK_STATE_UNRECOVERABLE] = "unrecoverable",
    };
    bool known = object->state > 0 && object->state < (int)(sizeof names / sizeof *names);
    return known ? names[object->state] : "?";
}

void make_printable(char *text)
{
    for (; *text != 0; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

const char *printable_name(char copy[LK_NAME_MAX + 1], const char *name)
{
    snprintf(copy, LK_NAME_MAX + 1, "%s", name);
    make_printable(copy);
    return copy;
}

/* "27.4s", "3m", "5h"; "-" is not known. */
static void write_time(char text[16], int64_t ms)
{
    if (ms < 0)
        strcpy(text, "-");
    else if (ms < 100000)
        snprintf(text, 16, "%.1fs", (double)ms / 1e3);
    else if (ms < 100 * 60000)
        snprintf(text, 16, "%lldm", (long long)(ms / 60000));
    else
        snprintf(text, 16, "%lldh", (long long)(ms / 3600000));
}

/* Of what counts, its number: "2/3" of so many, or "2". */
static void write_state(char text[48], const lk_inspected_t *object)
{
    if (object->state != LK_STATE_COUNTING || object->number < 0)
        snprintf(text, 48, "%s", state_of(object));
    else if (object->total >= 0)
        snprintf(text, 48, "%lld/%lld", (long long)object->number, (long long)object->total);
    else
        snprintf(text, 48, "%lld", (long long)object->number);
}

static int name_width(const struct found *found)
{
    size_t width = 4;
    for (size_t i = 0; i < found->count; i++)
        if (strlen(found->each[i].name) > width)
            width = strlen(found->each[i].name);
    return width < 40 ? (int)width : 40;
}

/* Columns of the terminal; a line that goes elsewhere is as long as it is. */
static int line_width(void)
{
    struct winsize size;
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 4096;
}

static void print_line(int width, const char *line)
{
    printf("%.*s\n", width, line);
}

/* Who a holder is, each client asked for once; NULL: nothing is known, or too many were asked for. */
static const lk_who_t *who_of(struct found *found, const char *holder)
{
    if (strcspn(holder, ":") != CLIENT_ID)
        return NULL;
    for (size_t i = 0; i < found->met_count; i++)
        if (strncmp(found->met[i].id, holder, CLIENT_ID) == 0)
            return found->met[i].known ? &found->met[i].who : NULL;
    if (found->met == NULL)
        found->met = calloc(ASKED_MAX, sizeof *found->met);
    if (found->met == NULL || found->met_count == ASKED_MAX)
        return NULL;
    struct acquaintance *met = &found->met[found->met_count++];
    memcpy(met->id, holder, CLIENT_ID);
    int rc = ask_who(found->client, met->id, &met->who);
    met->known = rc == 0;
    if (rc != 0 && rc != ENOENT) /* the next one would take as long to fail, or be refused as well */
        found->met_count = ASKED_MAX;
    return met->known ? &met->who : NULL;
}

static void print_row(struct found *found, const lk_inspected_t *object, int names, int width)
{
    char line[4096], state[48], left[16], held[16], waited[16], owner[160], name[LK_NAME_MAX + 1], words[WHO_WORDS];
    const lk_who_t *who = who_of(found, object->holder);
    write_state(state, object);
    write_time(left, object->remaining_ms);
    write_time(held, object->held_ms);
    write_time(waited, object->waited_ms);
    strcpy(owner, object->holder[0] != 0 ? object->holder : "-");
    make_printable(owner);
    snprintf(line, sizeof line, "%-*s %-9s %-13s %7u %7u %8s %8s %8s %s%s%s", names, printable_name(name, object->name),
             kind_of(object), state, object->holders, object->waiters, left, held, waited, owner, who != NULL ? " " : "",
             who != NULL ? who_words(words, who) : "");
    print_line(width, line);
}

void print_found(struct found *found, size_t most)
{
    char line[256];
    int names = name_width(found), width = line_width();
    size_t count = most != 0 && most < found->count ? most : found->count;
    snprintf(line, sizeof line, "%-*s %-9s %-13s %7s %7s %8s %8s %8s %s", names, "NAME", "KIND", "STATE", "HOLDERS",
             "WAITERS", "TTL", "HELD", "WAITED", "OWNER");
    print_line(width, line);
    for (size_t i = 0; i < count; i++)
        print_row(found, &found->each[i], names, width);
}

json_t *text_of(const char *text)
{
    json_t *json = json_string(text);
    char copy[LK_NAME_MAX + 1];
    return json != NULL ? json : json_string(printable_name(copy, text));
}

void print_json(const struct settings *s, json_t *object)
{
    json_object_set_new(object, "server", json_string(s->server));
    json_dumpf(object, stdout, JSON_COMPACT);
    json_decref(object);
    putchar('\n');
}

static void set_if_known(json_t *object, const char *key, int64_t value)
{
    if (value >= 0)
        json_object_set_new(object, key, json_integer(value));
}

void print_found_json(struct found *found)
{
    for (size_t i = 0; i < found->count; i++) {
        const lk_inspected_t *it = &found->each[i];
        json_t *object = json_pack("{s:o, s:s, s:s, s:I, s:I}", "name", text_of(it->name), "kind", kind_of(it), "state",
                                   state_of(it), "holders", (json_int_t)it->holders, "waiters",
                                   (json_int_t)it->waiters);
        set_if_known(object, "ttl_ms", it->remaining_ms);
        set_if_known(object, "held_ms", it->held_ms);
        set_if_known(object, "waited_ms", it->waited_ms);
        set_if_known(object, "count", it->number);
        set_if_known(object, "total", it->total);
        if (it->token != 0)
            json_object_set_new(object, "token", json_integer((json_int_t)it->token));
        if (it->holder[0] != 0)
            json_object_set_new(object, "owner", text_of(it->holder));
        const lk_who_t *who = who_of(found, it->holder);
        if (who != NULL)
            json_object_set_new(object, "who", who_object(who));
        if (it->server != 0)
            json_object_set_new(object, "server", json_integer(it->server));
        json_dumpf(object, stdout, JSON_COMPACT);
        json_decref(object);
        putchar('\n');
    }
}
