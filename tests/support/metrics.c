/* SPDX-License-Identifier: MIT */
/* metrics.c - a page of metrics, read strictly */
#include "metrics.h"
#include "assert_lk.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyz"
#define wrong(...) assert_failed(__FILE__, __LINE__, __VA_ARGS__)

/* What is read now. */
struct reading {
    struct metrics *metrics;
    char helped[METRIC_NAME_MAX]; /* by the last line, which was its HELP; "": it was none */
    char type[16];                /* of the last family */
};

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* Copy the name at `text`; returns what follows. */
static const char *take_name(char name[METRIC_NAME_MAX], const char *text)
{
    size_t length = strspn(text, LETTERS "_");
    if (length == 0 || length >= METRIC_NAME_MAX || text[0] == '_')
        wrong("no name of a metric: %s", text);
    memcpy(name, text, length);
    name[length] = '\0';
    return text + length;
}

static void read_help(struct reading *reading, const char *line)
{
    const char *help = take_name(reading->helped, line);
    if (help[0] != ' ' || help[1] == '\0' || strchr(help, '\\') != NULL)
        wrong("no help: %s", line);
}

/* A base unit where there is one, _total for what only grows, and for nothing else. */
static void check_conventions(const char *name, const char *type)
{
    bool total = ends_with(name, "_total");
    if (strncmp(name, "latchkey_", 9) != 0 || total != (strcmp(type, "counter") == 0))
        wrong("%s is no name for a %s", name, type);
    if (strcmp(type, "histogram") == 0 && !ends_with(name, "_seconds") && !ends_with(name, "_ratio"))
        wrong("%s has no unit", name);
    if (strcmp(type, "histogram") != 0 && strcmp(type, "counter") != 0 && strcmp(type, "gauge") != 0)
        wrong("%s: no type %s", name, type);
}

static void read_type(struct reading *reading, const char *line)
{
    struct metrics *metrics = reading->metrics;
    char name[METRIC_NAME_MAX];
    const char *type = take_name(name, line);
    if (strcmp(name, reading->helped) != 0 || type[0] != ' ' || strlen(type) > sizeof reading->type)
        wrong("TYPE without its HELP: %s", line);
    for (size_t i = 0; i < metrics->family_count; i++)
        if (strcmp(metrics->families[i], name) == 0)
            wrong("%s is there twice", name);
    strcpy(reading->type, type + 1);
    check_conventions(name, reading->type);
    if (metrics->family_count == METRIC_FAMILIES_MAX)
        wrong("more than %d families", METRIC_FAMILIES_MAX);
    strcpy(metrics->families[metrics->family_count++], name);
    reading->helped[0] = '\0';
}

/* Does a line of that name belong to the last family? */
static bool belongs(const struct reading *reading, const char *name)
{
    const struct metrics *metrics = reading->metrics;
    if (metrics->family_count == 0)
        return false;
    const char *family = metrics->families[metrics->family_count - 1];
    size_t length = strlen(family);
    if (strcmp(reading->type, "histogram") != 0)
        return strcmp(name, family) == 0;
    return strncmp(name, family, length) == 0 &&
           (strcmp(name + length, "_bucket") == 0 || strcmp(name + length, "_sum") == 0 ||
            strcmp(name + length, "_count") == 0);
}

/* The end of the label at `text`, name="value". */
static const char *past_label(const char *text, const char *line)
{
    size_t length = strspn(text, LETTERS);
    if (length == 0 || strncmp(text + length, "=\"", 2) != 0)
        wrong("no label: %s", line);
    for (text += length + 2; *text != '"'; text++)
        if (*text == '\0' || (*text == '\\' && strchr("\\\"n", *++text) == NULL))
            wrong("no value of a label: %s", line);
    return text + 1;
}

