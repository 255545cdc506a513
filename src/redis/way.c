/* SPDX-License-Identifier: MIT */
/*
 * way.c - what is asked of the one node that rooms above have, which is the server, or the way into a cluster
 *
 * What is wanted of a lane is wanted of that lane of all nodes, those to come, too.
 */
#include "redis/node.h"
#include "redis/call.h"

#include <string.h>

void lk__node_own(struct lk__node *node, enum lk__lane lane, int wake_fd, lk__message_t *message, void *arg)
{
    lk__conn_own(&node->lanes[lane], wake_fd, message, arg);
    if (lk__node_isway(node))
        lk__cluster_own(node->cluster, lane, wake_fd, message, arg);
}

void lk__node_close(struct lk__node *node, enum lk__lane lane)
{
    struct lk__node *at;
    if ((int)lane >= node->lane_count)
        return;
    for (unsigned n = 0; lk__node_isway(node) && (at = lk__node_nth(node, n)) != NULL; n++)
        lk__conn_close(&at->lanes[lane]);
    lk__conn_close(&node->lanes[lane]);
}

void lk__node_serve(struct lk__node *node, enum lk__lane lane, struct pollfd *extra, int extra_count, int64_t until_us)
{
    struct lk__conn *conns[LK__NODES_MAX];
    struct lk__node *at;
    int count = 0;
    if (!lk__node_isway(node)) {
        lk__conn_want(&node->lanes[lane]);
        conns[count++] = &node->lanes[lane];
    }
    for (unsigned n = 0; lk__node_isway(node) && (at = lk__node_nth(node, n)) != NULL; n++)
        conns[count++] = &at->lanes[lane];
    lk__conn_serve(conns, count, extra, extra_count, until_us);
}

static void add_stats(struct lk__nodestats *stats, const struct lk__node *node)
{
    stats->connects += atomic_load(&node->lanes[LK__LANE_COMMANDS].connects);
    for (int lane = 0; lane < node->lane_count; lane++) {
        stats->round_trips += atomic_load(&node->lanes[lane].round_trips);
        stats->reloads += atomic_load(&node->lanes[lane].reloads);
    }
}

struct lk__nodestats lk__node_stats(struct lk__node *node)
{
    struct lk__nodestats stats = { 0 };
    struct lk__node *at;
    for (unsigned n = 0; (at = lk__node_nth(node, n)) != NULL; n++)
        add_stats(&stats, at);
    return stats;
}

/* --- rights that access rules (ACL) withhold ---------------------------------------------------------------------- */

/*
 * A connection comes up only with the rights that all objects need. Missing rights that only some objects need are
 * known since then, so these objects are refused before their first request, not in the middle of a script.
 */

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
