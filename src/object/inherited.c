/* SPDX-License-Identifier: MIT */
/*
 * inherited.c - handles that belong to another process
 *
 * The child of a fork finds the static objects of its parent as the parent has bound them. In memory that both share,
 * such as a mapping from before the fork, it is the very handle that the parent uses. The two cases cannot be told
 * apart, so a handle that belongs to another process is never written to: its binding here is kept beside it, under
 * its address. Name and type are compared, as the memory may be another object's by now.
 *
 * Guards: the process state's mu.
 */
#include "object/handle.h"

#include <string.h>

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
