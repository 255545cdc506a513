/* SPDX-License-Identifier: MIT */
/* manners.c - a call leaves errno alone, and is no cancellation point unless it says so */
#include "base/base.h"

struct lk__manners lk__begin(void)
{
    struct lk__manners manners = { .error = errno };
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &manners.cancel_state);
    return manners;
}

int lk__end(const struct lk__manners *manners, int code)
{
    pthread_setcancelstate(manners->cancel_state, NULL);
    errno = manners->error;
    return code;
}
