/* SPDX-License-Identifier: MIT */
/*
 * object.c - what a name is in this process: shared by all handles of it, with the holds of all its threads
 *
 * Guards: client->mu the registry; object->mu the holds. Order: client->mu before object->mu.
 *
 * The hard case: the last handle of a name goes while the client is closing. Whoever of the two comes first takes
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

/* What an object is called; holds that are left of it keep this. */
struct title {
    struct lk__block block;
    char what[]; /* "mutex orders", and behind it the name with the client's prefix, if that has one */
};

static const char *name_of(const struct title *title)
{
    return strchr(title->what, ' ') + 1;
}

static const char *prefix_of(const lk_client_t *client)
{
    return client->options->prefix != NULL ? client->options->prefix : "";
}

static const char *full_of(const struct title *title, const lk_client_t *client)
{
    return prefix_of(client)[0] != '\0' ? title->what + strlen(title->what) + 1 : name_of(title);
}

static struct title *make_title(const lk_client_t *client, int kind, const char *name)
{
    const char *prefix = prefix_of(client);
    size_t what_size = strlen(lk__kind_name(kind)) + 1 + strlen(name) + 1;
    size_t full_size = prefix[0] != '\0' ? strlen(prefix) + strlen(name) + 1 : 0;
    struct title *title = lk__alloc(sizeof *title + what_size + full_size);
    if (title == NULL)
        return NULL;
    title->block.refs = 1;
    snprintf(title->what, what_size, "%s %s", lk__kind_name(kind), name);
    if (full_size > 0)
        snprintf(title->what + what_size, full_size, "%s%s", prefix, name);
    return title;
}

static void destroy(struct lk__object *object)
{
    lk_client_t *client = object->client;
    assert(object->quiet && lk__list_empty(&object->holds) && lk__list_empty(&object->nobodys));
    lk__map_free(&object->owners);
    lk__localqueue_destroy(&object->queue);
    lk__mu_destroy(&object->mu);
    object->free(object);
    lk__client_unref(client);
}

/* Under client->mu. */
static struct lk__object *create(lk_client_t *client, int kind, struct title *title, int fair, bool robust,
                                 lk__object_make_t make)
{
    const char *full = full_of(title, client);
    struct lk__object *object = make(client, full, fair, robust);
    if (object == NULL)
        return NULL;
    object->client = client;
    object->block->under = lk__block_ref(&title->block);
    object->name = name_of(title);
    object->what = title->what;
    object->entry = (struct lk__entry){ NULL, full, strlen(full), kind };
    lk__mu_init(&object->mu, LK__MU_OBJECT);
    lk__list_init(&object->holds);
    lk__list_init(&object->nobodys);
    lk__localqueue_init(&object->queue, &object->mu);
    atomic_fetch_add(&client->refs, 1);
    lk__map_insert(&client->objects, &object->entry);
    return object;
}

