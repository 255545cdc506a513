/* SPDX-License-Identifier: MIT */
/*
 * options_check.h - what holds for options, wherever they were read from
 */
#ifndef TESTS_OPTIONS_CHECK_H
#define TESTS_OPTIONS_CHECK_H

#include "fuzz.h"
#include "config/name.h"
#include "config/options.h"

#define SECRET "hunter2$word" /* stands for a password; no text may show it */

/* Codes that a reader of options may return; on failure the options must be as they were. */
static inline void check_outcome(int rc, const struct lk__options *options, const struct lk__options *before)
{
    require(rc == 0 || rc == EINVAL || rc == ENOTSUP || rc == ENOENT);
    require(errno == 4711); /* set by the target before the call */
    require(rc == 0 || memcmp(options, before, sizeof *options) == 0);
    require(rc == 0 || (lk_errortext()[0] != '\0' && is_one_line(lk_errortext())));
}

/* What was read can be worked with. */
static inline void check_options(const struct lk__options *o)
{
    require((o->path != NULL) != (o->host != NULL));
    require(o->host == NULL || (o->host[0] != '\0' && o->port >= 1 && o->port <= 65535));
    require(o->path == NULL || (o->path[0] != '\0' && strlen(o->path) <= 107));
    require(o->user == NULL || o->password != NULL);
    require(o->db >= 0);
    require(o->client_name == NULL || o->client_name[0] != '\0');
    require(o->prefix == NULL || lk__name_flaw(o->prefix, strlen(o->prefix)) == NULL);
    require(o->lease_ms >= 100 && o->lease_ms <= 24 * 60 * 60 * 1000);
    require(o->command_timeout_ms >= 1 && o->command_timeout_ms < o->lease_ms);
    require(o->connect_timeout_ms >= 1 && o->poll_ms >= 1);
    require(o->retry_min_ms >= 1 && o->retry_min_ms <= o->retry_max_ms);
    require(o->keepalive_ms >= 1 || o->keepalive_ms == -1);
}

#endif
