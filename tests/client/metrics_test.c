/* SPDX-License-Identifier: MIT */
/*
 * metrics_test.c - metrics are what Prometheus reads, say what the statistics say, and docs/statistics.md has them all
 *
 * labels: threads memory
 */
#include "metrics.h"
#include "client/client.h"
#include "world.h"

#include <jansson.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DOCS LK_SOURCE_DIR "/docs/statistics.md"

static lk_client_t *client;
static lk_mutex_t *orders;

static void open_orders(struct world *w, const char *options)
{
    client = world_client(w, options);
    orders = world_mutex(w, client, "orders", NULL);
}

static double value_now(int objects, const char *name, const char *labels)
{
    struct metrics *metrics = metrics_of(client, objects);
    double value = metrics_value(metrics, name, labels);
    metrics_free(metrics);
    return value;
}

static json_t *stats_now(void)
{
    char *text = NULL;
    assert_lk(0, lk_client_stats(client, &text));
    json_t *json = json_loads(text, 0, NULL);
    lk_free(text);
    assert_non_null(json);
    return json;
}

/* --- the same as the statistics --------------------------------------------------------------------------- */

static void same_number(const struct metrics *metrics, const char *name, const char *labels, const json_t *json)
{
    assert_non_null(json);
    double difference = metrics_value(metrics, name, labels) - json_number_value(json);
    if (difference > 0.000001 || difference < -0.000001)
        fail_msg("%s{%s} is %f more than in the statistics", name, labels, difference);
}

/* `label`: "" or kind="mutex". */
static void same_histogram(const struct metrics *metrics, const char *name, const char *label, const json_t *json)
{
    char part[METRIC_NAME_MAX + 8], labels[64];
    json_t *bucket, *counted;
    json_int_t sum = 0;
    size_t i;
    snprintf(part, sizeof part, "%s_count", name);
    same_number(metrics, part, label, json_object_get(json, "count"));
    snprintf(part, sizeof part, "%s_sum", name);
    same_number(metrics, part, label, json_object_get(json, "sum"));
    snprintf(part, sizeof part, "%s_bucket", name);
    json_array_foreach(json_object_get(json, "buckets"), i, bucket)
    {
        json_t *le = json_object_get(bucket, "le");
        const char *comma = label[0] != '\0' ? "," : "";
        if (json_is_string(le))
            snprintf(labels, sizeof labels, "%s%sle=\"+Inf\"", label, comma);
        else
            snprintf(labels, sizeof labels, "%s%sle=\"%.15g\"", label, comma, json_number_value(le));
        sum += json_integer_value(json_object_get(bucket, "count"));
        counted = json_integer(sum);
        same_number(metrics, part, labels, counted);
        json_decref(counted);
    }
}

static void same_client(const struct metrics *metrics, const json_t *json)
{
    static const char *const counters[] = { "reconnects", "round_trips", "script_reloads", "messages" };
    char name[METRIC_NAME_MAX];
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) {
        snprintf(name, sizeof name, "latchkey_%s_total", counters[i]);
        same_number(metrics, name, "", json_object_get(json, counters[i]));
    }
    same_histogram(metrics, "latchkey_renewal_margin_ratio", "", json_object_get(json, "renewal_margin"));
}

static void same_kind(const struct metrics *metrics, const char *kind, json_t *json)
{
    char label[64], labels[96];
    const char *reason;
    json_t *number;
    snprintf(label, sizeof label, "kind=\"%s\"", kind);
    same_histogram(metrics, "latchkey_wait_seconds", label, json_object_get(json, "wait_seconds"));
    same_histogram(metrics, "latchkey_hold_seconds", label, json_object_get(json, "hold_seconds"));
    same_number(metrics, "latchkey_contended_total", label, json_object_get(json, "contended"));
    same_number(metrics, "latchkey_long_waits_total", label, json_object_get(json, "long_waits"));
    same_number(metrics, "latchkey_long_holds_total", label, json_object_get(json, "long_holds"));
    same_number(metrics, "latchkey_waiting", label, json_object_get(json, "waiting"));
    same_number(metrics, "latchkey_held", label, json_object_get(json, "held"));
    json_object_foreach(json_object_get(json, "lost"), reason, number)
    {
        snprintf(labels, sizeof labels, "%s,reason=\"%s\"", label, reason);
        same_number(metrics, "latchkey_holds_lost_total", labels, number);
    }
}

