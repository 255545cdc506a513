/* SPDX-License-Identifier: MIT */
/* builder.c - options while they are read: what was said so far, and why it failed */
#include "config/builder.h"

#include <stdio.h>
#include <string.h>

void lk__builder_begin(struct lk__builder *builder, enum lk__source source)
{
    memset(builder, 0, sizeof *builder);
    builder->source = source;
}

void lk__builder_layer(struct lk__builder *builder)
{
    builder->given = 0;
    builder->server = builder->password = builder->sentinel_password = false;
}

void lk__builder_drop(struct lk__builder *builder)
{
    lk__options_clear(&builder->options);
}

int lk__builder_fail(struct lk__builder *builder, int code, const char *subject, const char *format, ...)
{
    va_list args;
    builder->subject = subject;
    va_start(args, format);
    vsnprintf(builder->errmsg, sizeof builder->errmsg, format, args);
    va_end(args);
    return code;
}

void lk__builder_leaveout(struct lk__builder *builder)
{
    const char *subject = builder->subject != NULL ? builder->subject : "";
    if (!builder->silent)
        lk__log(LK_LOG_WARNING, "left out of $REDIS_URL: %s%s%s", subject, *subject != '\0' ? ": " : "",
                builder->errmsg);
}

int lk__builder_nomem(struct lk__builder *builder)
{
    return lk__builder_fail(builder, ENOMEM, NULL, "out of memory or descriptors");
}
