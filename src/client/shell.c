/* SPDX-License-Identifier: MIT */
/*
 * shell.c - from the user's struct to the object behind it
 *
 * A shell names the process whose memory its `impl` points into; the lowest bit marks one that was made
 * for an explicitly opened client. That word is checked before `impl` is followed, so a shell that came by
 * fork or shared memory gives an answer and never a wild pointer.
 *
 *   process   0, or another process' without the mark   bind to the default client
 *             another process' with the mark            ECANCELED
 *             ours                                      follow impl
 *
 * Guards: the household's mu, binding and unbinding.
 *
 * The hard case: an unlock or a post lets another thread in, which destroys the object and frees its memory
 * while the first one is still inside, as POSIX allows. So a call touches the shell for the last time when it
 * enters, takes a reference to the binding there, and lives on that.
 */
#include "client/client.h"
#include "redis/keys.h"

#include <string.h>

enum { EXPLICIT = 1 };

/* What lk_..._init() copies; spare[0] points at it, spare[1] says in which process. */
struct copied {
    _Alignas(max_align_t) unsigned char attr[128];
    char name[];
};

static uintptr_t owner_of(struct lk__shell shell)
{
    return __atomic_load_n(shell.process, __ATOMIC_ACQUIRE);
}

static int make_binding(const struct lk__shelltype *type, lk_client_t *client, const char *name, const void *given,
                        struct lk__binding **made)
{
    int fair;
    bool robust;
    struct lk__binding *binding = lk__alloc(sizeof *binding + type->attr_size);
    if (binding == NULL)
        return lk__fail(ENOMEM, "%s: out of memory", name);
    int rc = type->check(binding->attr, given);
    if (rc == 0 && type->variant != NULL)
        type = type->variant(binding->attr);
    if (rc == 0)
        rc = lk__rights_check(&client->conn, name, type->commands);
    if (rc == 0) {
        type->traits(binding->attr, &fair, &robust);
        rc = lk__object_get(client, type->kind, name, fair, robust, type->make, &binding->object);
    }
    binding->refs = 1;
    if (rc != 0)
        lk__release(binding);
    else
        *made = binding;
    return rc;
}

static void drop_binding(struct lk__binding *binding)
{
    if (atomic_fetch_sub(&binding->refs, 1) != 1)
        return;
    lk__object_put(binding->object);
    lk__release(binding);
}

/* Under the household's mu: let the shell follow `binding` from now on. */
static void attach(struct lk__shell shell, struct lk__binding *binding, uintptr_t process)
{
    __atomic_store_n(shell.impl, binding, __ATOMIC_RELEASE);
    __atomic_store_n(shell.process, process, __ATOMIC_RELEASE);
}

static struct lk__binding *bound(struct lk__shell shell)
{
    return __atomic_load_n(shell.impl, __ATOMIC_ACQUIRE);
}

/*
 * Under the household's mu: another thread may be about to follow this binding, and find its client closed.
 * It is kept; a program closes its default client once, if ever.
 */
static void retire(struct lk__household *here, struct lk__binding *binding)
{
    binding->older = here->retired;
    here->retired = binding;
}

/* Bind to the default client; another thread may have been faster. */
static int bind_default(struct lk__shell shell, const struct lk__shelltype *type, int64_t limit_us,
                        struct lk__household *here)
{
    lk_client_t *client;
    struct lk__binding *binding = NULL;
    int rc = lk__name_check(*shell.name, strlen(*shell.name));
    if (rc == 0)
        rc = lk__client_enterdefault(&client, limit_us);
    if (rc != 0)
        return rc;
    rc = make_binding(type, client, *shell.name, *shell.attr, &binding);
    lk__client_leave(client);
    if (rc != 0)
        return rc;
    pthread_mutex_lock(&here->mu);
    bool ours = owner_of(shell) == here->process;
    bool wanted = !ours || lk__client_isclosed(bound(shell)->object->client);
    if (wanted && ours)
        retire(here, bound(shell));
    if (wanted)
        attach(shell, binding, here->process);
    pthread_mutex_unlock(&here->mu);
    if (!wanted)
        drop_binding(binding);
    return 0;
}