static void same_object(const struct metrics *metrics, const json_t *json)
{
    char labels[128];
    snprintf(labels, sizeof labels, "kind=\"%s\",name=\"%s\"", json_string_value(json_object_get(json, "kind")),
             json_string_value(json_object_get(json, "name")));
    same_number(metrics, "latchkey_object_acquisitions_total", labels, json_object_get(json, "acquisitions"));
    same_number(metrics, "latchkey_object_contended_total", labels, json_object_get(json, "contended"));
    same_number(metrics, "latchkey_object_renewals_total", labels, json_object_get(json, "renewals"));
    same_number(metrics, "latchkey_object_holds_lost_total", labels, json_object_get(json, "lost"));
    same_number(metrics, "latchkey_object_waiting", labels, json_object_get(json, "waiting"));
}

static void metrics_are_the_statistics(void)
{
    json_t *stats = stats_now(), *json;
    struct metrics *metrics = metrics_of(client, LK_METRICS_OBJECTS_MAX);
    const char *kind;
    size_t i, kinds = 0;
    same_client(metrics, json_object_get(stats, "client"));
    json_object_foreach(json_object_get(stats, "kinds"), kind, json)
    {
        same_kind(metrics, kind, json);
        kinds++;
    }
    assert_int_equal(kinds, LK__KINDS - 1);
    assert_int_equal(metrics_count(metrics, "latchkey_held"), kinds);
    json_array_foreach(json_object_get(stats, "objects"), i, json) same_object(metrics, json);
    assert_int_equal(metrics_count(metrics, "latchkey_object_waiting"), json_array_size(json_object_get(stats, "objects")));
    same_number(metrics, "latchkey_objects_left_out", "", json_object_get(stats, "objects_left_out"));
    metrics_free(metrics);
    json_decref(stats);
}

/* --- tests ------------------------------------------------------------------------------------------------ */

static int lock_once(int index, void *arg)
{
    (void)index;
    int rc = lk_mutex_lock(arg);
    return rc != 0 ? rc : lk_mutex_unlock(arg);
}

static int another_locks(void *arg)
{
    return lock_once(0, arg);
}

/* Held, given back, waited for, renewed and lost: all of it in both. */
static void what_happened_is_in_both(struct world *w)
{
    struct worker waiter;
    open_orders(w, "lease=6s");
    lk_latch_t *gate = world_latch(w, client, "gate");
    lk_mutex_t *bills = world_mutex(w, client, "bills", NULL);
    metrics_are_the_statistics();
    assert_lk(0, lk_latch_setcount(gate, 1));
    assert_lk(0, lk_latch_countdown(gate));
    assert_lk(0, lk_latch_wait(gate));
    assert_lk(0, lk_mutex_lock(orders));
    worker_start(&waiter, another_locks, orders);
    eventually(value_now(0, "latchkey_waiting", "kind=\"mutex\"") == 1, 5000);
    assert_true(value_now(0, "latchkey_held", "kind=\"mutex\"") == 1);
    assert_true(value_now(3, "latchkey_object_waiting", "kind=\"mutex\",name=\"orders\"") >= 0);
    eventually(value_now(0, "latchkey_renewal_margin_ratio_count", "") >= 1, 20000);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_int_equal(worker_join(&waiter), 0);
    assert_lk(0, lk_mutex_lock(bills));
    world_redis(w, "DEL bills");
    eventually(value_now(0, "latchkey_holds_lost_total", "kind=\"mutex\",reason=\"gone\"") == 1, 20000);
    metrics_are_the_statistics();
    assert_lk(ESTALE, lk_mutex_unlock(bills));
    metrics_are_the_statistics();
    assert_true(value_now(0, "latchkey_held", "kind=\"mutex\"") == 0);
    assert_true(value_now(0, "latchkey_contended_total", "kind=\"mutex\"") == 1);
    assert_true(value_now(0, "latchkey_wait_seconds_count", "kind=\"latch\"") == 1);
}

