/* SPDX-License-Identifier: MIT */
/*
 * walk.c - goes through all keys of a client's servers, and tells the objects that they are of
 *
 * A script scans a piece, looks at what it found, and answers with a text; that is read object by object, and then the
 * next piece is asked for. A failed step is asked for once more by the next call, from the same cursor.
 *
 * A cursor means something to the server that gave it, and to no other: one that takes its place, or was started anew, is
 * gone through from its beginning. In a cluster slots are what has to be gone through: those that moved to another node
 * meanwhile are looked for there, and the map is asked for anew before a walk ends.
 */
#include "config/name.h"
#include "inspect/inspect.h"
#include "inspect/scripts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 100, CURSOR_MAX = 24, NUMBERS = 12, KINDS_ALL = (1 << LK__KINDS) - 2 };

/* Of an object, in the order in which scan.lua says them. */
enum {
    KIND,
    STATE,
    HOLDERS,
    WAITERS,
    LEFT,
    HELD,
    WAITED,
    NUMBER,
    TOTAL,
    TOKEN,
    HOLDER_BYTES,
    NAME_BYTES
};

struct lk_inspect {
    lk_client_t *client; /* with a reference */
    char *pattern;       /* NULL: all names */
    unsigned kinds;
    unsigned place;          /* of the server that is gone through, from 1 on; 0: none yet */
    unsigned epoch;          /* of that server, when it answered last */
    char cursor[CURSOR_MAX]; /* of the next step there ... */
    bool begun;              /* ... if there is one */
    const char *at;          /* in the reply's text, what was not told yet; NULL: nothing is left */
    lk_inspectstats_t stats;
    uint16_t seen[LK__SLOTS]; /* of a cluster: the place where a slot was gone through, or is; 0: none yet */
    struct lk__reply reply;
    struct lk__value values[LK__REPLY_MAX];
    char text[LK__REPLY_BYTES_MAX];
};

/* --- which server ------------------------------------------------------------------------------------------------- */

static bool is_quorum(const lk_client_t *client)
{
    return client->options->quorum;
}

/* NULL: there are no slots. */
static struct lk__cluster *slots_of(const lk_client_t *client)
{
    return is_quorum(client) ? NULL : client->node.cluster;
}

/* The first place with slots that were not gone through there, which they are from now on; 0: there is none. */
static unsigned take_slots(struct lk_inspect *walk, const struct lk__cluster *cluster)
{
    unsigned place = 0;
    for (unsigned slot = 0; slot < LK__SLOTS; slot++) {
        unsigned owner = lk__cluster_ownerof(cluster, slot);
        if (place == 0 && owner != walk->seen[slot])
            place = owner;
        if (place != 0 && place == owner)
            walk->seen[slot] = (uint16_t)place;
    }
    return place;
}

static unsigned next_place(struct lk_inspect *walk)
{
    const struct lk__cluster *cluster = slots_of(walk->client);
    if (cluster != NULL)
        return take_slots(walk, cluster);
    return lk__node_nth(&walk->client->node, walk->place) != NULL ? walk->place + 1 : 0;
}

/* False: there is no other one. */
static bool next_server(struct lk_inspect *walk)
{
    unsigned place = next_place(walk);
    if (place == 0)
        return false;
    walk->place = place;
    strcpy(walk->cursor, "0");
    walk->begun = true;
    walk->stats.servers++;
    return true;
}

/* A quorum does without a server that is away: the walk goes on at the next one. */
static bool leave_out(struct lk_inspect *walk)
{
    if (!is_quorum(walk->client))
        return false;
    walk->begun = false;
    walk->stats.servers_away++;
    return true;
}

/* One that has lost all its slots, to a replica as a rule, has none of the keys: they are with others. */
static bool leave_behind(struct lk_inspect *walk)
{
    const struct lk__cluster *cluster = slots_of(walk->client);
    if (cluster == NULL || lk__cluster_slotsof(cluster, walk->place) > 0)
        return false;
    for (unsigned slot = 0; slot < LK__SLOTS; slot++)
        if (walk->seen[slot] == walk->place)
            walk->seen[slot] = 0;
    walk->begun = false;
    return true;
}

/* There is no other server. When none was gone through, the next call begins with the first one again. */
static int end(struct lk_inspect *walk)
{
    if (walk->stats.servers_away == 0 || walk->stats.servers_away < walk->stats.servers)
        return lk__fail(ENOENT, "lk_inspect_next: all servers were gone through");
    walk->place = walk->stats.servers = walk->stats.servers_away = 0;
    return lk__fail(ENOTCONN, "lk_inspect_next: no server of the quorum answers");
}

/* As far as is known there is no other one. 0: slots have moved, and there is. */
static int end_unless_moved(struct lk_inspect *walk)
{
    struct lk__cluster *cluster = slots_of(walk->client);
    if (cluster == NULL)
        return end(walk);
    int rc = lk__cluster_renew(cluster, lk__now_us() + walk->client->options->command_timeout_ms * 1000);
    if (rc != 0)
        return rc;
    walk->stats.slots_missing = lk__cluster_slotsof(cluster, 0);
    return next_server(walk) ? 0 : end(walk);
}

