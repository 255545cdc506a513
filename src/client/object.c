/* SPDX-License-Identifier: MIT */
/*
 * object.c - what a name is in this process: shared by all shells of it, with the holds of all its threads
 *
 * Guards: client->mu the registry; object->mu the holds. Order: client->mu before object->mu.
 *
 * The hard case: the last shell of a name goes while the client is closing. Whoever of the two comes first takes
 * the object from the hub, in one step with its place in the registry, so the hub is never met after its end, and
 * a new object of that name finds the old one gone everywhere. Its holds stay until the close released them.
 */
#include "client/client.h"
#include "redis/keys.h"

#include <stdio.h>
#include <string.h>

const char *lk__kind_name(int kind)
{
    static const char *const names[LK__KINDS] = {
        [LK_KIND_MUTEX] = "mutex",     [LK_KIND_RWLOCK] = "rwlock", [LK_KIND_SEM] = "semaphore",
        [LK_KIND_PERMITS] = "permits", [LK_KIND_LATCH] = "latch",
    };
    return names[kind];
}

static char *joined(const char *a, const char *between, const char *b)
{
    size_t size = strlen(a) + strlen(between) + strlen(b) + 1;
    char *text = lk__alloc(size);
    if (text != NULL)
        snprintf(text, size, "%s%s%s", a, between, b);
    return text;
}

static void destroy(struct lk__object *object)
{
    lk_client_t *client = object->client;
    assert(object->quiet && lk__list_empty(&object->holds));
    lk__line_destroy(&object->line);
    pthread_mutex_destroy(&object->mu);
    lk__release(object->full);
    lk__release(object->what);
    object->free(object);
    lk__client_drop(client);
}

/* Under client->mu. Takes `full`. */
static struct lk__object *create(lk_client_t *client, int kind, char *full, const char *name, lk__object_make_t make)
{
    char *what = joined(lk__kind_name(kind), " ", name);
    struct lk__object *object = what != NULL ? make(client, full) : NULL;
    if (object == NULL) {
        lk__release(what);
        return NULL;
    }
    object->client = client;
    object->full = full;
    object->name = full + strlen(full) - strlen(name);
    object->what = what;
    object->entry = (struct lk__entry){ NULL, full, strlen(full), kind };
    pthread_mutex_init(&object->mu, NULL);
    lk__list_init(&object->holds);
    lk__line_init(&object->line);
    atomic_fetch_add(&client->refs, 1);
    lk__map_insert(&client->objects, &object->entry);
    return object;
}

/* Under client->mu. Takes `full`. */
static int find_or_create(lk_client_t *client, int kind, char *full, const char *name, int fair, bool robust,
                          lk__object_make_t make, struct lk__object **found)
{
    struct lk__entry *entry = lk__map_find(&client->objects, kind, full, strlen(full));
    struct lk__object *object = NULL;
    if (entry != NULL) {
        lk__release(full);
        object = LK__CONTAINER(entry, struct lk__object, entry);
        if (object->fair != fair || object->robust != robust)
            return lk__fail(EINVAL,
                            "%s: in use in this client with other attributes of the name: fair, prefer or robust",
                            object->what);
    } else {
        object = create(client, kind, full, name, make);
        if (object == NULL) {
            lk__release(full);
            return lk__fail(ENOMEM, "%s %s: out of memory", lk__kind_name(kind), name);
        }
        object->fair = fair;
        object->robust = robust;
    }
    object->refs++;
    *found = object;
    return 0;
}

int lk__object_get(lk_client_t *client, int kind, const char *name, int fair, bool robust, lk__object_make_t make,
                   struct lk__object **object)
{
    const char *prefix = client->options->prefix != NULL ? client->options->prefix : "";
    char *full = joined(prefix, "", name);
    if (full == NULL)
        return lk__fail(ENOMEM, "%s %s: out of memory", lk__kind_name(kind), name);
    int rc = lk__name_check(full, strlen(full));
    if (rc != 0) {
        lk__release(full);
        return rc;
    }
    pthread_mutex_lock(&client->mu);
    rc = find_or_create(client, kind, full, name, fair, robust, make, object);
    pthread_mutex_unlock(&client->mu);
    return rc;
}

