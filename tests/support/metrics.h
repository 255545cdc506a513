/* SPDX-License-Identifier: MIT */
/*
 * metrics.h - a page of metrics, read as strictly as Prometheus does, and by its conventions
 */
#ifndef TESTS_METRICS_H
#define TESTS_METRICS_H

#include <latchkey/latchkey.h>

#include <stdbool.h>
#include <stddef.h>

enum { METRIC_NAME_MAX = 64, METRIC_LABELS_MAX = 2 * LK_NAME_MAX + 64, METRIC_FAMILIES_MAX = 32 };

struct metric {
    char name[METRIC_NAME_MAX];     /* "latchkey_wait_seconds_bucket" */
    char labels[METRIC_LABELS_MAX]; /* as written, escaped: kind="mutex",le="1" */
    double value;
};

struct metrics {
    struct metric *each;
    size_t count;
    char families[METRIC_FAMILIES_MAX][METRIC_NAME_MAX]; /* those that have a TYPE */
    size_t family_count;
};

/* The test fails where the text is not what it should be. */
struct metrics *metrics_read(const char *text);
/* That of a client, with so many objects. */
struct metrics *metrics_of(lk_client_t *client, int objects);
void metrics_free(struct metrics *metrics);

/* Its value; the test fails if there is none. */
double metrics_value(const struct metrics *metrics, const char *name, const char *labels);
/* How many have that name. */
size_t metrics_count(const struct metrics *metrics, const char *name);

#endif
