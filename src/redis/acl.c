/* SPDX-License-Identifier: MIT */
/*
 * acl.c - rights that access rules (ACL) withhold
 *
 * A connection comes up only with the rights that all objects need. Missing rights that only some objects need are
 * known since then, so these objects are refused before their first request, not in the middle of a script.
 */
#include "config/name.h"
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

/* By its text, as a script that is denied something in its middle has the same code; in doubt it began. */
bool lk__acl_unbegun(const struct lk__reply *reply)
{
    const char *says = lk__reply_text(reply, 0);
    return lk__reply_is(reply, "NOPERM") && strstr(says, " key") != NULL && strstr(says, "script") == NULL;
}

int lk__acl_refused(int code, const char *what, const struct lk__command *command, const struct lk__reply *reply)
{
    const char *says = lk__reply_text(reply, 0);
    char key[128];
    if (!lk__acl_unbegun(reply) || command->script->keys == 0)
        return lk__fail(code, "%s: the server says: %s", what, says);
    size_t length;
    const char *first = lk__command_key(command, &length);
    lk__name_print(key, sizeof key, first, length);
    return lk__fail(code, "%s: the user's access rules (ACL) do not cover a key of it (~%s): the server says: %s", what,
                    key, says);
}
