/* SPDX-License-Identifier: MIT */
/*
 * stats.c - the counters of a client, as JSON
 *
 * Each counter is right, but two of them may be a call apart. Without memory for a part there is no text at all: NULL
 * is passed up.
 */
#include "client/client.h"

#include <jansson.h>

enum { SERVER_SHOWN = 1024 }; /* of a URL with many hosts the first */

const char *lk__kind_name(int kind)
{
    static const char *const names[LK__KINDS] = {
        [LK_KIND_MUTEX] = "mutex",     [LK_KIND_RWLOCK] = "rwlock",  [LK_KIND_SEM] = "semaphore",
        [LK_KIND_PERMITS] = "permits", [LK_KIND_LATCH] = "latch",    [LK_KIND_ONCE] = "once",
        [LK_KIND_BARRIER] = "barrier", [LK_KIND_COND] = "condition", [LK_KIND_REDLOCK] = "redlock",
    };
    return names[kind];
}

const char *lk__reason_name(int reason)
{
    static const char *const names[LK__REASONS] = {
        [LK_REASON_EXPIRED] = "expired",   [LK_REASON_GONE] = "gone",   [LK_REASON_THREAD_EXIT] = "thread_exit",
        [LK_REASON_MAX_HOLD] = "max_hold", [LK_REASON_FIXED] = "fixed",
    };
    return names[reason];
}

int lk__member_show(const char *name)
{
    json_error_t error;
    json_t *json = json_pack_ex(&error, 0, "s", name);
    int rc = json != NULL ? 0 : json_error_code(&error) == json_error_invalid_utf8 ? EILSEQ : ENOMEM;
    json_decref(json);
    return rc;
}

static json_t *count_of(const atomic_ullong *counter)
{
    return json_integer((json_int_t)atomic_load(counter));
}

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
        json_t *bucket = json_pack("{s:o, s:o}", "le", le, "count", count_of(&histogram->buckets[i]));
        good &= json_array_append_new(buckets, bucket) == 0;
    }
    buckets = all_or_none(buckets, good);
    return json_pack("{s:o, s:f, s:o}", "count", count_of(&histogram->count), "sum",
                     (double)atomic_load(&histogram->sum) / 1e6, "buckets", buckets);
}

struct listing {
    json_t *objects;
    json_int_t left_out;
    bool good; /* there was memory for all of them */
};

/* NULL: a name that is no UTF-8, or no memory, as `error` says. */
static json_t *member_json(struct lk__member *member, json_error_t *error)
{
    struct lk__memberstats stats;
    member->role->describe(member, &stats);
    return json_pack_ex(error, 0, "{s:s, s:s, s:I, s:I, s:I, s:I, s:i}", "name", stats.name, "kind",
                        lk__kind_name(member->entry.kind), "acquisitions", (json_int_t)stats.acquisitions, "contended",
                        (json_int_t)stats.contended, "renewals", (json_int_t)stats.renewals, "lost",
                        (json_int_t)stats.losses, "waiting", stats.waiting);
}

static void list_member(struct lk__entry *entry, void *arg)
{
    struct listing *listing = arg;
    if (json_array_size(listing->objects) >= LK_METRICS_OBJECTS_MAX) {
        listing->left_out++;
        return;
    }
    json_error_t error;
    json_t *json = member_json(LK__CONTAINER(entry, struct lk__member, entry), &error);
    if (json == NULL && json_error_code(&error) == json_error_invalid_utf8)
        listing->left_out++;
    else
        listing->good &= json_array_append_new(listing->objects, json) == 0;
}

static json_t *client_json(lk_client_t *client)
{
    struct lk__nodestats stats = lk__node_stats(&client->node);
    char server[SERVER_SHOWN];
    lk__options_print(client->options, server, sizeof server);
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:o, s:o}", "id", client->id, "server", server, "reconnects",
                     (json_int_t)(stats.connects > 0 ? stats.connects - 1 : 0), "round_trips",
                     (json_int_t)stats.round_trips, "script_reloads", (json_int_t)stats.reloads, "messages",
                     count_of(&client->hub.messages), "renewal_margin",
                     histogram_json(&client->dog.margins, lk__histogram_shares));
}

static json_t *losses_json(const struct lk__kindstats *stats)
{
    json_t *losses = json_object();
    bool good = losses != NULL;
    for (int reason = 1; reason < LK__REASONS; reason++)
        good &= json_object_set_new(losses, lk__reason_name(reason), count_of(&stats->losses[reason])) == 0;
    return all_or_none(losses, good);
}

static json_t *kind_json(const struct lk__kindstats *stats)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:i}", "wait_seconds",
                     histogram_json(&stats->wait, lk__histogram_times), "hold_seconds",
                     histogram_json(&stats->hold, lk__histogram_times), "contended", count_of(&stats->contended),
                     "lost", losses_json(stats), "long_waits", count_of(&stats->long_waits), "long_holds",
                     count_of(&stats->long_holds), "waiting", atomic_load(&stats->waiting), "held",
                     atomic_load(&stats->held));
}

static json_t *kinds_json(const struct lk__kindstats stats[LK__KINDS])
{
    json_t *kinds = json_object();
    bool good = kinds != NULL;
    for (int kind = 1; kind < LK__KINDS; kind++)
        good &= json_object_set_new(kinds, lk__kind_name(kind), kind_json(&stats[kind])) == 0;
    return all_or_none(kinds, good);
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
    lk__map_each(&client->members, list_member, &listing);
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
