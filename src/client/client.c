/* SPDX-License-Identifier: MIT */
/*
 * client.c - open, share, close
 *
 * Guards: client->mu the registry and the end of the last call. The number of calls and the mark of a close
 * are one word: a call is counted before the close, which waits for it, or sees the mark. With the mark set
 * calls leave under client->mu, so that close() frees nothing that the last one still looks at.
 */
#include "client/describe.h"
#include "client/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BEGINS_WITHIN_MS = 200, AWAITED_US = 100000, PEEK_US = 5000, LEAVE_WITHIN_MS = 5000 };

/* --- calls under way ------------------------------------------------------------------------------------- */

bool lk__client_isclosed(const lk_client_t *client)
{
    return (atomic_load(&client->calls) & LK__CLOSING) != 0;
}

int lk__client_stay(const lk_client_t *client, const char *what)
{
    return lk__client_isclosed(client) ? lk__fail(ECANCELED, "%s: the client was closed", what) : 0;
}

int lk__client_enter(lk_client_t *client)
{
    if (client == NULL)
        return lk__fail(EINVAL, "no client was given");
    if (client->process != lk__process())
        return lk__fail(ECANCELED, "the client was opened before a fork, or in another process");
    return lk__client_tryenter(client) ? 0 : lk__fail(ECANCELED, "the client was closed");
}

void lk__client_leaveclosing(lk_client_t *client)
{
    lk__mu_lock(&client->mu);
    if (atomic_fetch_sub(&client->calls, 1) - 1 == LK__CLOSING)
        pthread_cond_broadcast(&client->idle);
    lk__mu_unlock(&client->mu);
}

/* --- what the process asks of its clients --------------------------------------------------------------- */

static void thread_exited(uint64_t owner)
{
    struct lk__processstate *here = lk__process_state();
    if (here == NULL)
        return;
    lk__mu_lock(&here->mu);
    for (struct lk__link *l = lk__list_first(&here->clients); l != NULL; l = lk__list_next(&here->clients, l))
        lk__watchdog_ownergone(&LK__CONTAINER(l, struct lk_client, link)->dog, owner);
    lk__mu_unlock(&here->mu);
}

/* All threads of the program have ended. Give back what is still held, as no thread is left to do it. */
static void process_ends(void)
{
    struct lk__processstate *here = lk__process_state();
    lk_client_t *client;
    do {
        lk__mu_lock(&here->mu);
        struct lk__link *first = lk__list_first(&here->clients);
        client = first != NULL ? LK__CONTAINER(first, struct lk_client, link) : NULL;
        lk__mu_unlock(&here->mu);
    } while (client != NULL && lk_client_close(client) != EDEADLK);
}

static void join_process(struct lk__processstate *here, lk_client_t *client)
{
    lk__thread_onexit(thread_exited);
    lk__process_onend(process_ends);
    lk__mu_lock(&here->mu);
    lk__list_append(&here->clients, &client->link);
    lk__mu_unlock(&here->mu);
}

/* --- opening ---------------------------------------------------------------------------------------------- */

void lk__client_unref(lk_client_t *client)
{
    if (atomic_fetch_sub(&client->refs, 1) != 1)
        return;
    pthread_cond_destroy(&client->idle);
    lk__mu_destroy(&client->mu);
    lk__events_destroy(&client->events); /* a queue of events may be longer than its client */
    lk__map_free(&client->members);
    lk__free(client);
}

/* The node is the way into a cluster, if the options say so. */
static int find_cluster(lk_client_t *client)
{
    struct lk__options *options = &client->node.server.options;
    if (!options->cluster && !options->quorum)
        return 0;
    client->node.server.pubsub = options->quorum ? LK__PUBSUB_PLAIN : LK__PUBSUB_SHARDED;
    return lk__cluster_new(&client->node.cluster, &client->node, client->connector);
}

static void destroy_nodes(lk_client_t *client)
{
    if (client->node.cluster != NULL)
        lk__cluster_free(client->node.cluster);
    lk__node_destroy(&client->node);
}