/* --- a step ------------------------------------------------------------------------------------------------------- */

/* Read the numbers of the object at `*at`, which is moved to its names; false: the text is none of ours. */
static bool read_numbers(const char **at, long long numbers[NUMBERS])
{
    for (int i = 0; i < NUMBERS; i++) {
        char *end;
        numbers[i] = strtoll(*at, &end, 10);
        if (end == *at || *end != ' ')
            return false;
        *at = end + 1;
    }
    long long holder = numbers[HOLDER_BYTES], name = numbers[NAME_BYTES], most = (long long)strlen(*at);
    return holder >= 0 && name >= 0 && holder <= most && name <= most - holder;
}

static bool is_readable(const char *found)
{
    long long numbers[NUMBERS];
    while (*found != '\0') {
        if (!read_numbers(&found, numbers))
            return false;
        found += numbers[HOLDER_BYTES] + numbers[NAME_BYTES];
    }
    return true;
}

static int ask(struct lk_inspect *walk, struct lk__inspect_scan_reply *found, unsigned *epoch)
{
    const lk_client_t *client = walk->client;
    const char *prefix = client->options->prefix;
    const struct lk__inspect_scan_args args = {
        .cursor = walk->cursor, .steps = STEPS, .prefix = prefix != NULL ? prefix : "", .kinds = walk->kinds
    };
    const struct lk__command command = { .script = &lk__lua_inspect_scan, .args = &args, .place = walk->place };
    lk__reply_in(&walk->reply, walk->values, LK__REPLY_MAX, walk->text, sizeof walk->text);
    struct lk__call call = {
        .node = &walk->client->node, .what = "lk_inspect_next", .command = &command, .reply = &walk->reply
    };
    int rc = lk__call_run(&call);
    *epoch = call.epoch;
    if (rc != 0)
        return rc;
    lk__inspect_scan_read(&walk->reply, found);
    return strlen(found->next_cursor) < CURSOR_MAX && is_readable(found->found) ? 0 : lk__call_garbled(call.what);
}

/* Another server answered than the one whose cursor it was given. */
static bool begin_anew(struct lk_inspect *walk, unsigned epoch)
{
    bool another = strcmp(walk->cursor, "0") != 0 && epoch != walk->epoch;
    if (another)
        strcpy(walk->cursor, "0");
    walk->epoch = epoch;
    return another;
}

static int step(struct lk_inspect *walk)
{
    struct lk__inspect_scan_reply found;
    unsigned epoch;
    int rc = ask(walk, &found, &epoch);
    if (rc != 0 || begin_anew(walk, epoch))
        return rc;
    strcpy(walk->cursor, found.next_cursor);
    walk->begun = strcmp(walk->cursor, "0") != 0;
    walk->at = found.found;
    walk->stats.keys += (unsigned long long)found.keys;
    walk->stats.hidden += (unsigned long long)found.hidden;
    return 0;
}

/* --- an object ---------------------------------------------------------------------------------------------------- */

/* Is the object one that is wanted? Its names are at walk->at, which is moved behind them. */
static bool take_names(struct lk_inspect *walk, const long long numbers[NUMBERS], lk_inspected_t *object)
{
    const char *prefix = walk->client->options->prefix, *holder = walk->at;
    size_t skipped = prefix != NULL ? strlen(prefix) : 0, cut = sizeof object->holder - 1;
    size_t holder_size = (size_t)numbers[HOLDER_BYTES], size = (size_t)numbers[NAME_BYTES];
    const char *name = holder + holder_size;
    walk->at = name + size;
    if (size <= skipped || lk__name_flaw(name, size) != NULL || size - skipped >= sizeof object->name)
        return false;
    memcpy(object->holder, holder, holder_size < cut ? holder_size : cut);
    memcpy(object->name, name + skipped, size - skipped);
    return walk->pattern == NULL || lk__pattern_fits(walk->pattern, object->name);
}

static void take_numbers(const struct lk_inspect *walk, const long long numbers[NUMBERS], lk_inspected_t *object)
{
    bool mutex = numbers[KIND] == LK_KIND_MUTEX;
    object->kind = mutex && is_quorum(walk->client) ? LK_KIND_REDLOCK : (int)numbers[KIND];
    object->state = (int)numbers[STATE];
    object->server = walk->client->node.cluster != NULL ? walk->place : 0;
    object->holders = (unsigned)numbers[HOLDERS];
    object->waiters = (unsigned)numbers[WAITERS];
    object->remaining_ms = numbers[LEFT];
    object->held_ms = numbers[HELD];
    object->waited_ms = numbers[WAITED];
    object->number = numbers[NUMBER];
    object->total = numbers[TOTAL];
    object->token = (uint64_t)numbers[TOKEN];
}

/* The next object of the last step that is wanted; false: there is none. */
static bool next_object(struct lk_inspect *walk, lk_inspected_t *object)
{
    long long numbers[NUMBERS];
    while (walk->at != NULL && *walk->at != '\0' && read_numbers(&walk->at, numbers)) {
        *object = (lk_inspected_t){ 0 };
        if (take_names(walk, numbers, object)) {
            take_numbers(walk, numbers, object);
            return true;
        }
    }
    walk->at = NULL;
    return false;
}

