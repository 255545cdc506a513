/* SPDX-License-Identifier: MIT */
/*
 * watch.c - `latchkey watch`: what changes between one look at a name and the next
 *
 * An alert is on waits: whoever is seen in a queue, from the first look to the last one that has it there. An id in a queue
 * is that of one wait.
 */
#include "client.h"
#include "command.h"
#include "found.h"
#include "grant.h"
#include "look.h"
#include "who.h"
#include "words.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LOOK_MS = 100, MOMENT_MS = 150, SPAN_MS = 300000, QUEUE_MAX = 100, WAITS_MAX = 2000 };

static const int endings[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };

struct wait {
    char id[160];
    int64_t first_ms, last_ms; /* when it was seen */
};

struct watch {
    const struct settings *settings;
    lk_client_t *client;
    char **names;
    int count;
    struct rows *last; /* of each name */
    bool looked;       /* they are there */
    struct wait *waits;
    int wait_count;
};

/* --- what is said --------------------------------------------------------------------------------------------------- */

/* 2026-05-04T09:12:44.103Z */
static const char *time_text(char text[40])
{
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t length = strftime(text, 32, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text + length, 40 - length, ".%03ldZ", now.tv_nsec / 1000000);
    return text;
}

static void say_object(const struct settings *s, const char *name, const char *event, const struct row *row,
                       const lk_who_t *who)
{
    char time[40];
    json_t *object = json_pack("{s:s, s:o, s:s, s:s, s:s, s:I, s:I}", "time", time_text(time), "name", text_of(name),
                               "kind", row->kind, "event", event, "mode", row->mode, "holders",
                               (json_int_t)row->holders, "waiters", (json_int_t)row->waiters);
    if (row->owner[0] != 0)
        json_object_set_new(object, "owner", json_string(row->owner));
    if (who != NULL)
        json_object_set_new(object, "who", who_object(who));
    if (row->token != 0 && row->holders > 0)
        json_object_set_new(object, "token", json_integer((json_int_t)row->token));
    if (row->count >= 0)
        json_object_set_new(object, "count", json_integer(row->count));
    print_json(s, object);
}

static void say_line(const char *name, const char *event, const struct row *row, const lk_who_t *who)
{
    char time[40], shown[LK_NAME_MAX + 1], words[WHO_WORDS];
    printf("%s %s %s %s", time_text(time), printable_name(shown, name), row->kind, event);
    if (strcmp(event, "held") == 0) {
        printf(" %s", row->mode);
        if (row->owner[0] != 0)
            printf(" by %s", row->owner);
        if (row->token != 0)
            printf(", token %llu", (unsigned long long)row->token);
        if (who != NULL)
            printf(", %s", who_words(words, who));
    } else if (strcmp(event, "holders") == 0) {
        printf(" %u", row->holders);
    } else if (strcmp(event, "waiters") == 0) {
        printf(" %u", row->waiters);
    } else if (strcmp(event, "count") == 0) {
        printf(" %lld", (long long)row->count);
    }
    putchar('\n');
}

/* Who holds it says so a moment after the first grant; who is no client of the library never does. */
static bool ask_holder(const struct watch *w, const struct row *row, lk_who_t *who)
{
    if (row->owner[0] == 0)
        return false;
    int rc = ask_who(w->client, row->owner, who);
    if (rc != ENOENT || strcspn(row->owner, ":") != CLIENT_ID)
        return rc == 0;
    poll(NULL, 0, MOMENT_MS);
    return ask_who(w->client, row->owner, who) == 0;
}

static void say(const struct watch *w, const char *name, const char *event, const struct row *row)
{
    lk_who_t who;
    bool known = strcmp(event, "held") == 0 && ask_holder(w, row, &who);
    if (w->settings->json)
        say_object(w->settings, name, event, row, known ? &who : NULL);
    else
        say_line(name, event, row, known ? &who : NULL);
}

/* --- what changed --------------------------------------------------------------------------------------------------- */

static const struct row *row_of(const struct rows *rows, const char *kind)
{
    for (int i = 0; i < rows->count; i++)
        if (strcmp(rows->row[i].kind, kind) == 0)
            return &rows->row[i];
    return NULL;
}

/* Has another one come to hold it? */
static bool changed_hands(const struct row *before, const struct row *now)
{
    if (now->holders == 0 || strcmp(now->kind, "permits") == 0)
        return false;
    return before->holders == 0 || strcmp(before->mode, now->mode) != 0 || strcmp(before->owner, now->owner) != 0;
}

static bool is_free_lock(const struct row *row)
{
    return row->holders == 0 && (strcmp(row->kind, "mutex") == 0 || strcmp(row->kind, "rwlock") == 0);
}

static void compare(const struct watch *w, const char *name, const struct row *before, const struct row *now)
{
    if (changed_hands(before, now))
        say(w, name, "held", now);
    else if (is_free_lock(now) && strcmp(before->mode, now->mode) != 0)
        say(w, name, now->mode, now); /* free, or unrecoverable */
    else if (before->holders != now->holders)
        say(w, name, "holders", now);
    if (before->waiters != now->waiters)
        say(w, name, "waiters", now);
    if (before->count != now->count && now->count >= 0)
        say(w, name, strcmp(now->mode, "open") == 0 ? "open" : "count", now);
}

