/* SPDX-License-Identifier: MIT */
/*
 * object.c - what a name is in this process: shared by all handles of it
 *
 * Guards: client->mu the registry. Order: client->mu before object->mu.
 *
 * The hard case: the last handle of a name is destroyed while the client is closing. The first of the two removes the
 * object from hub and registry in one step, so the hub is not used after its end, and a new object of that name finds
 * nothing left of the old one. Its holds stay until the close has released them.
 */
#include "object/object.h"
#include "config/name.h"
#include "base/probe.h"

#include <stdio.h>
#include <string.h>

static const char *prefix_of(const lk_client_t *client)
{
    return client->options->prefix != NULL ? client->options->prefix : "";
}

static void destroy(struct lk__object *object)
{
    lk_client_t *client = object->client;
    assert(object->quiet && lk__list_empty(&object->holds) && lk__list_empty(&object->orphans));
    lk__map_free(&object->owners);
    lk__mu_destroy(&object->mu);
    if (object->kind->destroy != NULL)
        object->kind->destroy(object);
    lk__block_unref(object->block);
    lk__free(object);
    lk__client_unref(client);
}

static struct lk__object *object_of(struct lk__entry *entry)
{
    return LK__CONTAINER(entry, struct lk__object, member.entry);
}

/* --- as a member of its client ------------------------------------------------------------------------------------ */

static void cancel(struct lk__member *member)
{
    struct lk__object *object = object_of(&member->entry);
    if (object->kind->cancel != NULL)
        object->kind->cancel(object);
}

/* Stop the object, once, and take its holds from it. `leftover`: NULL, or where these go. */
static void make_quiet(struct lk__object *object, struct lk__link *leftover)
{
    assert(lk__mu_held(&object->client->mu));
    if (object->quiet)
        return;
    object->quiet = true;
    if (object->kind->stop != NULL)
        object->kind->stop(object);
    lk__object_dropholds(object, leftover);
}

/* From now on threads that hold the object are told ECANCELED. */
static void quiet(struct lk__member *member)
{
    make_quiet(object_of(&member->entry), NULL);
}

static void describe(struct lk__member *member, struct lk__memberstats *stats)
{
    struct lk__object *object = object_of(&member->entry);
    *stats = (struct lk__memberstats){ .name = lk__object_name(object),
                                       .acquisitions = atomic_load(&object->acquisitions),
                                       .contended = atomic_load(&object->contended),
                                       .renewals = atomic_load(&object->renewals),
                                       .losses = atomic_load(&object->losses),
                                       .waiting = atomic_load(&object->waiting) };
    lk__object_addlive(object, stats);
}

static const struct lk__memberrole role = { .cancel = cancel, .quiet = quiet, .describe = describe };

/* --- made on first use, gone with its last handle ------------------------------------------------------------------ */

/*
 * A block with its keys. Behind it lie its object's names, which holds that outlive the object keep: "mutex orders",
 * and as the server has it, with the prefix; then the texts of the keys.
 */
static struct lk__block *make_block(const struct lk__kind *kind, const lk_client_t *client, const char *name,
                                    const char *full, struct lk__traits traits)
{
    unsigned is = (client->options->redisson ? LK__IF_REDISSON : 0U) | (traits.anonymous ? LK__IF_ANONYMOUS : 0U);
    const char *kind_name = lk__kind_names[kind->number];
    size_t what_size = strlen(kind_name) + 1 + strlen(name) + 1;
    size_t full_size = prefix_of(client)[0] != '\0' ? strlen(full) + 1 : 0; /* else it is in the other one */
    size_t keys_size = lk__keys_room(kind->keys, kind->key_count, full, is);
    struct lk__block *block = lk__alloc(kind->block_size + what_size + full_size + keys_size);
    if (block == NULL)
        return NULL;
    char *what = (char *)block + kind->block_size, *own = what + strlen(kind_name) + 1;
    snprintf(what, what_size, "%s %s", kind_name, name);
    if (full_size > 0)
        own = memcpy(what + what_size, full, full_size);
    lk__keys_write(kind->keys, kind->key_count, own, is, block, what + what_size + full_size);
    block->refs = 1;
    return block;
}

/* The names of an object whose block is made. */
static void set_names(struct lk__object *object)
{
    object->what = (const char *)object->block + object->kind->block_size;
    const char *full = lk__object_name(object);
    if (prefix_of(object->client)[0] != '\0')
        full += strlen(full) + 1;
    object->member = (struct lk__member){ { NULL, full, (unsigned)strlen(full), object->kind->number }, &role };
}

/* A new object, without the primitive's part. */
static void complete(struct lk__object *object)
{
    set_names(object);
    lk__mu_init(&object->mu, LK__MU_OBJECT);
    lk__list_init(&object->holds);
    lk__list_init(&object->orphans);
    lk__settings_makedue(object);
    atomic_fetch_add(&object->client->refs, 1);
}