/* Make the parts that need descriptors; on failure none is left. */
static int build(lk_client_t *client, struct lk__options *options)
{
    struct lk__notice *notice = NULL;
    int rc = lk__connector_start(&client->connector);
    if (rc != 0)
        return rc;
    rc = lk__node_init(&client->node, client->connector, options);
    if (rc != 0) {
        lk__connector_stop(client->connector);
        goto no_node;
    }
    rc = find_cluster(client);
    if (rc != 0)
        goto no_hub;
    client->options = &client->node.server.options;
    rc = lk__hub_init(&client->hub, &client->node);
    if (rc != 0)
        goto no_hub;
    rc = lk__client_describe(client, &notice);
    if (rc != 0)
        goto no_dog;
    rc = lk__watchdog_init(&client->dog, &client->node, lk__events_notify, &client->events);
    if (rc != 0)
        goto no_dog;
    client->dog.notice = notice;
    lk__events_init(&client->events, client->stats);
    lk__waiters_init(&client->waiters, client->id, &client->node, &client->hub, client->options);
    lk__mu_init(&client->mu, LK__MU_CLIENT);
    lk__cond_init(&client->idle);
    lk__list_init(&client->leftover);
    lk__terms_set(&client->terms[0], client->options, true);
    lk__terms_set(&client->terms[1], client->options, false);
    return 0;
no_dog:
    lk__free(notice);
    lk__hub_destroy(&client->hub);
no_hub:
    lk__connector_stop(client->connector); /* it may be asking Sentinels already, for the node */
    destroy_nodes(client);
no_node:
    lk__connector_unref(client->connector);
    return rc;
}

/* Wait for any of a cluster's first `count` nodes, for a moment each. ETIMEDOUT: one of them may still come. */
static int await_some(lk_client_t *client, struct lk__parker *parker, struct lk__node **at, unsigned count,
                      int64_t until_us)
{
    struct lk__node *next;
    int result = ENOTCONN;
    for (unsigned n = 0; n < count && (next = lk__node_nth(&client->node, n)) != NULL; n++) {
        int64_t now_us = lk__now_us(), moment_us = now_us + AWAITED_US < until_us ? now_us + AWAITED_US : until_us;
        int rc = lk__conn_awaitup(&next->lanes[LK__LANE_COMMANDS], parker, 0, moment_us);
        *at = next;
        if (rc == 0 || rc == ECANCELED)
            return rc;
        result = rc == ETIMEDOUT ? rc : result;
    }
    return result;
}

/* 0, or EINVAL, with an error text: two nodes of a quorum are one server under two names, and would have two votes. */
static int check_votes(lk_client_t *client)
{
    struct lk__peerinfo peers[LK__QUORUM_MAX];
    struct lk__node *node;
    for (unsigned n = 0; (node = lk__node_nth(&client->node, n)) != NULL; n++) {
        lk__conn_peer(&node->lanes[LK__LANE_COMMANDS], &peers[n]);
        for (unsigned before = 0; before < n; before++)
            if (peers[n].run_id[0] != '\0' && strcmp(peers[n].run_id, peers[before].run_id) == 0)
                return lk__fail(EINVAL, "the servers %u and %u of the quorum are the same one: each has one vote",
                                before + 1, n + 1);
    }
    return 0;
}

/* Nodes of a quorum that are up; `*open`: those of which that is not known yet; `*down`: the last of the others. */
static unsigned count_up(lk_client_t *client, struct lk__parker *parker, unsigned *open, struct lk__node **down)
{
    struct lk__node *node;
    unsigned up = 0;
    *open = 0;
    for (unsigned n = 0; (node = lk__node_nth(&client->node, n)) != NULL; n++) {
        int rc = lk__conn_awaitup(&node->lanes[LK__LANE_COMMANDS], parker, 0, lk__now_us() + PEEK_US);
        up += rc == 0;
        *open += rc == ETIMEDOUT;
        if (rc != 0)
            *down = node;
    }
    return up;
}

/* Wait for a majority of a quorum, and for a moment for the others: who is there is looked at. */
static int await_majority(lk_client_t *client, struct lk__parker *parker, struct lk__node **at, int64_t until_us)
{
    unsigned count = client->options->server_count, up, open;
    int64_t all_until_us = lk__now_us() + AWAITED_US;
    struct lk__node *node;
    for (unsigned n = 0; (node = lk__node_nth(&client->node, n)) != NULL; n++)
        lk__node_want(node, LK__LANE_COMMANDS);
    do
        up = count_up(client, parker, &open, at);
    while (open > 0 && lk__now_us() < (up >= lk__majority_of(count) ? all_until_us : until_us));
    if (up >= lk__majority_of(count)) {
        *at = NULL;
        return check_votes(client);
    }
    return ENOTCONN;
}

