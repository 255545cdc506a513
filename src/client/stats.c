/* SPDX-License-Identifier: MIT */
/*
 * stats.c - the counters of a client, as JSON and as Prometheus reads them
 *
 * One table names them all. Each counter is right, but two of them may be a call apart. Without memory for a part there
 * is no text at all. For Prometheus numbers are written as whole ones, because a decimal point is the locale's.
 */
#include "client/client.h"
#include "config/json.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { SERVER_SHOWN = 1024 }; /* of a URL with many hosts the first */

/* --- what is counted ------------------------------------------------------------------------------------ */

struct clientstats {
    long long reconnects, round_trips, reloads, messages;
    const struct lk__histogram *margins;
};

enum level { CLIENT, KIND, OBJECT };
enum type { COUNTER, GAUGE, LOSSES, TIMES, SHARES };

/* In the order of both texts. `at`: where it is in the struct of its level. */
static const struct counter {
    enum level level;
    enum type type;
    size_t at;
    const char *json, *metric, *help;
} counters[] = {
#define OF_CLIENT(type, field) CLIENT, type, offsetof(struct clientstats, field)
#define OF_KIND(type, field) KIND, type, offsetof(struct lk__kindstats, field)
#define OF_OBJECT(type, field) OBJECT, type, offsetof(struct lk__memberstats, field)
    { OF_CLIENT(COUNTER, reconnects), "reconnects", "latchkey_reconnects_total",
      "Connections for commands that were made anew." },
    { OF_CLIENT(COUNTER, round_trips), "round_trips", "latchkey_round_trips_total",
      "Answers to locks, unlocks, polls and renewals." },
    { OF_CLIENT(COUNTER, reloads), "script_reloads", "latchkey_script_reloads_total",
      "Scripts that the server did not know." },
    { OF_CLIENT(COUNTER, messages), "messages", "latchkey_messages_total", "Grants and hints that were heard." },
    { OF_CLIENT(SHARES, margins), "renewal_margin", "latchkey_renewal_margin_ratio",
      "Share of a lease that was left when its renewal succeeded: two thirds are on time." },
    { OF_KIND(TIMES, wait), "wait_seconds", "latchkey_wait_seconds",
      "How long acquiring took, of those that were acquired." },
    { OF_KIND(TIMES, hold), "hold_seconds", "latchkey_hold_seconds", "How long holds were held that were not lost." },
    { OF_KIND(COUNTER, contended), "contended", "latchkey_contended_total",
      "Acquisitions that had to wait for others." },
    { OF_KIND(LOSSES, losses), "lost", "latchkey_holds_lost_total",
      "Holds whose lease was lost while they were held." },
    { OF_KIND(COUNTER, long_waits), "long_waits", "latchkey_long_waits_total",
      "Waits that were longer than warn_wait." },
    { OF_KIND(COUNTER, long_holds), "long_holds", "latchkey_long_holds_total",
      "Holds that were longer than warn_hold." },
    { OF_KIND(GAUGE, waiting), "waiting", "latchkey_waiting", "Threads that want something at this moment." },
    { OF_KIND(GAUGE, held), "held", "latchkey_held", "Holds that were not given back yet, lost ones as well." },
    { OF_OBJECT(COUNTER, acquisitions), "acquisitions", "latchkey_object_acquisitions_total",
      "Times a thread became the holder of it." },
    { OF_OBJECT(COUNTER, contended), "contended", "latchkey_object_contended_total",
      "Acquisitions of it that had to wait for others." },
    { OF_OBJECT(COUNTER, renewals), "renewals", "latchkey_object_renewals_total",
      "Renewals of its leases that succeeded." },
    { OF_OBJECT(COUNTER, losses), "lost", "latchkey_object_holds_lost_total",
      "Holds of it whose lease was lost while they were held." },
    { OF_OBJECT(GAUGE, waiting), "waiting", "latchkey_object_waiting", "Threads that want it at this moment." },
};

static const struct counter *const behind = counters + sizeof counters / sizeof *counters;

const char *const lk__kind_names[LK__KINDS] = {
#define KIND(number, name, set, flag) [LK_KIND_##number] = name,
#include "client/kinds.def"
};

static const char *const reasons[LK__REASONS] = {
    [LK_REASON_EXPIRED] = "expired",   [LK_REASON_GONE] = "gone",   [LK_REASON_THREAD_EXIT] = "thread_exit",
    [LK_REASON_MAX_HOLD] = "max_hold", [LK_REASON_FIXED] = "fixed",
};