int lk__shell_enter(struct lk__shell shell, const struct lk__shelltype *type, int64_t limit_us,
                    struct lk__binding **binding)
{
    struct lk__household *here = lk__household();
    if (here == NULL)
        return lk__fail(ENOMEM, "out of memory");
    if (*shell.name == NULL)
        return lk__fail(EINVAL, "an object without a name: it was never initialised, or was destroyed");
    for (;;) {
        uintptr_t owner = owner_of(shell);
        if (lk__shell_isforeign(shell))
            return lk__fail(ECANCELED, "%s: its client belongs to another process, or to the parent of a fork",
                            *shell.name);
        if ((owner & ~(uintptr_t)EXPLICIT) == here->process) {
            *binding = bound(shell);
            int rc = lk__client_enter((*binding)->object->client);
            if (rc == 0)
                atomic_fetch_add(&(*binding)->refs, 1);
            if (rc == 0 || (owner & EXPLICIT))
                return rc;
        }
        int rc = bind_default(shell, type, limit_us, here);
        if (rc != 0)
            return rc;
    }
}

/* The binding goes first: its object may be the last of it, and is part of what a close waits for. */
void lk__shell_leave(struct lk__binding *binding)
{
    lk_client_t *client = binding->object->client;
    drop_binding(binding);
    lk__client_leave(client);
}

bool lk__shell_isforeign(struct lk__shell shell)
{
    uintptr_t owner = owner_of(shell);
    return (owner & EXPLICIT) && owner != (lk__process() | EXPLICIT);
}

int lk__shell_init(struct lk__shell shell, const struct lk__shelltype *type, lk_client_t *client, const char *name,
                   const void *attr)
{
    struct lk__household *here = lk__household();
    struct lk__binding *binding = NULL;
    if (name == NULL)
        return lk__fail(EINVAL, "no name was given");
    struct copied *copied = here != NULL ? lk__alloc(sizeof *copied + strlen(name) + 1) : NULL;
    if (copied == NULL)
        return lk__fail(ENOMEM, "%s: out of memory", name);
    assert(type->attr_size <= sizeof copied->attr);
    strcpy(copied->name, name);
    /* With a client its prefix counts, too; then the full name is looked at. */
    int rc = client == NULL || name[0] == '\0' ? lk__name_check(name, strlen(name)) : 0;
    if (rc == 0)
        rc = type->check(copied->attr, attr);
    if (rc == 0 && client != NULL && (rc = lk__client_enter(client)) == 0) {
        rc = make_binding(type, client, name, attr, &binding);
        lk__client_leave(client);
    }
    if (rc != 0) {
        lk__release(copied);
        return rc;
    }
    *shell.name = copied->name;
    *shell.attr = attr != NULL ? copied->attr : NULL;
    memset(shell.spare, 0, 4 * sizeof *shell.spare);
    shell.spare[0] = (uintptr_t)copied;
    shell.spare[1] = here->process;
    attach(shell, binding, binding != NULL ? here->process | EXPLICIT : 0);
    return 0;
}

/* A call as any other, which a close waits for; a client that is closed already is not asked. */
static int unbind(struct lk__binding *binding)
{
    lk_client_t *client = binding->object->client;
    bool open = lk__client_tryenter(client);
    int rc = 0;
    if (open && lk__object_isbusy(binding->object))
        rc = lk__fail(EBUSY, "%s: held or waited for by a thread of this process", binding->object->what);
    else
        drop_binding(binding);
    if (open)
        lk__client_leave(client);
    return rc;
}

int lk__shell_destroy(struct lk__shell shell)
{
    struct lk__household *here = lk__household();
    if (here == NULL || *shell.name == NULL)
        return 0;
    if ((owner_of(shell) & ~(uintptr_t)EXPLICIT) == here->process) {
        int rc = unbind(bound(shell));
        if (rc != 0)
            return rc;
    }
    attach(shell, NULL, 0);
    if (shell.spare[0] == 0)
        return 0; /* a static one may be used again */
    if (shell.spare[1] == here->process)
        lk__release((void *)shell.spare[0]);
    shell.spare[0] = shell.spare[1] = 0;
    *shell.name = NULL;
    *shell.attr = NULL;
    return 0;
}
