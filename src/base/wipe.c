/* SPDX-License-Identifier: MIT */
/* wipe.c - the end of a secret: what held it is overwritten before it is freed */
#include "base/base.h"

#include <string.h>

void lk__wipe(char *secret)
{
    if (secret == NULL)
        return;
    explicit_bzero(secret, strlen(secret));
    lk__free(secret);
}
