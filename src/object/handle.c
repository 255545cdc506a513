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
 *             another process'              follow what we keep beside it: inherited.c
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
    uintptr_t nobody = 0;
    return __atomic_compare_exchange_n(handle.process, &nobody, here->process, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE) ||
           nobody == here->process;
}

/* Have the handle lead to `binding`, unless another thread was faster. Takes it. */
static int bind_to(struct lk__processstate *here, struct lk__handle handle, struct lk__binding *binding)
{
    assert(lk__mu_held(&here->mu));
    bool ours = is_ours(handle, here);
    struct lk__binding *present = ours ? bound(handle) : lk__inherited_find(here, handle, binding->kind);
    int rc = 0;
    if (is_open(present)) {
        lk__binding_unref(binding);
    } else if (ours) {
        if (present != NULL)
            rc = lk__binding_retire(here, present);
        if (rc == 0)
            __atomic_store_n(handle.impl, binding, __ATOMIC_RELEASE);
    } else {
        rc = lk__inherited_set(here, handle, binding);
    }
    if (rc != 0)
        lk__binding_unref(binding);
    return rc;
}

static int bind_default(struct lk__handle handle, const struct lk__kind *kind, int64_t limit_us,
                        struct lk__processstate *here)
{
    lk_client_t *client;
    struct lk__binding *binding = NULL;
    int rc = lk__name_check(*handle.name, strlen(*handle.name));
    if (rc == 0)
        rc = lk__client_enterdefault(&client, limit_us);
    if (rc != 0)
        return rc;
    rc = lk__binding_make(kind, client, *handle.name, attr_of(handle), &binding);
    lk__client_leave(client);
    if (rc != 0)
        return rc;
    lk__mu_lock(&here->mu);
    rc = bind_to(here, handle, binding);
    lk__mu_unlock(&here->mu);
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
    struct lk__binding *binding = bound(handle); /* NULL: another thread is about to set it */
    return lk__binding_enter(binding) ? binding : NULL;
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
    if (owner & LK__EXPLICIT) {
        *binding = bound(handle);
        int rc = lk__client_enter((*binding)->object->client);
        if (rc == 0)
            atomic_fetch_add(&(*binding)->refs, 1);
        return rc;
    }
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

/*
 * The process in which a handle was initialised, and its number of forks then, as one word. Process numbers are random
 * and even, so two of them are never close to each other.
 */
static uintptr_t stamp_of(const struct lk__processstate *here)
{
    return here->process + 2 * (uintptr_t)lk__forks();
}

/* Was the handle initialised by that process, before its fork number `forks`? */
static bool is_made_by(struct lk__handle handle, const struct lk__processstate *there, uint64_t forks)
{
    return (handle.spare[1] - there->process) / 2 < forks;
}

/* The name in a static initialiser existed before all forks; a copied name exists here if it was made before our fork. */
bool lk__handle_isreadable(struct lk__handle handle)
{
    const struct lk__processstate *here = lk__process_state();
    if (handle.spare[0] == 0)
        return true;
    if (here == NULL || is_made_by(handle, here, lk__forks() + 1))
        return here != NULL;
    bool readable = false;
    for (; here->parents != NULL && !readable; here = here->parents)
        readable = is_made_by(handle, here->parents, here->born);
    return readable;
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
    size_t front = attr != NULL && client == NULL ? kind->attr_size : 0;      /* of a client's, the binding has them */
    char *copied = here != NULL ? lk__alloc(front + strlen(name) + 1) : NULL; /* spare[0], made in process spare[1] */
    if (copied == NULL)
        return lk__fail(ENOMEM, "%s: out of memory", name);
    strcpy(copied + front, name);
    /* With a client its prefix counts, too; then the full name is looked at. */
    int rc = client == NULL || name[0] == '\0' ? lk__name_check(name, strlen(name)) : 0;
    if (rc == 0 && front > 0)
        rc = kind->check(copied, attr);
    if (rc == 0 && client != NULL && (rc = lk__client_enter(client)) == 0) {
        rc = lk__binding_make(kind, client, name, attr, &binding);
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
    memset(handle.spare, 0, 4 * sizeof *handle.spare);
    handle.spare[0] = (uintptr_t)copied;
    handle.spare[1] = stamp_of(here);
    attach(handle, binding, binding != NULL ? here->process | LK__EXPLICIT : 0);
    return 0;
}

/* Destroying is a call like any other, and a close waits for it; a client that is closed already is not entered. */
static int unbind(struct lk__binding *binding, bool used)
{
    lk_client_t *client = binding->object->client;
    bool open = lk__client_tryenter(client);
    int rc = 0;
    if (open && used && lk__object_isbusy(binding->object))
        rc = lk__fail(EBUSY, "%s: held or waited for by a thread of this process", binding->object->what);
    else if (open && used && !lk__object_settle(binding->object))
        rc = lk__fail(EBUSY, "%s: handed over a moment ago; its fixed lease is not set yet", binding->object->what);
    else
        lk__binding_unref(binding);
    if (open)
        lk__client_leave(client);
    return rc;
}

/* Unbind the handle in this process; of another process' handle, only what is kept beside it. */
static int unbind_ours(struct lk__processstate *here, struct lk__handle handle, bool used)
{
    bool ours = (owner_of(handle) & ~(uintptr_t)LK__EXPLICIT) == here->process;
    lk__mu_lock(&here->mu);
    struct lk__binding *inherited = lk__handle_isreadable(handle) ? lk__inherited_find(here, handle, NULL) : NULL;
    lk__mu_unlock(&here->mu);
    int rc = ours ? unbind(bound(handle), used) : 0;
    if (rc == 0 && inherited != NULL)
        rc = unbind(inherited, used);
    if (rc != 0)
        return rc;
    lk__mu_lock(&here->mu);
    lk__inherited_forget(here, handle);
    lk__mu_unlock(&here->mu);
    if (ours) {
        __atomic_store_n(handle.impl, NULL, __ATOMIC_RELEASE);
        __atomic_store_n(handle.process, 0, __ATOMIC_RELEASE); /* from now on another process may have it */
    }
    return 0;
}

static int destroy(struct lk__handle handle, bool used)
{
    struct lk__processstate *here = lk__process_state();
    if (here == NULL || *handle.name == NULL)
        return 0;
    int rc = unbind_ours(here, handle, used);
    if (rc != 0 || handle.spare[0] == 0) /* a static one may be used again */
        return rc;
    if (!is_made_by(handle, here, lk__forks() + 1))
        return 0; /* the process that initialised it may live, and this be its memory, too */
    lk__free((void *)handle.spare[0]);
    handle.spare[0] = handle.spare[1] = 0;
    *handle.name = NULL;
    set_attr(handle, NULL);
    return 0;
}

int lk__handle_destroy(struct lk__handle handle)
{
    return destroy(handle, true);
}

void lk__handle_abandon(struct lk__handle handle)
{
    destroy(handle, false);
}
