/* SPDX-License-Identifier: MIT */
/* command.c - what a call of a script is made of, before it is sent; send.c writes it */
#include "redis/command.h"

#include <string.h>

struct lk__block *lk__block_copy(const void *args, size_t size, struct lk__block *under, const void **copy)
{
    struct {
        struct lk__block block;
        max_align_t args[];
    } *own = lk__alloc(sizeof *own + size);
    if (own == NULL) {
        lk__fail(ENOMEM, "out of memory for the arguments of a request");
        return NULL;
    }
    own->block.refs = 1;
    own->block.under = lk__block_ref(under);
    memcpy(own->args, args, size);
    *copy = own->args;
    return &own->block;
}

const char *lk__command_key(const struct lk__command *command, size_t *length)
{
    const char *key;
    memcpy(&key, (const char *)command->keys + command->script->key_at[0], sizeof key);
    *length = strlen(key);
    return key;
}
