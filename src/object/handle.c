/* SPDX-License-Identifier: MIT */
/*
 * handle.c - from the user's struct to the object behind it
 *
 * A handle names the process whose memory its `impl` points into; the lowest bit marks one that was made
 * for an explicitly opened client. That word is checked before `impl` is followed, so a handle that came by
 * fork or shared memory gives an answer and never a wild pointer.
 *
 *   process   0                             make it ours, then bind to the default client
 *             another process' with the mark ECANCELED
 *             another process'              follow what we keep beside it, see below
 *             ours                          follow impl
 *
 * Only the process that the word names writes to a handle, but for the step from 0, which one of them wins.
 *
 * Guards: the process state's mu, binding and unbinding.
 *
 * The hard case: an unlock or a post lets another thread in, which destroys the object and frees its memory
 * while the first one is still inside, as POSIX allows. So a call touches the handle for the last time when it
 * enters, takes a reference to the binding there, and lives on that.
 */
#include "object/handle.h"
#include "config/name.h"

#include <string.h>

static const void *attr_of(struct lk__handle handle)
{
    const void *attr;
    memcpy(&attr, handle.attr, sizeof attr);
    return attr;
}

static void set_attr(struct lk__handle handle, const void *attr)
{
    memcpy(handle.attr, &attr, sizeof attr);
}

/* NULL: it is no stripe. */
static const struct lk__stripeset *set_of(struct lk__handle handle)
{
    return (const struct lk__stripeset *)handle.spare[LK__SPARE_SET];
}

static uintptr_t owner_of(struct lk__handle handle)
{
    return __atomic_load_n(handle.process, __ATOMIC_ACQUIRE);
}

/* Let the handle follow `binding` from now on; no other thread uses it yet. */
static void attach(struct lk__handle handle, struct lk__binding *binding, uintptr_t process)
{
    __atomic_store_n(handle.impl, binding, __ATOMIC_RELEASE);
    __atomic_store_n(handle.process, process, __ATOMIC_RELEASE);
}

static struct lk__binding *bound(struct lk__handle handle)
{
    return __atomic_load_n(handle.impl, __ATOMIC_ACQUIRE);
}

static bool is_open(const struct lk__binding *binding)
{
    return binding != NULL && !lk__client_isclosed(binding->object->client);
}

/* A handle without a process belongs to the first process that claims it, which may then set its impl. */
static bool is_ours(struct lk__handle handle, const struct lk__processstate *here)
{
    uintptr_t owner = 0;
    return __atomic_compare_exchange_n(handle.process, &owner, here->process, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE) ||
           (owner & ~(uintptr_t)LK__EXPLICIT) == here->process;
}

/* Have the handle lead to `binding`, unless another thread was faster. Takes it. An open client is bound to for good. */
static int bind_to(struct lk__processstate *here, struct lk__handle handle, struct lk__binding *binding)
{
    assert(lk__mu_held(&here->mu));
    bool ours = is_ours(handle, here);
    struct lk__binding *present = ours ? bound(handle) : lk__inherited_find(here, handle, binding->kind);
    int rc = 0;
    if (is_open(present) || (present != NULL && (owner_of(handle) & LK__EXPLICIT))) {
        lk__binding_unref(binding);
    } else if (ours) {
        if (present != NULL)
            rc = lk__binding_retire(here, present);
        if (rc == 0)
            __atomic_store_n(handle.impl, binding, __ATOMIC_SEQ_CST);
        lk__binding_dropretired(here);
    } else {
        rc = lk__inherited_set(here, handle, binding);
    }
    if (rc != 0)
        lk__binding_unref(binding);
    return rc;
}

/* Bind the handle to its client, which is entered; this leaves it. */
static int bind_client(struct lk__processstate *here, struct lk__handle handle, const struct lk__kind *kind,
                       lk_client_t *client)
{
    struct lk__binding *binding = NULL;
    const struct lk__stripeset *set = set_of(handle);
    unsigned stripes = set != NULL ? set->count : 0;
    int rc = lk__binding_make(kind, client, *handle.name, attr_of(handle), stripes, &binding);
    lk__client_leave(client);
    if (rc != 0)
        return rc;
    lk__mu_lock(&here->mu);
    rc = bind_to(here, handle, binding);
    lk__mu_unlock(&here->mu);
    return rc;
}