/*
 * Wait for a node, of a cluster for any: one that is down, or stands still, is no reason to fail, and not all of them are
 * connected to where the first one answers. `*at` is the last that was tried; NULL: there was none, with an error text.
 */
static int await_any(lk_client_t *client, struct lk__parker *parker, struct lk__node **at, int64_t until_us)
{
    struct lk__cluster *cluster = client->node.cluster;
    *at = cluster == NULL ? &client->node : NULL;
    if (cluster == NULL)
        return lk__conn_awaitup(&client->node.lanes[LK__LANE_COMMANDS], parker, 0, until_us);
    lk__cluster_begin(cluster);
    int rc = lk__cluster_await(cluster, until_us);
    if (rc == 0 && client->options->quorum)
        return await_majority(client, parker, at, until_us);
    bool more = rc == 0;
    for (unsigned count = 1; more; count++) {
        rc = await_some(client, parker, at, count, until_us);
        more = rc == ETIMEDOUT || (rc == ENOTCONN && lk__node_nth(&client->node, count) != NULL);
        more = more && lk__now_us() < until_us;
    }
    return rc;
}

/*
 * Wait for the first connection, one attempt: a little longer than that may take, as it begins a little later, and knows
 * why it failed.
 */
static int connect_once(lk_client_t *client)
{
    char errmsg[LK__ERRMSG_MAX];
    struct lk__parker parker;
    lk__parker_init(&parker);
    int64_t until_us = lk__now_us() + (client->options->connect_timeout_ms + BEGINS_WITHIN_MS) * 1000;
    struct lk__node *at = &client->node;
    int rc = await_any(client, &parker, &at, until_us);
    lk__parker_destroy(&parker);
    if (rc == 0)
        return 0;
    if (at == NULL)
        return rc;
    int last_error = lk__conn_lasterror(&at->lanes[LK__LANE_COMMANDS], errmsg, sizeof errmsg);
    if (last_error != 0)
        return lk__fail(rc == ETIMEDOUT ? ENOTCONN : last_error, "%s", errmsg);
    lk__options_print(client->options, errmsg, sizeof errmsg);
    return lk__fail(ENOTCONN, "%s: no connection within %lld ms (connect_timeout)", errmsg,
                    (long long)client->options->connect_timeout_ms);
}

/* End the parts that have a thread or a descriptor. Objects may still point to the rest, and find it closed. */
static void shut(lk_client_t *client)
{
    lk__connector_stop(client->connector);
    if (client->node.cluster != NULL)
        lk__cluster_stop(client->node.cluster);
    lk__node_close(&client->node, LK__LANE_COMMANDS);
    lk__node_close(&client->node, LK__LANE_GRANTS);
    lk__waiters_destroy(&client->waiters);
    lk__hub_destroy(&client->hub);
    lk__watchdog_destroy(&client->dog);
    destroy_nodes(client);
    lk__connector_unref(client->connector);
    lk__client_unref(client);
    lk__log_flush();
}

/* Takes what `options` holds. */
static int open_with(lk_client_t **opened, struct lk__options *options)
{
    struct lk__processstate *here = lk__process_state();
    lk__thread_self(); /* the thread is one of the program, though it may never lock anything */
    lk_client_t *client = here != NULL ? lk__alloc(sizeof *client) : NULL;
    int rc = client == NULL ? lk__fail(ENOMEM, "out of memory for a client") : lk__random_id(client->id);
    if (rc == 0)
        rc = build(client, options);
    lk__options_clear(options);
    if (rc != 0) {
        lk__free(client);
        return rc;
    }
    client->process = lk__process();
    client->refs = 1;
    rc = connect_once(client);
    if (rc != 0) {
        atomic_store(&client->calls, LK__CLOSING);
        shut(client);
        return rc;
    }
    join_process(here, client);
    lk__log_flush(); /* warnings of the server */
    *opened = client;
    return 0;
}

/* Without any URL each host has a server of its own, which is seldom what is meant for a lock. */
static int read_environment(struct lk__options *options)
{
    static atomic_bool warned; /* a default client may be opened again and again */
    const char *ours = secure_getenv("LATCHKEY_URL"), *shared = secure_getenv("REDIS_URL");
    if (ours != NULL)
        return lk__options_url(options, ours);
    if (shared != NULL && shared[0] != '\0')
        return lk__options_sharedurl(options, shared);
    if (!atomic_exchange(&warned, true))
        lk__log(LK_LOG_WARNING, "no URL was given: using redis://127.0.0.1:6379; set LATCHKEY_URL to choose a server");
    return lk__options_url(options, "redis://127.0.0.1:6379");
}