/* What is not there has neither holders nor waiters. */
static void compare_all(const struct watch *w, int which, const struct rows *now)
{
    static const char *const kinds[] = { "mutex", "rwlock", "permits", "count", "latch" };
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const struct row none = { kinds[i], "free", 0, 0, -1, -1, 0, { 0 } };
        const struct row *before = w->looked ? row_of(&w->last[which], kinds[i]) : NULL, *found = row_of(now, kinds[i]);
        compare(w, w->names[which], before != NULL ? before : &none, found != NULL ? found : &none);
    }
    if (!w->looked && now->count == 0)
        say(w, w->names[which], "free", &(struct row){ "-", "free", 0, 0, -1, -1, 0, { 0 } });
}

/* --- waits ---------------------------------------------------------------------------------------------------------- */

static struct wait *find_wait(const struct watch *w, const char *id)
{
    for (int i = 0; i < w->wait_count; i++)
        if (strcmp(w->waits[i].id, id) == 0)
            return &w->waits[i];
    return NULL;
}

/* Room for one: where there is none, that of the wait that ended first. */
static struct wait *new_wait(struct watch *w)
{
    if (w->wait_count < WAITS_MAX)
        return &w->waits[w->wait_count++];
    struct wait *oldest = w->waits;
    for (int i = 1; i < w->wait_count; i++)
        if (w->waits[i].last_ms < oldest->last_ms)
            oldest = &w->waits[i];
    return oldest;
}

static void note_wait(struct watch *w, const char *id, int64_t now_ms)
{
    struct wait *wait = find_wait(w, id);
    if (wait == NULL) {
        wait = new_wait(w);
        snprintf(wait->id, sizeof wait->id, "%s", id);
        wait->first_ms = now_ms;
    }
    wait->last_ms = now_ms;
}

static void forget_old_waits(struct watch *w, int64_t now_ms)
{
    int kept = 0;
    for (int i = 0; i < w->wait_count; i++)
        if (now_ms - w->waits[i].last_ms <= SPAN_MS)
            w->waits[kept++] = w->waits[i];
    w->wait_count = kept;
}

static int note_waits(struct watch *w, const char *name, const struct rows *rows)
{
    static lk_waiter_t waiters[QUEUE_MAX];
    int rc = 0;
    for (int i = 0; i < rows->count && rc == 0; i++) {
        unsigned count = 0;
        if (rows->row[i].waiters == 0)
            continue;
        rc = look_at_queue(w->client, rows->row[i].kind, name, waiters, QUEUE_MAX, &count);
        for (unsigned n = 0; rc == 0 && n < count && n < QUEUE_MAX; n++)
            note_wait(w, waiters[n].id, boot_ms());
    }
    return rc;
}

/* Is the mean above the limit? Then that is said. */
static bool alerts(struct watch *w)
{
    int64_t sum_ms = 0;
    char time[40];
    forget_old_waits(w, boot_ms());
    for (int i = 0; i < w->wait_count; i++)
        sum_ms += w->waits[i].last_ms - w->waits[i].first_ms;
    if (w->wait_count == 0 || sum_ms <= w->settings->alert_ms * w->wait_count)
        return false;
    long long mean_ms = (long long)(sum_ms / w->wait_count);
    if (w->settings->json)
        print_json(w->settings, json_pack("{s:s, s:s, s:I, s:i}", "time", time_text(time), "event", "alert",
                                          "mean_wait_ms", (json_int_t)mean_ms, "waits", w->wait_count));
    else
        printf("%s alert: waits took %lld ms in the mean of %d\n", time_text(time), mean_ms, w->wait_count);
    return true;
}

/* --- the command ---------------------------------------------------------------------------------------------------- */

/* All names once. 0, or an exit code: complained. */
static int look(struct watch *w)
{
    for (int i = 0; i < w->count; i++) {
        struct rows rows = { 0 };
        int rc = look_at_name(&rows, w->client, w->names[i]);
        if (rc == 0 && w->settings->alert_ms != 0)
            rc = note_waits(w, w->names[i], &rows);
        if (rc != 0)
            return complain_of(w->names[i], rc);
        if (w->settings->alert_ms == 0)
            compare_all(w, i, &rows);
        w->last[i] = rows;
    }
    w->looked = true;
    return flush_output();
}

/* Until a signal, the end of the time, an alert, or a failure. */
static int go_on(struct watch *w, int signals)
{
    const struct settings *s = w->settings;
    struct pollfd heard = { signals, POLLIN, 0 };
    int64_t until_ms = s->for_ms != 0 ? boot_ms() + s->for_ms : INT64_MAX;
    for (;;) {
        int code = look(w);
        if (code != 0)
            return code;
        if (s->alert_ms != 0 && alerts(w))
            return flush_output() == EXIT_OK ? EXIT_NO : EXIT_OUTPUT;
        if (boot_ms() >= until_ms || poll(&heard, 1, LOOK_MS) > 0)
            return EXIT_OK;
    }
}

int run_watch(struct settings *s, int count, char **operands)
{
    struct watch w = { .settings = s, .names = operands, .count = count };
    signal(SIGPIPE, SIG_IGN);
    int code = open_client(s, &w.client);
    if (code != 0)
        return code;
    int signals = hear_signals(endings, sizeof endings / sizeof endings[0]);
    w.last = calloc((size_t)count, sizeof *w.last);
    w.waits = calloc(WAITS_MAX, sizeof *w.waits);
    code = signals >= 0 && w.last != NULL && w.waits != NULL ? go_on(&w, signals) : EXIT_INTERNAL;
    free(w.waits);
    free(w.last);
    close_client(w.client);
    return code;
}