static struct clientstats stats_of(lk_client_t *client)
{
    struct lk__nodestats stats = lk__node_stats(&client->node);
    return (struct clientstats){ .reconnects = (long long)(stats.connects > 0 ? stats.connects - 1 : 0),
                                 .round_trips = (long long)stats.round_trips,
                                 .reloads = (long long)stats.reloads,
                                 .messages = (long long)atomic_load(&client->hub.messages),
                                 .margins = &client->dog.margins };
}

/* `base`: the struct of the counter's level, of which only a kind's changes meanwhile. `n`: of losses the reason. */
static long long count_of(const struct counter *counter, const void *base, int n)
{
    const void *at = (const char *)base + counter->at;
    return counter->level == KIND ? atomic_load((const atomic_llong *)at + n) : *(const long long *)at;
}

/* Of TIMES or SHARES. */
static const struct lk__histogram *histogram_of(const struct counter *counter, const void *base)
{
    const void *at = (const char *)base + counter->at;
    return counter->type == TIMES ? at : *(const struct lk__histogram *const *)at;
}

static const int64_t *bounds_of(const struct counter *counter)
{
    return counter->type == TIMES ? lk__histogram_times : lk__histogram_shares;
}

/* The next object of at most `most`, if there is room and its name can stand in a text. */
static bool describe(struct lk__entry *entry, size_t shown, size_t most, struct lk__memberstats *stats)
{
    struct lk__member *member = LK__CONTAINER(entry, struct lk__member, entry);
    if (shown >= most)
        return false;
    member->role->describe(member, stats);
    return lk__json_isutf8(stats->name);
}

/* --- JSON ----------------------------------------------------------------------------------------------- */

static json_t *all_or_none(json_t *json, bool good)
{
    if (good)
        return json;
    json_decref(json);
    return NULL;
}

/* Buckets count what is at most `le` and above the bucket before. */
static json_t *histogram_json(const struct lk__histogram *histogram, const int64_t *bounds)
{
    json_t *buckets = json_array();
    bool good = buckets != NULL;
    for (int i = 0; i < LK__BUCKETS; i++) {
        json_t *le = i < LK__BUCKETS - 1 ? json_real((double)bounds[i] / 1e6) : json_string("inf");
        json_t *bucket = json_pack("{s:o, s:I}", "le", le, "count", (json_int_t)atomic_load(&histogram->buckets[i]));
        good &= json_array_append_new(buckets, bucket) == 0;
    }
    buckets = all_or_none(buckets, good);
    return json_pack("{s:I, s:f, s:o}", "count", (json_int_t)atomic_load(&histogram->count), "sum",
                     (double)atomic_load(&histogram->sum) / 1e6, "buckets", buckets);
}

static json_t *losses_json(const struct counter *counter, const void *base)
{
    json_t *losses = json_object();
    bool good = losses != NULL;
    for (int reason = 1; reason < LK__REASONS; reason++)
        good &= json_object_set_new(losses, reasons[reason], json_integer(count_of(counter, base, reason))) == 0;
    return all_or_none(losses, good);
}

/* `json` with all counters of `level`; NULL: no memory. */
static json_t *add_counters(json_t *json, enum level level, const void *base)
{
    bool good = json != NULL;
    for (const struct counter *c = counters; c < behind; c++) {
        if (c->level != level)
            continue;
        json_t *value = c->type == LOSSES                       ? losses_json(c, base)
                        : c->type == TIMES || c->type == SHARES ? histogram_json(histogram_of(c, base), bounds_of(c))
                                                                : json_integer(count_of(c, base, 0));
        good &= json_object_set_new(json, c->json, value) == 0;
    }
    return all_or_none(json, good);
}

static json_t *client_json(lk_client_t *client)
{
    const struct clientstats stats = stats_of(client);
    char server[SERVER_SHOWN];
    lk__options_print(client->options, server, sizeof server);
    return add_counters(json_pack("{s:s, s:s}", "id", client->id, "server", server), CLIENT, &stats);
}

static json_t *kinds_json(const struct lk__kindstats stats[LK__KINDS])
{
    json_t *json = json_object();
    bool good = json != NULL;
    for (int kind = 1; kind < LK__KINDS; kind++)
        good &= json_object_set_new(json, lk__kind_names[kind], add_counters(json_object(), KIND, &stats[kind])) == 0;
    return all_or_none(json, good);
}