static int hold_until_renewed(void *arg)
{
    int rc = lk_mutex_lock(orders);
    for (int i = 0; rc == 0 && i < 500 && atomic_load(&client->dog.margins.count) == 0; i++)
        sleep_ms(10);
    (void)arg;
    return rc != 0 ? rc : lk_mutex_unlock(orders);
}

/* What is on time leaves two thirds of the lease, also where a hold begins by a hand-over, for less than a lease. */
static void a_renewal_on_time_leaves_two_thirds(struct world *w)
{
    struct worker waiter;
    lk_client_t *others = world_client(w, "");
    lk_mutex_t *theirs = world_mutex(w, others, "orders", NULL);
    open_orders(w, "lease=6s");
    assert_lk(0, lk_mutex_lock(theirs));
    worker_start(&waiter, hold_until_renewed, NULL);
    eventually(world_queued(w, "orders") == 1, 5000);
    assert_lk(0, lk_mutex_unlock(theirs));
    assert_int_equal(worker_join(&waiter), 0);
    assert_true(value_now(0, "latchkey_renewal_margin_ratio_count", "") == 1);
    assert_true(value_now(0, "latchkey_renewal_margin_ratio_bucket", "le=\"0.333333\"") == 0);
    world_close(w, orders);
    world_close(w, client);
    open_orders(w, "lease=6s");
    assert_lk(0, lk_mutex_lock(orders));
    eventually(value_now(0, "latchkey_renewal_margin_ratio_count", "") >= 1, 20000);
    struct metrics *metrics = metrics_of(client, 0);
    double count = metrics_value(metrics, "latchkey_renewal_margin_ratio_count", "");
    assert_true(metrics_value(metrics, "latchkey_renewal_margin_ratio_bucket", "le=\"0.333333\"") == 0);
    assert_true(metrics_value(metrics, "latchkey_renewal_margin_ratio_sum", "") < 0.80 * count);
    metrics_free(metrics);
    assert_lk(0, lk_mutex_unlock(orders));
}

static void names_are_escaped(struct world *w)
{
    open_orders(w, "");
    lk_mutex_t *odd = world_mutex(w, client, "a \"b\"\\c\nd\xc3\xa9,le=\"1\"", NULL);
    assert_lk(0, lk_mutex_lock(odd));
    assert_lk(0, lk_mutex_unlock(odd));
    assert_true(value_now(10, "latchkey_object_acquisitions_total",
                          "kind=\"mutex\",name=\"a \\\"b\\\"\\\\c\\nd\xc3\xa9,le=\\\"1\\\"\"") == 1);
}

/* The page is as long as was asked for, whatever the program names its objects. */
static void objects_too_many_or_unreadable_are_counted_only(struct world *w)
{
    enum { MANY = 20 };
    lk_mutex_t many[MANY];
    char name[16];
    open_orders(w, "");
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    lk_mutex_t *unreadable = world_mutex(w, client, "\xff\xfe", NULL);
    (void)unreadable;
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "m%d", i);
        assert_lk(0, lk_mutex_init(&many[i], client, name, NULL));
    }
    static const int asked[] = { 0, 1, 7, MANY + 1, LK_METRICS_OBJECTS_MAX };
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        int shown = asked[i] < MANY + 1 ? asked[i] : MANY + 1;
        struct metrics *metrics = metrics_of(client, asked[i]);
        assert_int_equal(metrics_count(metrics, "latchkey_object_waiting"), shown);
        assert_int_equal(metrics_value(metrics, "latchkey_objects_left_out", ""), MANY + 2 - shown);
        assert_int_equal(metrics_value(metrics, "latchkey_wait_seconds_count", "kind=\"mutex\""), 1);
        metrics_free(metrics);
    }
    for (int i = 0; i < MANY; i++)
        assert_lk(0, lk_mutex_destroy(&many[i]));
}