static struct lk__object *create(lk_client_t *client, const struct lk__kind *kind, const char *name, const char *full,
                                 struct lk__traits traits)
{
    assert(lk__mu_held(&client->mu));
    struct lk__object *object = lk__alloc(kind->size);
    struct lk__block *block = object != NULL ? make_block(kind, client, name, full, traits) : NULL;
    if (block == NULL) {
        lk__free(object);
        return NULL;
    }
    object->kind = kind;
    object->block = block;
    object->traits = traits;
    object->client = client;
    if (!kind->init(object)) {
        lk__block_unref(block);
        lk__free(object);
        return NULL;
    }
    complete(object);
    lk__map_insert(&client->members, &object->member.entry);
    return object;
}

static int find_or_create(lk_client_t *client, const struct lk__kind *kind, const char *name, const char *full,
                          struct lk__traits traits, struct lk__object **found)
{
    assert(lk__mu_held(&client->mu));
    struct lk__entry *entry = lk__map_find(&client->members, kind->number, full, strlen(full));
    struct lk__object *object = entry != NULL ? object_of(entry) : create(client, kind, name, full, traits);
    if (object == NULL)
        return lk__fail(ENOMEM, "%s %s: out of memory", lk__kind_names[kind->number], name);
    if (object->traits.order != traits.order || object->traits.robust != traits.robust ||
        object->traits.anonymous != traits.anonymous || object->traits.stripes != traits.stripes)
        return lk__fail(EINVAL,
                        "%s: in use in this client with other attributes of the name: fair, prefer, robust, "
                        "anonymous, or the number of stripes",
                        object->what);
    object->refs++;
    *found = object;
    return 0;
}

/* One server's word counts for nothing where a majority decides, and the other way round. */
static int check_quorum(const lk_client_t *client, const struct lk__kind *kind, const char *name)
{
    if (kind->quorum && !client->options->quorum)
        return lk__fail(EINVAL, "%s %s: needs a client of several servers, redis-quorum://host,host,host",
                        lk__kind_names[kind->number], name);
    if (!kind->quorum && client->options->quorum)
        return lk__fail(ENOTSUP, "%s %s: a client of a quorum has redlocks and nothing else; open one of a single server",
                        lk__kind_names[kind->number], name);
    return 0;
}

int lk__object_get(lk_client_t *client, const struct lk__kind *kind, const char *name, struct lk__traits traits,
                   struct lk__object **object)
{
    char full[LK_NAME_MAX + 2]; /* cut, it is too long all the same */
    snprintf(full, sizeof full, "%s%s", prefix_of(client), name);
    int rc = lk__name_check(full, strlen(full));
    if (rc == 0)
        rc = check_quorum(client, kind, name);
    if (rc == 0) {
        lk__mu_lock(&client->mu);
        rc = find_or_create(client, kind, name, full, traits, object);
        lk__mu_unlock(&client->mu);
    }
    return rc;
}

void lk__object_unref(struct lk__object *object)
{
    lk_client_t *client = object->client;
    lk__mu_lock(&client->mu);
    bool last = --object->refs == 0;
    if (last) {
        lk__map_remove(&client->members, &object->member.entry);
        make_quiet(object, lk__client_isclosed(client) && !client->released ? &client->leftover : NULL);
    }
    lk__mu_unlock(&client->mu);
    if (last)
        destroy(object);
}

/* --- what statistics have of an object, and of its kind ----------------------------------------------------------- */

void lk__object_acquired(struct lk__object *object, int64_t began_us, bool contended)
{
    struct lk__kindstats *stats = &object->client->stats[object->kind->number];
    lk__histogram_add(&stats->wait, lk__histogram_times, lk__now_us() - began_us);
    atomic_fetch_add(&object->acquisitions, 1);
    if (!contended)
        return;
    atomic_fetch_add(&object->contended, 1);
    atomic_fetch_add(&stats->contended, 1);
}

void lk__object_waitslong(struct lk__object *object, uint64_t owner)
{
    atomic_fetch_add(&object->client->stats[object->kind->number].long_waits, 1);
    lk__events_makeroom(&object->client->events); /* a counting semaphore's wait makes no hold, which would do it */
    lk__events_ofobject(&object->client->events, LK_EVENT_LONG_WAIT, object->kind->number, lk__object_name(object), owner);
}

void lk__object_waitedlong(struct lk__object *object, int64_t began_us)
{
    int64_t now_us = lk__now_us();
    if (lk__linepause_over(&object->client->waited, now_us))
        lk__log(LK_LOG_WARNING, "%s: waited for %lld ms", object->what, (long long)((now_us - began_us) / 1000));
}

void lk__object_gaveback(struct lk__object *object, const struct lk__hold *hold)
{
    int64_t held_us = lk__now_us() - hold->began_us;
    lk__histogram_add(&object->client->stats[hold->kind].hold, lk__histogram_times, held_us);
    LK__PROBE3(release, lk__object_name(object), hold->lease.id, held_us);
}

void lk__object_addlive(struct lk__object *object, struct lk__memberstats *stats)
{
    lk__mu_lock(&object->mu);
    for (struct lk__link *l = lk__list_first(&object->holds); l != NULL; l = lk__list_next(&object->holds, l)) {
        struct lk__hold *hold = LK__CONTAINER(l, struct lk__hold, mine);
        stats->renewals += atomic_load(&hold->lease.renewals);
        stats->losses += lk__lease_waslost(&hold->lease) && hold->lease.reason != LK_REASON_RELEASED;
    }
    lk__mu_unlock(&object->mu);
}