/* Under client->mu. */
static int find_or_create(lk_client_t *client, int kind, struct title *title, int fair, bool robust,
                          lk__object_make_t make, struct lk__object **found)
{
    const char *full = full_of(title, client);
    struct lk__entry *entry = lk__map_find(&client->objects, kind, full, strlen(full));
    struct lk__object *object = NULL;
    if (entry != NULL) {
        object = LK__CONTAINER(entry, struct lk__object, entry);
        if (object->fair != fair || object->robust != robust)
            return lk__fail(EINVAL,
                            "%s: in use in this client with other attributes of the name: fair, prefer or robust",
                            object->what);
    } else {
        object = create(client, kind, title, fair, robust, make);
        if (object == NULL)
            return lk__fail(ENOMEM, "%s: out of memory", title->what);
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
    struct title *title = make_title(client, kind, name);
    if (title == NULL)
        return lk__fail(ENOMEM, "%s %s: out of memory", lk__kind_name(kind), name);
    int rc = lk__name_check(full_of(title, client), strlen(full_of(title, client)));
    if (rc == 0) {
        lk__mu_lock(&client->mu);
        rc = find_or_create(client, kind, title, fair, robust, make, object);
        lk__mu_unlock(&client->mu);
    }
    lk__block_unref(&title->block); /* the object has its own reference */
    return rc;
}

void lk__object_unref(struct lk__object *object)
{
    lk_client_t *client = object->client;
    lk__mu_lock(&client->mu);
    bool last = --object->refs == 0;
    if (last) {
        lk__map_remove(&client->objects, &object->entry);
        lk__object_quiet(object, lk__client_isclosed(client) && !client->released ? &client->leftover : NULL);
    }
    lk__mu_unlock(&client->mu);
    if (last)
        destroy(object);
}

/* --- its holds ------------------------------------------------------------------------------------------------- */

enum { BY_OWNER, BY_ID };

/* Under object->mu. */
static void enter_as_oldest(struct lk__object *object, struct lk__hold *hold)
{
    size_t length = strlen(hold->id);
    if (hold->owner != 0)
        hold->owned = (struct lk__entry){ NULL, (const char *)&hold->owner, sizeof hold->owner, BY_OWNER };
    else
        hold->owned = (struct lk__entry){ NULL, hold->id + length - LK__ID_LENGTH, LK__ID_LENGTH, BY_ID };
    lk__map_insert(&object->owners, &hold->owned);
}

/* Under object->mu. */
static struct lk__hold *oldest_of(const struct lk__object *object, uint64_t owner)
{
    struct lk__entry *entry = lk__map_find(&object->owners, BY_OWNER, (const char *)&owner, sizeof owner);
    return entry != NULL ? LK__CONTAINER(entry, struct lk__hold, owned) : NULL;
}

/* Under object->mu. The links of an owner's holds are a circle; that of the oldest, which the map has, is its head. */
static void put_on(struct lk__object *object, struct lk__hold *hold)
{
    struct lk__hold *oldest = oldest_of(object, hold->owner);
    lk__list_append(&object->holds, &hold->mine);
    if (oldest != NULL) {
        lk__list_append(&oldest->kin, &hold->kin);
        return;
    }
    lk__list_init(&hold->kin);
    enter_as_oldest(object, hold);
}

/* Under object->mu. False: it was taken off before. */
static bool take_off(struct lk__object *object, struct lk__hold *hold)
{
    if (!lk__listed(&hold->mine))
        return false;
    struct lk__link *next = lk__list_first(&hold->kin);
    bool oldest = hold->owned.key != NULL;
    if (oldest)
        lk__map_remove(&object->owners, &hold->owned);
    hold->owned.key = NULL;
    lk__list_remove(&hold->kin);
    lk__list_remove(&hold->mine);
    if (oldest && next != NULL)
        enter_as_oldest(object, LK__CONTAINER(next, struct lk__hold, kin));
    return true;
}

static void leave_over(struct lk__object *object, struct lk__link *link, struct lk__link *leftover)
{
    struct lk__hold *hold = LK__CONTAINER(link, struct lk__hold, mine);
    lk__mu_lock(&object->mu);
    take_off(object, hold);
    lk__mu_unlock(&object->mu);
    lk__watchdog_forget(hold->dog, hold);
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
    lk__mu_lock(&object->mu);
    struct lk__hold *hold = oldest_of(object, owner);
    lk__mu_unlock(&object->mu);
    return hold;
}

struct lk__hold *lk__object_permit(struct lk__object *object, const char *id)
{
    struct lk__entry *entry = lk__map_find(&object->owners, BY_ID, id, LK__ID_LENGTH);
    return entry != NULL ? LK__CONTAINER(entry, struct lk__hold, owned) : NULL;
}

unsigned lk__object_count(struct lk__object *object, uint64_t owner, unsigned enough)
{
    unsigned sum = 0;
    lk__mu_lock(&object->mu);
    const struct lk__hold *oldest = oldest_of(object, owner);
    if (oldest != NULL)
        sum = (unsigned)oldest->holds;
    for (struct lk__link *l = oldest != NULL ? lk__list_first(&oldest->kin) : NULL; l != NULL && sum < enough;
         l = lk__list_next(&oldest->kin, l))
        sum += (unsigned)LK__CONTAINER(l, struct lk__hold, kin)->holds;
    lk__mu_unlock(&object->mu);
    return sum;
}

/* Holds that nobody is left to give back go when they are lost, as soon as somebody comes. */
static void drop_nobodys(struct lk__object *object)
{
    struct lk__hold *hold;
    while ((hold = lk__watchdog_nextofnobody(&object->client->dog, &object->nobodys)) != NULL) {
        lk__object_drophold(object, hold);
        lk__hold_unref(hold);
    }
}

void lk__object_addhold(struct lk__object *object, struct lk__hold *hold)
{
    hold->nobodys = &object->nobodys;
    lk__mu_lock(&object->mu);
    put_on(object, hold);
    lk__mu_unlock(&object->mu);
    drop_nobodys(object);
}

void lk__object_drophold(struct lk__object *object, struct lk__hold *hold)
{
    bool lost = !lk__watchdog_end(hold->dog, hold) && lk__watchdog_waslost(hold->dog, hold) &&
                hold->reason != LK_REASON_RELEASED;
    lk__mu_lock(&object->mu);
    bool mine = take_off(object, hold);
    lk__mu_unlock(&object->mu);
    if (!mine)
        return;
    atomic_fetch_add(&object->renewals, atomic_load(&hold->renewals));
    if (lost)
        atomic_fetch_add(&object->losses, 1);
    lk__hold_unref(hold);
}

bool lk__object_isbusy(struct lk__object *object)
{
    bool busy = atomic_load(&object->waiting) > 0;
    lk__mu_lock(&object->mu);
    for (struct lk__link *l = lk__list_first(&object->holds); l != NULL && !busy;
         l = lk__list_next(&object->holds, l)) {
        struct lk__hold *hold = LK__CONTAINER(l, struct lk__hold, mine);
        busy = lk__watchdog_good(hold->dog, hold, NULL) && !lk__watchdog_isownerless(hold->dog, hold);
    }
    lk__mu_unlock(&object->mu);
    return busy;
}
