/* SPDX-License-Identifier: MIT */
/* command.c - what a call of a script is made of, before it is sent; send.c writes it */
#include "redis/command.h"

#include <string.h>

const char *lk__command_key(const struct lk__command *command, size_t *length)
{
    const char *key;
    memcpy(&key, (const char *)command->keys + command->script->key_at[0], sizeof key);
    *length = strlen(key);
    return key;
}