static int bind_default(struct lk__handle handle, const struct lk__kind *kind, int64_t limit_us,
                        struct lk__processstate *here)
{
    lk_client_t *client;
    int rc = lk__name_check(*handle.name, strlen(*handle.name));
    if (rc == 0)
        rc = lk__client_enterdefault(&client, limit_us);
    return rc == 0 ? bind_client(here, handle, kind, client) : rc;
}

/* The binding of a handle of an open client, entered. A stripe's is made on its first use. */
static int enter_explicit(struct lk__processstate *here, struct lk__handle handle, const struct lk__kind *kind,
                          struct lk__binding **binding)
{
    int rc = 0;
    if (bound(handle) == NULL) {
        lk_client_t *client = set_of(handle)->client;
        rc = lk__client_enter(client);
        if (rc == 0)
            rc = bind_client(here, handle, kind, client);
    }
    if (rc != 0)
        return rc;
    *binding = bound(handle);
    rc = lk__client_enter((*binding)->object->client);
    if (rc == 0)
        atomic_fetch_add(&(*binding)->refs, 1);
    return rc;
}

static struct lk__binding *enter_inherited(struct lk__processstate *here, struct lk__handle handle,
                                           const struct lk__kind *kind)
{
    lk__mu_lock(&here->mu);
    struct lk__binding *binding = lk__inherited_find(here, handle, kind);
    if (!lk__binding_enter(binding))
        binding = NULL;
    lk__mu_unlock(&here->mu);
    return binding;
}

/* The binding of a handle of the default client, entered; NULL: the handle has no binding to an open client. */
static struct lk__binding *enter_default(struct lk__processstate *here, struct lk__handle handle,
                                         const struct lk__kind *kind)
{
    uintptr_t owner = owner_of(handle);
    if (owner != here->process)
        return owner != 0 ? enter_inherited(here, handle, kind) : NULL;
    lk__mu_lock(&here->mu); /* so that it is not replaced meanwhile */
    struct lk__binding *binding = bound(handle); /* NULL: another thread is about to set it */
    if (!lk__binding_enter(binding))
        binding = NULL;
    lk__mu_unlock(&here->mu);
    return binding;
}

int lk__handle_enter(struct lk__handle handle, const struct lk__kind *kind, int64_t limit_us,
                     struct lk__binding **binding)
{
    struct lk__processstate *here = lk__process_state();
    if (here == NULL)
        return lk__fail(ENOMEM, "out of memory");
    if (*handle.name == NULL)
        return lk__fail(EINVAL, "an object without a name: it was never initialised, or was destroyed");
    uintptr_t owner = owner_of(handle);
    if ((owner & ~(uintptr_t)LK__EXPLICIT) != here->process &&
        (lk__handle_isinherited(handle) || !lk__handle_isreadable(handle)))
        return lk__fail(ECANCELED, "%s: it or its client belongs to another process, or to the parent of a fork",
                        lk__handle_name(handle));
    if (owner & LK__EXPLICIT)
        return enter_explicit(here, handle, kind, binding);
    int rc = 0;
    while (rc == 0 && (*binding = enter_default(here, handle, kind)) == NULL)
        rc = bind_default(handle, kind, limit_us, here);
    return rc;
}

bool lk__handle_isinherited(struct lk__handle handle)
{
    uintptr_t owner = owner_of(handle);
    return (owner & LK__EXPLICIT) && owner != (lk__process() | LK__EXPLICIT);
}

/* Process numbers are random and even, so two of them are never close to each other. */
uintptr_t lk__handle_stamp(const struct lk__processstate *here)
{
    return here->process + 2 * (uintptr_t)lk__forks();
}

/* Was it made by that process, before its fork number `forks`? */
static bool is_made_by(uintptr_t stamp, const struct lk__processstate *there, uint64_t forks)
{
    return (stamp - there->process) / 2 < forks;
}

bool lk__stamp_isours(uintptr_t stamp, const struct lk__processstate *here)
{
    return is_made_by(stamp, here, lk__forks() + 1);
}

bool lk__stamp_isreadable(uintptr_t stamp)
{
    const struct lk__processstate *here = lk__process_state();
    if (here == NULL || lk__stamp_isours(stamp, here))
        return here != NULL;
    bool readable = false;
    for (; here->parents != NULL && !readable; here = here->parents)
        readable = is_made_by(stamp, here->parents, here->born);
    return readable;
}

