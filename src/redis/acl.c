/* SPDX-License-Identifier: MIT */
/*
 * acl.c - rights that access rules (ACL) withhold
 *
 * A connection comes up only with the rights that all objects need. Missing rights that only some objects need are
 * known since then, so these objects are refused before their first request, not in the middle of a script.
 */
#include "redis/call.h"

#include <string.h>

/* Is `word` one of `words`, which are separated by blanks? */
static bool is_among(const char *words, const char *word, size_t length)
{
    for (const char *at = words; *at != '\0'; at += strcspn(at, " ")) {
        at += strspn(at, " ");
        if (strcspn(at, " ") == length && strncmp(at, word, length) == 0)
            return true;
    }
    return false;
}

int lk__acl_check(struct lk__node *node, const char *what, const char *commands)
{
    struct lk__conn *conn = &lk__node_nth(node, 0)->lanes[LK__LANE_COMMANDS];
    char missing[LK__ACL_MAX];
    lk__mu_lock(&conn->mu);
    memcpy(missing, conn->missing, sizeof missing);
    lk__mu_unlock(&conn->mu);
    for (char *save, *right = strtok_r(missing, " ", &save); right != NULL; right = strtok_r(NULL, " ", &save))
        if (right[0] == '+' && is_among(commands, right + 1, strlen(right + 1)))
            return lk__fail(EACCES, "%s: the user's access rules (ACL) lack %s, which it needs", what, right);
    return 0;
}
