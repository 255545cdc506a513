/* SPDX-License-Identifier: MIT */
/*
 * alerts_test.c - docs/alerts.yml and docs/dashboard.json ask for what lk_client_metrics() writes, and for nothing else
 */
#include "metrics.h"
#include "world.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DOCS LK_SOURCE_DIR "/docs"
#define LETTERS "abcdefghijklmnopqrstuvwxyz_"

static struct metrics *metrics;

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL)
        skip(); /* built without its sources at hand */
    char *text = calloc(1, 65536);
    assert_non_null(text);
    assert_true(fread(text, 1, 65535, file) > 0);
    fclose(file);
    return text;
}

/* A page on which all metrics are. */
static void read_page(struct world *w)
{
    lk_client_t *client = world_client(w, "");
    world_mutex(w, client, "orders", NULL);
    metrics = metrics_of(client, 1);
}

/* Is label="value", or only the label, in a line of that metric? */
static bool has_label(const char *name, const char *label)
{
    for (size_t i = 0; i < metrics->count; i++)
        if (strcmp(metrics->each[i].name, name) == 0 && strstr(metrics->each[i].labels, label) != NULL)
            return true;
    return false;
}

/* In {le="0.333333",kind!~"latch"} behind a metric; those of the scrape are Prometheus' own. */
static void check_labels(const char *name, const char *at)
{
    while (*at != '}') {
        char label[64], *mark;
        size_t length = strcspn(++at, ",}");
        assert_true(length > 0 && length < sizeof label);
        memcpy(label, at, length);
        label[length] = '\0';
        at += length;
        mark = strpbrk(label, "=!");
        assert_non_null(mark);
        if (strncmp(mark, "=\"", 2) != 0)
            strcpy(mark, "=\"");
        if (strncmp(label, "job=", 4) != 0 && !has_label(name, label))
            fail_msg("%s has no %s", name, label);
    }
}

/* Each metric that the text names is there, with those labels; how many it names. */
static int check_names(const char *text)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, "latchkey_")) != NULL; count++) {
        char name[METRIC_NAME_MAX];
        size_t length = strspn(at, LETTERS);
        assert_true(length < sizeof name);
        memcpy(name, at, length);
        name[length] = '\0';
        at += length;
        if (metrics_count(metrics, name) > 0 && *at == '{')
            check_labels(name, at);
        char bucket[METRIC_NAME_MAX + 8];
        snprintf(bucket, sizeof bucket, "%s_bucket", name); /* a histogram as a whole, in words */
        if (metrics_count(metrics, name) == 0 && metrics_count(metrics, bucket) == 0)
            fail_msg("there is no metric %s", name);
    }
    return count;
}

static void alerts_ask_for_metrics_that_are_there(struct world *w)
{
    char *text = read_file(DOCS "/alerts.yml");
    read_page(w);
    assert_true(check_names(text) >= 9);
    static const char *const asked[] = { "latchkey_wait_seconds_sum", "latchkey_holds_lost_total", "latchkey_contended_total",
                                         "latchkey_renewal_margin_ratio_bucket{le=\"0.333333\"}" };
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        assert_non_null(strstr(text, asked[i]));
    free(text);
    metrics_free(metrics);
}

static void the_dashboard_asks_for_metrics_that_are_there(struct world *w)
{
    json_t *json = json_load_file(DOCS "/dashboard.json", JSON_REJECT_DUPLICATES, NULL), *panel, *target;
    size_t i, n;
    if (json == NULL && access(DOCS, R_OK) != 0)
        skip();
    assert_non_null(json);
    read_page(w);
    json_array_foreach(json_object_get(json, "panels"), i, panel)
    {
        assert_int_equal(json_integer_value(json_object_get(panel, "id")), i + 1);
        assert_true(json_array_size(json_object_get(panel, "targets")) > 0);
        json_array_foreach(json_object_get(panel, "targets"), n, target)
        {
            const char *expr = json_string_value(json_object_get(target, "expr"));
            assert_non_null(expr);
            assert_true(check_names(expr) > 0);
        }
    }
    assert_true(i >= 8);
    json_decref(json);
    metrics_free(metrics);
}

/* Where Prometheus' own tool is: the alerts are rules, and fire when they should. */
static void promtool_has_them_fire(struct world *w)
{
    char line[1024];
    if (system("command -v promtool >/dev/null 2>&1") != 0)
        skip();
    snprintf(line, sizeof line,
             "exec >%s/promtool 2>&1; promtool check rules " DOCS "/alerts.yml && sed 's#DOCS#" DOCS "#' " LK_SOURCE_DIR
             "/tests/client/alerts.yml >%s/alerts.yml && promtool test rules %s/alerts.yml",
             w->dir, w->dir, w->dir);
    if (system(line) != 0) {
        snprintf(line, sizeof line, "cat %s/promtool", w->dir);
        fail_msg("promtool complains: %d", system(line));
    }
}

int main(void)
{
    return world_run(alerts_ask_for_metrics_that_are_there, the_dashboard_asks_for_metrics_that_are_there,
                     promtool_has_them_fire);
}