static int read_url(struct lk__options *options, const char *url)
{
    return url != NULL ? lk__options_url(options, url) : read_environment(options);
}

int lk__client_openurl(lk_client_t **client, const char *url)
{
    struct lk__options options;
    if (client == NULL)
        return lk__fail(EINVAL, "lk_client_open: nowhere to put the client");
    int rc = read_url(&options, url);
    return rc != 0 ? rc : open_with(client, &options);
}

/* Nobody else knows the client yet. */
static int counted(lk_client_t **client, int rc)
{
    if (rc == 0)
        (*client)->users = 1;
    return rc;
}

int lk_client_open(lk_client_t **client, const char *url)
{
    struct lk__apistate api = lk__api_enter();
    return lk__api_leave(&api, counted(client, lk__client_openurl(client, url)));
}

static int open_file(lk_client_t **client, const char *json_path)
{
    struct lk__options options;
    if (client == NULL || json_path == NULL)
        return lk__fail(EINVAL, "lk_client_open_file: no client or no path was given");
    int rc = lk__options_file(&options, json_path);
    return rc != 0 ? rc : open_with(client, &options);
}

int lk_client_open_file(lk_client_t **client, const char *json_path)
{
    struct lk__apistate api = lk__api_enter();
    return lk__api_leave(&api, counted(client, open_file(client, json_path)));
}

/* What the program says goes before what URL or file say; whether anything is said they decide. */
static int read_words(char **words, const char *text)
{
    if (text == NULL || *text == '\0')
        return 0;
    lk__free(*words);
    *words = lk__strdup(text);
    return *words != NULL ? 0 : lk__fail(ENOMEM, "out of memory for a client");
}

static int read_description(struct lk__options *options, const lk_clientattr_t *attr)
{
    int rc = read_words(&options->program, attr->program);
    if (rc == 0)
        rc = read_words(&options->arguments, attr->arguments);
    if (rc == 0)
        rc = read_words(&options->why, attr->why);
    return rc;
}

static int read_attr(struct lk__options *options, const lk_clientattr_t *attr)
{
    if (attr->url != NULL && attr->json_path != NULL)
        return lk__fail(EINVAL, "lk_client_openwith: a URL or a file, not both");
    int rc = attr->json_path != NULL ? lk__options_file(options, attr->json_path) : read_url(options, attr->url);
    if (rc != 0)
        return rc;
    if (attr->provider != NULL && options->password != NULL) {
        lk__options_clear(options);
        return lk__fail(EINVAL, "lk_client_openwith: there is a password already, and a function for it");
    }
    options->provider = attr->provider;
    options->provider_arg = attr->arg;
    rc = read_description(options, attr);
    if (rc != 0)
        lk__options_clear(options);
    return rc;
}

static int open_attr(lk_client_t **client, const lk_clientattr_t *given, bool survey)
{
    struct lk__options options;
    lk_clientattr_t attr = LK_CLIENTATTR_INIT;
    if (client == NULL)
        return lk__fail(EINVAL, "lk_client_openwith: nowhere to put the client");
    int rc = lk__sized_read(&attr, sizeof attr, given, LK__THROUGH(lk_clientattr_t, arg), "lk_clientattr_t");
    if (rc == 0)
        rc = read_attr(&options, &attr);
    if (rc != 0)
        return rc;
    options.survey = survey;
    return open_with(client, &options);
}

int lk_client_openwith(lk_client_t **client, const lk_clientattr_t *attr)
{
    struct lk__apistate api = lk__api_enter();
    return lk__api_leave(&api, counted(client, open_attr(client, attr, false)));
}

int lk__client_opensurvey(lk_client_t **client, const lk_clientattr_t *attr)
{
    return counted(client, open_attr(client, attr, true));
}

/* --- closing ---------------------------------------------------------------------------------------------- */

static struct lk__member *member_of(struct lk__entry *entry)
{
    return LK__CONTAINER(entry, struct lk__member, entry);
}

static void cancel_member(struct lk__entry *entry, void *arg)
{
    struct lk__member *member = member_of(entry);
    (void)arg;
    member->role->cancel(member);
}

/*
 * Cancel all waiters; each leaves within one command timeout from now. False: a thread has not left by `until_us`, as it
 * stands still in a handler or a debugger.
 */