static void mistakes_are_told(struct world *w)
{
    char *text = (char *)1;
    client = world_client(w, "");
    assert_lk(EINVAL, lk_client_metrics(client, 0, NULL));
    assert_lk(EINVAL, lk_client_metrics(client, -1, &text));
    assert_lk(EINVAL, lk_client_metrics(client, LK_METRICS_OBJECTS_MAX + 1, &text));
    assert_ptr_equal(text, (char *)1);
}

/* A program's locale has another decimal point. */
static void numbers_are_the_same_in_every_locale(struct world *w)
{
    static const char *const locales[] = { "de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "fr_FR" };
    bool set = false;
    open_orders(w, "");
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    for (size_t i = 0; i < sizeof locales / sizeof *locales && !set; i++)
        set = setlocale(LC_NUMERIC, locales[i]) != NULL;
    char *text = NULL;
    int rc = lk_client_metrics(client, 0, &text);
    setlocale(LC_NUMERIC, "C");
    assert_lk(0, rc);
    assert_non_null(strstr(text, "latchkey_wait_seconds_bucket{kind=\"mutex\",le=\"0.001\"}"));
    assert_non_null(strstr(text, "latchkey_wait_seconds_sum{kind=\"mutex\"} 0."));
    metrics_free(metrics_read(text));
    lk_free(text);
}

/* Prometheus' own reader and its lint, where they are installed. */
static void promtool_finds_nothing_wrong(struct world *w)
{
    char line[512];
    if (system("command -v promtool >/dev/null 2>&1") != 0)
        skip();
    what_happened_is_in_both(w);
    lk_mutex_t *odd = world_mutex(w, client, "\"\\\n{x}", NULL);
    (void)odd;
    char *text = NULL;
    assert_lk(0, lk_client_metrics(client, LK_METRICS_OBJECTS_MAX, &text));
    snprintf(line, sizeof line, "promtool check metrics >%s/lint 2>&1", w->dir);
    FILE *promtool = popen(line, "w");
    assert_non_null(promtool);
    fputs(text, promtool);
    lk_free(text);
    if (pclose(promtool) != 0)
        fail_msg("promtool check metrics complains, in %s/lint", w->dir);
}

static void each_metric_is_described(struct world *w)
{
    static char docs[65536];
    FILE *file = fopen(DOCS, "r");
    if (file == NULL)
        skip(); /* built without its sources at hand */
    docs[fread(docs, 1, sizeof docs - 1, file)] = '\0';
    fclose(file);
    open_orders(w, "");
    struct metrics *metrics = metrics_of(client, 1);
    for (size_t i = 0; i < metrics->family_count; i++) {
        char row[METRIC_NAME_MAX + 8];
        snprintf(row, sizeof row, "\n| `%s` | ", metrics->families[i]);
        if (strstr(docs, row) == NULL)
            fail_msg("docs/statistics.md does not describe %s", metrics->families[i]);
    }
    size_t rows = 0;
    for (const char *at = docs; (at = strstr(at, "\n| `latchkey_")) != NULL; at++)
        rows++;
    assert_int_equal(rows, metrics->family_count); /* and nothing that is not there */
    metrics_free(metrics);
}

int main(void)
{
    return world_run(what_happened_is_in_both, a_renewal_on_time_leaves_two_thirds, names_are_escaped,
                     objects_too_many_or_unreadable_are_counted_only, mistakes_are_told,
                     numbers_are_the_same_in_every_locale, promtool_finds_nothing_wrong, each_metric_is_described);
}