struct listing {
    json_t *objects;
    json_int_t left_out;
    bool good; /* there was memory for all of them */
};

static void list_json(struct lk__entry *entry, void *arg)
{
    struct listing *listing = arg;
    struct lk__memberstats stats;
    if (!describe(entry, json_array_size(listing->objects), LK_METRICS_OBJECTS_MAX, &stats)) {
        listing->left_out++;
        return;
    }
    json_t *json = json_pack("{s:s, s:s}", "name", stats.name, "kind", lk__kind_names[entry->kind]);
    listing->good &= json_array_append_new(listing->objects, add_counters(json, OBJECT, &stats)) == 0;
}

/* Print into memory of the right size: where a text has to grow, jansson may leave a key out without an error. */
char *lk__json_text(const json_t *json)
{
    const size_t flags = JSON_INDENT(2) | JSON_PRESERVE_ORDER;
    size_t size = json_dumpb(json, NULL, 0, flags);
    char *text = size > 0 ? lk__alloc(size + 1) : NULL;
    if (text != NULL && json_dumpb(json, text, size, flags) == size)
        return text;
    lk__free(text);
    return NULL;
}

static char *write_json(lk_client_t *client)
{
    struct listing listing = { json_array(), 0, true };
    lk__mu_lock(&client->mu);
    lk__map_each(&client->members, list_json, &listing);
    lk__mu_unlock(&client->mu);
    listing.objects = all_or_none(listing.objects, listing.good);
    json_t *all =
        json_pack("{s:s, s:o, s:o, s:o, s:I}", "version", lk_version(), "client", client_json(client), "kinds",
                  kinds_json(client->stats), "objects", listing.objects, "objects_left_out", listing.left_out);
    char *text = all != NULL ? lk__json_text(all) : NULL;
    json_decref(all);
    return text;
}

int lk_client_stats(lk_client_t *client, char **json)
{
    if (json == NULL)
        return lk__fail(EINVAL, "lk_client_stats: nowhere to put the text");
    struct lk__apistate api = lk__api_enter();
    int rc = lk__client_enter(client);
    if (rc == 0) {
        char *text = write_json(client);
        if (text != NULL)
            *json = text;
        else
            rc = lk__fail(ENOMEM, "out of memory for statistics");
        lk__client_leave(client);
    }
    return lk__api_leave(&api, rc);
}

/* --- Prometheus: a metric is written whole, HELP and TYPE, then all its lines -------------------------------- */

static void write_head(FILE *page, const struct counter *counter)
{
    static const char *const types[] = { "counter", "gauge", "counter", "histogram", "histogram" };
    const char *name = counter->metric;
    fprintf(page, "# HELP %s %s\n# TYPE %s %s\n", name, counter->help, name, types[counter->type]);
}

/* A bound as a label: "0.005", "300". */
static const char *bound_text(char text[32], int64_t millionths)
{
    int length = snprintf(text, 32, "%lld.%06lld", (long long)millionths / 1000000, (long long)millionths % 1000000);
    while (text[length - 1] == '0')
        text[--length] = '\0';
    if (text[length - 1] == '.')
        text[length - 1] = '\0';
    return text;
}

/* `label`: "", or one of all its lines. Buckets are cumulative, and the last is the count. */
static void write_histogram(FILE *page, const struct counter *counter, const char *label, const void *base)
{
    const struct lk__histogram *histogram = histogram_of(counter, base);
    const char *name = counter->metric, *comma = *label != '\0' ? "," : "", *open = *label != '\0' ? "{" : "";
    const char *close = *label != '\0' ? "}" : "";
    unsigned long long sum = atomic_load(&histogram->sum), count = 0;
    char bound[32];
    for (int i = 0; i < LK__BUCKETS; i++) {
        count += atomic_load(&histogram->buckets[i]);
        fprintf(page, "%s_bucket{%s%sle=\"%s\"} %llu\n", name, label, comma,
                i < LK__BUCKETS - 1 ? bound_text(bound, bounds_of(counter)[i]) : "+Inf", count);
    }
    fprintf(page, "%s_sum%s%s%s %llu.%06llu\n", name, open, label, close, sum / 1000000, sum % 1000000);
    fprintf(page, "%s_count%s%s%s %llu\n", name, open, label, close, count);
}