void lk__object_put(struct lk__object *object)
{
    lk_client_t *client = object->client;
    pthread_mutex_lock(&client->mu);
    bool last = --object->refs == 0;
    if (last) {
        lk__map_remove(&client->objects, &object->entry);
        lk__object_quiet(object, lk__client_isclosed(client) && !client->released ? &client->leftover : NULL);
    }
    pthread_mutex_unlock(&client->mu);
    if (last)
        destroy(object);
}

static void leave_over(struct lk__object *object, struct lk__link *link, struct lk__link *leftover)
{
    pthread_mutex_lock(&object->mu);
    lk__list_remove(link);
    pthread_mutex_unlock(&object->mu);
    lk__list_append(leftover, link);
}

void lk__object_quiet(struct lk__object *object, struct lk__link *leftover)
{
    struct lk__link *link;
    if (object->quiet)
        return;
    object->quiet = true;
    object->stop(object);
    while ((link = lk__list_first(&object->holds)) != NULL) /* whose owners never unlocked, or cannot any more */
        if (leftover != NULL)
            leave_over(object, link, leftover);
        else
            lk__object_drophold(object, LK__CONTAINER(link, struct lk__hold, mine));
}

struct lk__hold *lk__object_hold(struct lk__object *object, uint64_t owner)
{
    struct lk__hold *found = NULL;
    pthread_mutex_lock(&object->mu);
    for (struct lk__link *l = lk__list_first(&object->holds); l != NULL && found == NULL;
         l = lk__list_next(&object->holds, l))
        if (LK__CONTAINER(l, struct lk__hold, mine)->owner == owner)
            found = LK__CONTAINER(l, struct lk__hold, mine);
    pthread_mutex_unlock(&object->mu);
    return found;
}

/* Holds of threads that ended are nobody's to unlock: they go when they are lost. */
static struct lk__hold *some_orphan(struct lk__object *object)
{
    for (struct lk__link *l = lk__list_first(&object->holds); l != NULL; l = lk__list_next(&object->holds, l)) {
        struct lk__hold *hold = LK__CONTAINER(l, struct lk__hold, mine);
        if (lk__watchdog_isorphan(hold->dog, hold))
            return hold;
    }
    return NULL;
}

void lk__object_addhold(struct lk__object *object, struct lk__hold *hold)
{
    struct lk__hold *orphan;
    pthread_mutex_lock(&object->mu);
    lk__list_append(&object->holds, &hold->mine);
    orphan = some_orphan(object);
    pthread_mutex_unlock(&object->mu);
    if (orphan != NULL)
        lk__object_drophold(object, orphan);
}

void lk__object_drophold(struct lk__object *object, struct lk__hold *hold)
{
    bool lost = !lk__watchdog_end(hold->dog, hold) && lk__watchdog_waslost(hold->dog, hold);
    pthread_mutex_lock(&object->mu);
    bool mine = lk__listed(&hold->mine);
    lk__list_remove(&hold->mine);
    pthread_mutex_unlock(&object->mu);
    if (!mine)
        return;
    atomic_fetch_add(&object->renewals, atomic_load(&hold->renewals));
    if (lost)
        atomic_fetch_add(&object->losses, 1);
    lk__hold_drop(hold);
}

bool lk__object_isbusy(struct lk__object *object)
{
    bool busy = atomic_load(&object->waiting) > 0;
    pthread_mutex_lock(&object->mu);
    for (struct lk__link *l = lk__list_first(&object->holds); l != NULL && !busy;
         l = lk__list_next(&object->holds, l)) {
        struct lk__hold *hold = LK__CONTAINER(l, struct lk__hold, mine);
        busy = lk__watchdog_good(hold->dog, hold, NULL) && !lk__watchdog_isownerless(hold->dog, hold);
    }
    pthread_mutex_unlock(&object->mu);
    return busy;
}