/* The name in a static initialiser existed before all forks; a copied name exists here if it was made before our fork. */
bool lk__handle_isreadable(struct lk__handle handle)
{
    return handle.spare[LK__SPARE_NAME] == 0 || lk__stamp_isreadable(handle.spare[LK__SPARE_STAMP]);
}

const char *lk__handle_name(struct lk__handle handle)
{
    return lk__handle_isreadable(handle) && *handle.name != NULL ? *handle.name : "an object";
}

int lk__handle_init(struct lk__handle handle, const struct lk__kind *kind, lk_client_t *client, const char *name,
                    const void *attr)
{
    struct lk__processstate *here = lk__process_state();
    struct lk__binding *binding = NULL;
    if (name == NULL)
        return lk__fail(EINVAL, "no name was given");
    size_t front = attr != NULL && client == NULL ? kind->attr_size : 0; /* of a client's, the binding has them */
    char *copied = here != NULL ? lk__alloc(front + strlen(name) + 1) : NULL;
    if (copied == NULL)
        return lk__fail(ENOMEM, "%s: out of memory", name);
    strcpy(copied + front, name);
    /* With a client its prefix counts, too; then the full name is looked at. */
    int rc = client == NULL || name[0] == '\0' ? lk__name_check(name, strlen(name)) : 0;
    if (rc == 0 && front > 0)
        rc = kind->check(copied, attr);
    if (rc == 0 && client != NULL && (rc = lk__client_enter(client)) == 0) {
        rc = lk__binding_make(kind, client, name, attr, 0, &binding);
        lk__client_leave(client);
    }
    if (rc != 0) {
        lk__free(copied);
        return rc;
    }
    *handle.name = copied + front;
    if (attr != NULL)
        attr = front > 0 ? copied : binding->attr;
    set_attr(handle, attr);
    memset(handle.spare, 0, LK__SPARES * sizeof *handle.spare);
    handle.spare[LK__SPARE_NAME] = (uintptr_t)copied;
    handle.spare[LK__SPARE_STAMP] = lk__handle_stamp(here);
    attach(handle, binding, binding != NULL ? here->process | LK__EXPLICIT : 0);
    return 0;
}

void lk__handle_setstripe(struct lk__handle handle, const struct lk__processstate *here,
                          const struct lk__stripeset *set)
{
    handle.spare[LK__SPARE_SET] = (uintptr_t)set;
    attach(handle, NULL, set->client != NULL ? here->process | LK__EXPLICIT : 0);
}

/* What becomes of a handle: refused while its object is used, looked at only, or let go of in any case. */
enum ending { DESTROY, TRY, ABANDON };

/* Destroying is a call like any other, and a close waits for it; a client that is closed already is not entered. */
static int unbind(struct lk__binding *binding, enum ending ending)
{
    lk_client_t *client = binding->object->client;
    bool open = lk__client_tryenter(client);
    int rc = 0;
    if (open && ending != ABANDON && lk__object_isbusy(binding->object))
        rc = lk__fail(EBUSY, "%s: held or waited for by a thread of this process", binding->object->what);
    else if (open && ending != ABANDON && !lk__object_settle(binding->object))
        rc = lk__fail(EBUSY, "%s: handed over a moment ago; its fixed lease is not set yet", binding->object->what);
    else if (ending != TRY)
        lk__binding_unref(binding);
    if (open)
        lk__client_leave(client);
    return rc;
}

/* Unbind the handle in this process; of another process' handle, only what is kept beside it. */
static int unbind_ours(struct lk__processstate *here, struct lk__handle handle, enum ending ending)
{
    bool ours = (owner_of(handle) & ~(uintptr_t)LK__EXPLICIT) == here->process;
    struct lk__binding *own = ours ? bound(handle) : NULL;
    lk__mu_lock(&here->mu);
    struct lk__binding *inherited = lk__handle_isreadable(handle) ? lk__inherited_find(here, handle, NULL) : NULL;
    lk__mu_unlock(&here->mu);
    int rc = own != NULL ? unbind(own, ending) : 0;
    if (rc == 0 && inherited != NULL)
        rc = unbind(inherited, ending);
    if (rc != 0 || ending == TRY)
        return rc;
    lk__mu_lock(&here->mu);
    lk__inherited_forget(here, handle);
    lk__mu_unlock(&here->mu);
    if (!ours)
        return 0;
    __atomic_store_n(handle.impl, NULL, __ATOMIC_RELEASE);
    if (set_of(handle) == NULL || set_of(handle)->client == NULL)
        __atomic_store_n(handle.process, 0, __ATOMIC_RELEASE); /* from now on another process may have it */
    return 0;
}