static void write_counter(FILE *page, const struct counter *counter, const char *label, const void *base)
{
    if (counter->type == TIMES || counter->type == SHARES)
        write_histogram(page, counter, label, base);
    else if (counter->type != LOSSES)
        fprintf(page, *label != '\0' ? "%s{%s} %lld\n" : "%s%s %lld\n", counter->metric, label,
                count_of(counter, base, 0));
    else
        for (int reason = 1; reason < LK__REASONS; reason++)
            fprintf(page, "%s{%s,reason=\"%s\"} %lld\n", counter->metric, label, reasons[reason],
                    count_of(counter, base, reason));
}

static void write_kinds(FILE *page, const struct counter *counter, const struct lk__kindstats *stats)
{
    char label[32];
    for (int kind = 1; kind < LK__KINDS; kind++) {
        snprintf(label, sizeof label, "kind=\"%s\"", lk__kind_names[kind]);
        write_counter(page, counter, label, &stats[kind]);
    }
}

/* The value of a label. */
static void write_escaped(FILE *page, const char *value)
{
    for (; *value != '\0'; value++)
        if (*value == '\n')
            fputs("\\n", page);
        else if (*value == '\\' || *value == '"')
            fprintf(page, "\\%c", *value);
        else
            fputc(*value, page);
}

/* One metric of all objects. */
struct column {
    FILE *page;
    const struct counter *counter;
    size_t most, shown;
    long long left_out;
};

static void list_line(struct lk__entry *entry, void *arg)
{
    struct column *column = arg;
    struct lk__memberstats stats;
    if (!describe(entry, column->shown, column->most, &stats)) {
        column->left_out++;
        return;
    }
    if (column->shown++ == 0)
        write_head(column->page, column->counter);
    fprintf(column->page, "%s{kind=\"%s\",name=\"", column->counter->metric, lk__kind_names[entry->kind]);
    write_escaped(column->page, stats.name);
    fprintf(column->page, "\"} %lld\n", count_of(column->counter, &stats, 0));
}

static void write_metrics(FILE *page, lk_client_t *client, int most)
{
    const struct clientstats stats = stats_of(client);
    struct column column = { .page = page };
    fprintf(page,
            "# HELP latchkey_build_info The version of the library.\n# TYPE latchkey_build_info gauge\n"
            "latchkey_build_info{version=\"%s\"} 1\n",
            lk_version());
    lk__mu_lock(&client->mu); /* each metric has the same objects */
    for (const struct counter *c = counters; c < behind; c++) {
        column = (struct column){ .page = page, .counter = c, .most = (size_t)most };
        if (c->level != OBJECT)
            write_head(page, c);
        if (c->level == CLIENT)
            write_counter(page, c, "", &stats);
        else if (c->level == KIND)
            write_kinds(page, c, client->stats);
        else
            lk__map_each(&client->members, list_line, &column);
    }
    lk__mu_unlock(&client->mu);
    fprintf(page,
            "# HELP latchkey_objects_left_out Objects that have no metrics of their own.\n"
            "# TYPE latchkey_objects_left_out gauge\nlatchkey_objects_left_out %lld\n",
            column.left_out);
}

/* NULL: no memory. */
static char *metrics_of(lk_client_t *client, int objects)
{
    char *text = NULL;
    size_t size;
    FILE *page = open_memstream(&text, &size);
    if (page == NULL)
        return NULL;
    write_metrics(page, client, objects);
    bool failed = ferror(page) != 0;
    failed |= fclose(page) != 0;
    if (!failed)
        return text;
    lk__free(text);
    return NULL;
}

int lk_client_metrics(lk_client_t *client, int objects, char **text)
{
    if (text == NULL)
        return lk__fail(EINVAL, "lk_client_metrics: nowhere to put the text");
    if (objects < 0 || objects > LK_METRICS_OBJECTS_MAX)
        return lk__fail(EINVAL, "lk_client_metrics: %d objects: 0 to %d", objects, LK_METRICS_OBJECTS_MAX);
    struct lk__apistate api = lk__api_enter();
    int rc = lk__client_enter(client);
    if (rc != 0)
        return lk__api_leave(&api, rc);
    char *page = metrics_of(client, objects);
    lk__client_leave(client);
    if (page != NULL)
        *text = page;
    return lk__api_leave(&api, page != NULL ? 0 : lk__fail(ENOMEM, "out of memory for metrics"));
}