/* Copy labels; returns what follows. */
static const char *take_labels(char labels[METRIC_LABELS_MAX], const char *text, const char *line)
{
    labels[0] = '\0';
    if (*text != '{')
        return text;
    const char *end = text;
    do
        end = past_label(end + 1, line);
    while (*end == ',');
    if (*end != '}' || (size_t)(end - text) > METRIC_LABELS_MAX)
        wrong("labels without an end: %s", line);
    memcpy(labels, text + 1, (size_t)(end - text - 1));
    labels[end - text - 1] = '\0';
    return end + 1;
}

static void read_value(struct reading *reading, const char *line)
{
    struct metrics *metrics = reading->metrics;
    metrics->each = realloc(metrics->each, (metrics->count + 1) * sizeof *metrics->each);
    struct metric *metric = &metrics->each[metrics->count];
    char *end = NULL;
    const char *rest = take_labels(metric->labels, take_name(metric->name, line), line);
    if (!belongs(reading, metric->name))
        wrong("outside of its family: %s", line);
    if (rest[0] == ' ' && rest[1] != ' ')
        metric->value = strtod(rest + 1, &end);
    if (end == NULL || end == rest + 1 || *end != '\0' || !(metric->value >= 0))
        wrong("no value: %s", line);
    for (size_t i = 0; i < metrics->count; i++)
        if (strcmp(metrics->each[i].name, metric->name) == 0 && strcmp(metrics->each[i].labels, metric->labels) == 0)
            wrong("twice: %s", line);
    metrics->count++;
}

static void read_line(struct reading *reading, const char *line)
{
    if (strncmp(line, "# TYPE ", 7) == 0)
        read_type(reading, line + 7);
    else if (reading->helped[0] != '\0')
        wrong("HELP without its TYPE: %s", reading->helped);
    else if (strncmp(line, "# HELP ", 7) == 0)
        read_help(reading, line + 7);
    else
        read_value(reading, line);
}

/* Buckets go up, and the last one is the count. */
static void check_histograms(const struct metrics *metrics)
{
    for (size_t i = 1; i < metrics->count; i++) {
        const struct metric *metric = &metrics->each[i], *before = metric - 1;
        bool first = strcmp(metric->name, before->name) != 0 || strstr(before->labels, "le=\"+Inf\"") != NULL;
        if (ends_with(metric->name, "_bucket") && !first && metric->value < before->value)
            wrong("%s{%s} is less than the bucket before", metric->name, metric->labels);
        if (ends_with(metric->name, "_sum") && strstr(before->labels, "le=\"+Inf\"") == NULL)
            wrong("%s has no last bucket", metric->name);
        if (ends_with(metric->name, "_count") && metric->value != metric[-2].value)
            wrong("%s{%s} is not its last bucket", metric->name, metric->labels);
    }
}

struct metrics *metrics_read(const char *text)
{
    struct reading reading = { .metrics = calloc(1, sizeof *reading.metrics) };
    char *copy = strdup(text), *line = copy, *end;
    assert_true(copy != NULL && reading.metrics != NULL);
    for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        read_line(&reading, line);
    }
    if (*line != '\0')
        wrong("the last line has no end: %s", line);
    free(copy);
    check_histograms(reading.metrics);
    return reading.metrics;
}

struct metrics *metrics_of(lk_client_t *client, int objects)
{
    char *text = NULL;
    assert_lk(0, lk_client_metrics(client, objects, &text));
    struct metrics *metrics = metrics_read(text);
    lk_free(text);
    return metrics;
}

void metrics_free(struct metrics *metrics)
{
    free(metrics->each);
    free(metrics);
}

double metrics_value(const struct metrics *metrics, const char *name, const char *labels)
{
    for (size_t i = 0; i < metrics->count; i++)
        if (strcmp(metrics->each[i].name, name) == 0 && strcmp(metrics->each[i].labels, labels) == 0)
            return metrics->each[i].value;
    wrong("no %s{%s}", name, labels);
    return NAN;
}

size_t metrics_count(const struct metrics *metrics, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < metrics->count; i++)
        count += strcmp(metrics->each[i].name, name) == 0;
    return count;
}