int lk__handle_checkunused(struct lk__handle handle)
{
    struct lk__processstate *here = lk__process_state();
    return here != NULL ? unbind_ours(here, handle, TRY) : 0;
}

static int destroy(struct lk__handle handle, enum ending ending)
{
    struct lk__processstate *here = lk__process_state();
    if (here == NULL || *handle.name == NULL)
        return 0;
    int rc = unbind_ours(here, handle, ending);
    if (rc != 0 || handle.spare[LK__SPARE_NAME] == 0) /* a static one may be used again */
        return rc;
    if (!lk__stamp_isours(handle.spare[LK__SPARE_STAMP], here))
        return 0; /* the process that initialised it may live, and this be its memory, too */
    lk__free((void *)handle.spare[LK__SPARE_NAME]);
    handle.spare[LK__SPARE_NAME] = handle.spare[LK__SPARE_STAMP] = 0;
    *handle.name = NULL;
    set_attr(handle, NULL);
    return 0;
}

int lk__handle_destroy(struct lk__handle handle)
{
    return destroy(handle, DESTROY);
}

void lk__handle_abandon(struct lk__handle handle)
{
    destroy(handle, ABANDON);
}

/* --- handles that belong to another process ----------------------------------------------------------------------- */

/*
 * The child of a fork finds the static objects of its parent as the parent has bound them. In memory that both share,
 * such as a mapping from before the fork, it is the very handle that the parent uses. The two cases cannot be told
 * apart, so a handle that belongs to another process is never written to: its binding here is kept beside it, under
 * its address. Name and type are compared, as the memory may be another object's by now.
 *
 * Guards: the process state's mu.
 */

struct inherited {
    struct lk__entry entry; /* the key is the handle's address */
    const void *handle;
    struct lk__binding *binding;
};

static struct inherited *inherited_at(struct lk__processstate *here, const void *address)
{
    assert(lk__mu_held(&here->mu));
    struct lk__entry *entry = here->bindings != NULL
                                  ? lk__map_find(&here->bindings->inherited, 0, (const char *)&address, sizeof address)
                                  : NULL;
    return entry != NULL ? LK__CONTAINER(entry, struct inherited, entry) : NULL;
}

struct lk__binding *lk__inherited_find(struct lk__processstate *here, struct lk__handle handle,
                                       const struct lk__kind *kind)
{
    assert(lk__mu_held(&here->mu));
    struct inherited *inherited = inherited_at(here, handle.name);
    if (inherited == NULL || strcmp(lk__object_name(inherited->binding->object), *handle.name) != 0 ||
        (kind != NULL && inherited->binding->kind != kind))
        return NULL;
    return inherited->binding;
}

int lk__inherited_set(struct lk__processstate *here, struct lk__handle handle, struct lk__binding *binding)
{
    assert(lk__mu_held(&here->mu));
    struct lk__bindings *bindings = lk__bindings_here(here);
    struct inherited *inherited = inherited_at(here, handle.name);
    if (bindings == NULL)
        return ENOMEM;
    if (inherited != NULL) {
        lk__binding_unref(inherited->binding);
    } else {
        inherited = lk__alloc(sizeof *inherited);
        if (inherited == NULL)
            return lk__fail(ENOMEM, "%s: out of memory", *handle.name);
        inherited->handle = handle.name;
        inherited->entry =
            (struct lk__entry){ .key = (const char *)&inherited->handle, .length = sizeof inherited->handle };
        lk__map_insert(&bindings->inherited, &inherited->entry);
    }
    inherited->binding = binding;
    return 0;
}

void lk__inherited_forget(struct lk__processstate *here, struct lk__handle handle)
{
    assert(lk__mu_held(&here->mu));
    struct inherited *inherited = inherited_at(here, handle.name);
    if (inherited == NULL)
        return;
    lk__map_remove(&here->bindings->inherited, &inherited->entry);
    lk__free(inherited);
}
