/* SPDX-License-Identifier: MIT */
/*
 * metrics.c - the counters of a client, as Prometheus reads them
 *
 * A metric is written whole: HELP and TYPE, then all its lines. Objects are looked at once, under client->mu, so each of
 * their metrics has a text of its own until then. Numbers are written as whole ones, as a decimal point is the locale's.
 */
#include "client/client.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- a text that grows ------------------------------------------------------------------------------------------------ */

struct text {
    char *bytes; /* NULL: nothing yet, or no memory */
    size_t length, size;
    bool failed;
};

/* Room for so many bytes more, and a NUL. */
static bool make_room(struct text *text, size_t more)
{
    size_t size = text->size > 0 ? text->size : 1024;
    while (size <= text->length + more)
        size *= 2;
    char *bytes = text->failed ? NULL : size == text->size ? text->bytes : lk__realloc(text->bytes, size);
    text->failed = bytes == NULL;
    if (bytes == NULL)
        return false;
    text->bytes = bytes;
    text->size = size;
    return true;
}

static void add(struct text *text, const char *bytes, size_t length)
{
    if (!make_room(text, length))
        return;
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

static void print(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A line, or a part of one, without what users gave. */
static void print(struct text *text, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    assert(length >= 0 && (size_t)length < sizeof line);
    add(text, line, (size_t)length);
}

/* The value of a label. */
static void add_escaped(struct text *text, const char *value)
{
    for (; *value != '\0'; value++)
        if (*value == '\n')
            add(text, "\\n", 2);
        else if (*value == '\\' || *value == '"')
            add(text, (char[]){ '\\', *value }, 2);
        else
            add(text, value, 1);
}

static void head(struct text *text, const char *name, const char *type, const char *help)
{
    print(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* --- histograms ------------------------------------------------------------------------------------------------------- */

/* A bound as a label: "0.005", "300". */
static const char *bound_text(char text[32], int64_t millionths)
{
    int length = snprintf(text, 32, "%lld.%06lld", (long long)(millionths / 1000000), (long long)(millionths % 1000000));
    while (text[length - 1] == '0')
        text[--length] = '\0';
    if (text[length - 1] == '.')
        text[length - 1] = '\0';
    return text;
}

/* `labels`: "", or those of all its lines. Buckets are cumulative, and the last is the count. */
static void histogram(struct text *text, const char *name, const char *labels, const struct lk__histogram *histogram,
                      const int64_t *bounds)
{
    const char *comma = labels[0] != '\0' ? "," : "", *open = labels[0] != '\0' ? "{" : "";
    const char *close = labels[0] != '\0' ? "}" : "";
    unsigned long long sum = atomic_load(&histogram->sum), count = 0;
    char bound[32];
    for (int i = 0; i < LK__BUCKETS; i++) {
        count += atomic_load(&histogram->buckets[i]);
        print(text, "%s_bucket{%s%sle=\"%s\"} %llu\n", name, labels, comma,
              i < LK__BUCKETS - 1 ? bound_text(bound, bounds[i]) : "+Inf", count);
    }
    print(text, "%s_sum%s%s%s %llu.%06llu\n", name, open, labels, close, sum / 1000000, sum % 1000000);
    print(text, "%s_count%s%s%s %llu\n", name, open, labels, close, count);
}

/* --- the client ------------------------------------------------------------------------------------------------------- */

static void counter(struct text *text, const char *name, const char *help, unsigned long long value)
{
    head(text, name, "counter", help);
    print(text, "%s %llu\n", name, value);
}

static void write_client(struct text *text, lk_client_t *client)
{
    struct lk__nodestats stats = lk__node_stats(&client->node);
    head(text, "latchkey_build_info", "gauge", "The version of the library.");
    print(text, "latchkey_build_info{version=\"%s\"} 1\n", lk_version());
    counter(text, "latchkey_reconnects_total", "Connections for commands that were made anew.",
            stats.connects > 0 ? stats.connects - 1 : 0);
    counter(text, "latchkey_round_trips_total", "Answers to locks, unlocks, polls and renewals.", stats.round_trips);
    counter(text, "latchkey_script_reloads_total", "Scripts that the server did not know.", stats.reloads);
    counter(text, "latchkey_messages_total", "Grants and hints that were heard.", atomic_load(&client->hub.messages));
    head(text, "latchkey_renewal_margin_ratio", "histogram",
         "Share of a lease that was left when its renewal succeeded: two thirds are on time.");
    histogram(text, "latchkey_renewal_margin_ratio", "", &client->dog.margins, lk__histogram_shares);
}

/* --- kinds of objects ------------------------------------------------------------------------------------------------- */

static const char *label_of(char label[32], int kind)
{
    snprintf(label, 32, "kind=\"%s\"", lk__kind_name(kind));
    return label;
}

static void write_histograms(struct text *text, const struct lk__kindstats *stats)
{
    char label[32];
    head(text, "latchkey_wait_seconds", "histogram", "How long acquiring took, of those that were acquired.");
    for (int kind = 1; kind < LK__KINDS; kind++)
        histogram(text, "latchkey_wait_seconds", label_of(label, kind), &stats[kind].wait, lk__histogram_times);
    head(text, "latchkey_hold_seconds", "histogram", "How long holds were held that were not lost.");
    for (int kind = 1; kind < LK__KINDS; kind++)
        histogram(text, "latchkey_hold_seconds", label_of(label, kind), &stats[kind].hold, lk__histogram_times);
}

static void write_losses(struct text *text, const struct lk__kindstats *stats)
{
    head(text, "latchkey_holds_lost_total", "counter", "Holds whose lease was lost while they were held.");
    for (int kind = 1; kind < LK__KINDS; kind++)
        for (int reason = 1; reason < LK__REASONS; reason++)
            print(text, "latchkey_holds_lost_total{kind=\"%s\",reason=\"%s\"} %llu\n", lk__kind_name(kind),
                  lk__reason_name(reason), atomic_load(&stats[kind].losses[reason]));
}

static void write_kinds(struct text *text, const struct lk__kindstats *stats)
{
    char label[32];
    write_histograms(text, stats);
    head(text, "latchkey_contended_total", "counter", "Acquisitions that had to wait for others.");
    for (int kind = 1; kind < LK__KINDS; kind++)
        print(text, "latchkey_contended_total{%s} %llu\n", label_of(label, kind), atomic_load(&stats[kind].contended));
    write_losses(text, stats);
    head(text, "latchkey_long_waits_total", "counter", "Waits that were longer than warn_wait.");
    for (int kind = 1; kind < LK__KINDS; kind++)
        print(text, "latchkey_long_waits_total{%s} %llu\n", label_of(label, kind), atomic_load(&stats[kind].long_waits));
    head(text, "latchkey_long_holds_total", "counter", "Holds that were longer than warn_hold.");
    for (int kind = 1; kind < LK__KINDS; kind++)
        print(text, "latchkey_long_holds_total{%s} %llu\n", label_of(label, kind), atomic_load(&stats[kind].long_holds));
    head(text, "latchkey_waiting", "gauge", "Threads that want something at this moment.");
    for (int kind = 1; kind < LK__KINDS; kind++)
        print(text, "latchkey_waiting{%s} %d\n", label_of(label, kind), atomic_load(&stats[kind].waiting));
    head(text, "latchkey_held", "gauge", "Holds that were not given back yet, lost ones as well.");
    for (int kind = 1; kind < LK__KINDS; kind++)
        print(text, "latchkey_held{%s} %d\n", label_of(label, kind), atomic_load(&stats[kind].held));
}

/* --- objects ---------------------------------------------------------------------------------------------------------- */

enum { ACQUISITIONS, CONTENDED, RENEWALS, LOST, WAITING, COLUMNS };

static const struct {
    const char *name, *type, *help;
} columns[COLUMNS] = {
    [ACQUISITIONS] = { "latchkey_object_acquisitions_total", "counter", "Times a thread became the holder of it." },
    [CONTENDED] = { "latchkey_object_contended_total", "counter", "Acquisitions of it that had to wait for others." },
    [RENEWALS] = { "latchkey_object_renewals_total", "counter", "Renewals of its leases that succeeded." },
    [LOST] = { "latchkey_object_holds_lost_total", "counter", "Holds of it whose lease was lost while they were held." },
    [WAITING] = { "latchkey_object_waiting", "gauge", "Threads that want it at this moment." },
};

struct listing {
    struct text texts[COLUMNS];
    int most, shown;
    unsigned long long left_out;
};

static void add_line(struct listing *listing, int column, int kind, const char *name, unsigned long long value)
{
    struct text *text = &listing->texts[column];
    print(text, "%s{kind=\"%s\",name=\"", columns[column].name, lk__kind_name(kind));
    add_escaped(text, name);
    print(text, "\"} %llu\n", value);
}

static void list_member(struct lk__entry *entry, void *arg)
{
    struct listing *listing = arg;
    struct lk__member *member = LK__CONTAINER(entry, struct lk__member, entry);
    struct lk__memberstats stats;
    int shows = EILSEQ;
    if (listing->shown < listing->most) {
        member->role->describe(member, &stats);
        shows = lk__member_show(stats.name);
    }
    listing->left_out += shows == EILSEQ;
    listing->texts[0].failed |= shows == ENOMEM;
    if (shows != 0)
        return;
    listing->shown++;
    add_line(listing, ACQUISITIONS, entry->kind, stats.name, stats.acquisitions);
    add_line(listing, CONTENDED, entry->kind, stats.name, stats.contended);
    add_line(listing, RENEWALS, entry->kind, stats.name, stats.renewals);
    add_line(listing, LOST, entry->kind, stats.name, stats.losses);
    add_line(listing, WAITING, entry->kind, stats.name, (unsigned long long)stats.waiting);
}

static void write_objects(struct text *text, lk_client_t *client, int most)
{
    struct listing listing = { .most = most };
    lk__mu_lock(&client->mu);
    lk__map_each(&client->members, list_member, &listing);
    lk__mu_unlock(&client->mu);
    for (int i = 0; i < COLUMNS; i++) {
        struct text *lines = &listing.texts[i];
        if (lines->length > 0) {
            head(text, columns[i].name, columns[i].type, columns[i].help);
            add(text, lines->bytes, lines->length);
        }
        text->failed |= lines->failed;
        lk__free(lines->bytes);
    }
    head(text, "latchkey_objects_left_out", "gauge", "Objects that have no metrics of their own.");
    print(text, "latchkey_objects_left_out %llu\n", listing.left_out);
}

int lk_client_metrics(lk_client_t *client, int objects, char **text)
{
    struct text page = { NULL, 0, 0, false };
    if (text == NULL)
        return lk__fail(EINVAL, "lk_client_metrics: nowhere to put the text");
    if (objects < 0 || objects > LK_METRICS_OBJECTS_MAX)
        return lk__fail(EINVAL, "lk_client_metrics: %d objects: 0 to %d", objects, LK_METRICS_OBJECTS_MAX);
    struct lk__apistate api = lk__api_enter();
    int rc = lk__client_enter(client);
    if (rc != 0)
        return lk__api_leave(&api, rc);
    write_client(&page, client);
    write_kinds(&page, client->stats);
    write_objects(&page, client, objects);
    lk__client_leave(client);
    if (page.failed) {
        lk__free(page.bytes);
        return lk__api_leave(&api, lk__fail(ENOMEM, "out of memory for metrics"));
    }
    *text = page.bytes;
    return lk__api_leave(&api, 0);
}