/* Nothing is left of the last step. 0: another one was made, or it is known where. */
static int go_on(struct lk_inspect *walk)
{
    int rc = lk__client_stay(walk->client, "lk_inspect_next");
    if (rc == 0 && !walk->begun && !next_server(walk))
        rc = end_unless_moved(walk);
    if (rc != 0)
        return rc;
    rc = step(walk);
    bool away = rc == ENOTCONN || rc == EIO;
    return away && (leave_out(walk) || leave_behind(walk)) ? 0 : rc;
}

static int next(struct lk_inspect *walk, lk_inspected_t *object)
{
    int rc = 0;
    while (rc == 0 && !next_object(walk, object))
        rc = go_on(walk);
    return rc;
}

/* --- public calls ------------------------------------------------------------------------------------------------- */

int lk_inspect_next(lk_inspect_t *walk, lk_inspected_t *found)
{
    struct lk__apistate api = lk__api_enter();
    lk_inspected_t object;
    int rc = lk__sized_check(found, LK__THROUGH(lk_inspected_t, name), "lk_inspected_t");
    if (rc == 0 && walk == NULL)
        rc = lk__fail(EINVAL, "lk_inspect_next: no walk was given");
    if (rc == 0)
        rc = lk__client_enter(walk->client);
    if (rc == 0) {
        rc = next(walk, &object);
        lk__client_leave(walk->client);
    }
    if (rc == 0)
        lk__sized_write(found, &object, sizeof object);
    return lk__api_leave(&api, rc);
}

int lk_inspect_stats(const lk_inspect_t *walk, lk_inspectstats_t *stats)
{
    struct lk__apistate api = lk__api_enter();
    int rc = lk__sized_check(stats, LK__THROUGH(lk_inspectstats_t, slots_missing), "lk_inspectstats_t");
    if (rc == 0 && walk == NULL)
        rc = lk__fail(EINVAL, "lk_inspect_stats: no walk was given");
    if (rc == 0)
        lk__sized_write(stats, &walk->stats, sizeof walk->stats);
    return lk__api_leave(&api, rc);
}

static void free_walk(struct lk_inspect *walk)
{
    lk__free(walk->pattern);
    lk__free(walk);
}

/* A mutex at a server of a quorum is a redlock's. */
static unsigned quorum_kinds(unsigned kinds)
{
    bool redlocks = (kinds >> LK_KIND_REDLOCK & 1) != 0;
    return redlocks ? kinds | 1U << LK_KIND_MUTEX : kinds & ~(1U << LK_KIND_MUTEX);
}

/* Nothing of it is left on failure. */
static int make(struct lk_inspect **made, lk_client_t *client, const lk_inspectattr_t *attr)
{
    struct lk_inspect *walk = lk__alloc(sizeof *walk);
    if (walk != NULL && attr->pattern != NULL)
        walk->pattern = lk__strdup(attr->pattern);
    if (walk == NULL || (attr->pattern != NULL && walk->pattern == NULL)) {
        if (walk != NULL)
            free_walk(walk);
        return lk__fail(ENOMEM, "lk_inspect_open: out of memory for a walk");
    }
    walk->kinds = attr->kinds != 0 ? attr->kinds : KINDS_ALL;
    if (is_quorum(client))
        walk->kinds = quorum_kinds(walk->kinds);
    if (client->node.cluster != NULL && !is_quorum(client))
        walk->stats.slots_missing = lk__cluster_slotsof(client->node.cluster, 0);
    atomic_fetch_add(&client->refs, 1);
    walk->client = client;
    *made = walk;
    return 0;
}

int lk_inspect_open(lk_inspect_t **walk, lk_client_t *client, const lk_inspectattr_t *given)
{
    struct lk__apistate api = lk__api_enter();
    lk_inspectattr_t attr = LK_INSPECTATTR_INIT;
    int rc = lk__sized_read(&attr, sizeof attr, given, LK__THROUGH(lk_inspectattr_t, kinds), "lk_inspectattr_t");
    if (rc == 0 && walk == NULL)
        rc = lk__fail(EINVAL, "lk_inspect_open: nowhere to put the walk");
    if (rc == 0 && (attr.kinds & ~(unsigned)KINDS_ALL) != 0)
        rc = lk__fail(EINVAL, "lk_inspect_open: kinds %#x: there is no such kind", attr.kinds);
    if (rc == 0)
        rc = lk__client_enter(client);
    if (rc == 0) {
        rc = make(walk, client, &attr);
        lk__client_leave(client);
    }
    return lk__api_leave(&api, rc);
}

void lk_inspect_close(lk_inspect_t *walk)
{
    struct lk__apistate api = lk__api_enter();
    if (walk != NULL) {
        if (walk->client->process == lk__process())
            lk__client_unref(walk->client);
        free_walk(walk);
    }
    (void)lk__api_leave(&api, 0);
}