static bool wait_for_calls(lk_client_t *client, int64_t until_us)
{
    lk__waiters_close(&client->waiters);
    lk__mu_lock(&client->mu);
    bool idle;
    while (!(idle = atomic_load(&client->calls) == LK__CLOSING) && lk__now_us() < until_us) {
        /* repeated: a thread may have come into a local queue after the last look */
        lk__map_each(&client->members, cancel_member, NULL);
        lk__cond_wait(&client->idle, &client->mu, lk__now_us() + 20000);
    }
    lk__mu_unlock(&client->mu);
    return idle;
}

static void make_quiet(struct lk__entry *entry, void *arg)
{
    struct lk__member *member = member_of(entry);
    (void)arg;
    member->role->quiet(member);
}

static void forget_all_holds(lk_client_t *client)
{
    struct lk__link *link;
    lk__mu_lock(&client->mu);
    client->released = true;
    lk__map_each(&client->members, make_quiet, NULL);
    while ((link = lk__list_first(&client->leftover)) != NULL) {
        struct lk__hold *hold = LK__CONTAINER(link, struct lk__hold, mine);
        lk__list_remove(link);
        lk__lease_end(&hold->lease, NULL);
        lk__hold_unref(hold);
    }
    lk__mu_unlock(&client->mu);
}

/* From now on nobody finds the client, and its calls end. */
static void withdraw(struct lk__processstate *here, lk_client_t *client)
{
    assert(lk__mu_held(&here->mu));
    lk__list_remove(&client->link);
    if (here->default_client == client)
        here->default_client = NULL;
    atomic_fetch_or(&client->calls, LK__CLOSING);
}

/*
 * One user less. 0: it was the last one, and the client is withdrawn, also if it was before, by a close that was EBUSY;
 * EAGAIN: others have it; EDEADLK.
 */
static int leave_process(lk_client_t *client)
{
    struct lk__processstate *here = lk__process_state();
    int rc = 0;
    lk__mu_lock(&here->mu);
    if (client->users > 1) {
        client->users--;
        rc = EAGAIN;
    } else if (lk__events_ishere(&client->events)) {
        rc = EDEADLK;
    } else {
        withdraw(here, client);
    }
    lk__mu_unlock(&here->mu);
    return rc;
}

/*
 * Until when calls may take to leave, and what was begun may take to be answered. Calls have longer: a machine that is busy
 * is no thread that stands still.
 */
static void set_limits(const lk_client_t *client, int64_t *calls_us, int64_t *answers_us)
{
    int64_t now_us = lk__now_us(), timeout_us = client->options->command_timeout_ms * 1000;
    *answers_us = now_us + 2 * timeout_us;
    *calls_us = now_us + (2 * timeout_us > LEAVE_WITHIN_MS * 1000 ? 2 * timeout_us : LEAVE_WITHIN_MS * 1000);
}

/*
 * A thread stands still in a call, so nothing may be freed. What the client holds need not wait for it; the watchdog goes on
 * with what is not confirmed in time.
 */
static int leave_open(lk_client_t *client)
{
    (void)lk__client_giveback(client, lk__now_us() + client->options->command_timeout_ms * 1000);
    return lk__fail(EBUSY, "a thread stands still in a call with this client; close it again when that has returned");
}

static int close_client(lk_client_t *client)
{
    int64_t calls_us, answers_us;
    if (client->process != lk__process())
        return 0; /* a fork's child has none of its descriptors; the memory may be in any state and is left */
    int rc = leave_process(client);
    if (rc != 0)
        return rc == EAGAIN ? 0 : lk__fail(rc, "a listener cannot close the client that calls it");

    set_limits(client, &calls_us, &answers_us);
    if (!wait_for_calls(client, calls_us))
        return leave_open(client);
    bool clean = lk__client_giveback(client, answers_us);
    forget_all_holds(client);
    lk__hub_stop(&client->hub);
    clean &= lk__watchdog_stop(&client->dog);
    lk__events_stop(&client->events);
    shut(client);
    return clean ? 0 : lk__fail(EIO, "a release could not be confirmed: what it held ends with its lease");
}

int lk_client_close(lk_client_t *client)
{
    struct lk__apistate api = lk__api_enter();
    int rc = client != NULL ? close_client(client) : 0;
    if (rc != 0 && api.thread != NULL)
        lk__log_failure(api.thread); /* from within the call, so that this thread waits for no sink */
    return lk__api_leave(&api, rc);
}
