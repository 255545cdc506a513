/* SPDX-License-Identifier: MIT */
/*
 * cluster_test.c - every allocation and every system call fails while a cluster is found, used, and asked anew
 *
 * labels: memory
 * simulated: yes
 * seconds: 60
 * processors: 2
 * support: failing
 */
#include "cluster.h"
#include "failing/failing.h"

static struct cluster *nodes;
static bool calls; /* fail, and not allocations */
static const char *names[CLUSTER_MASTERS];

/* A client that cannot be opened takes its whole time to say so. */
static const char *options(void)
{
    return failing_lasts() ? "lease=1500ms&clock_skew=100ms&connect_timeout=300ms"
                           : "lease=3s&clock_skew=100ms&connect_timeout=3s&command_timeout=900ms";
}

static const char *patient(void)
{
    return "lease=3s&clock_skew=100ms&connect_timeout=3s&command_timeout=900ms";
}

static void use_one(lk_client_t *client, const char *name)
{
    lk_mutex_t m;
    assert_lk(0, lk_mutex_init(&m, client, name, NULL));
    assert_lk(0, lk_mutex_lockfor(&m, FAILING_LONG_MS));
    assert_lk(0, lk_mutex_unlock(&m));
    assert_lk(0, lk_mutex_destroy(&m));
}

static void use_all(lk_client_t *client)
{
    for (int node = 0; node < CLUSTER_MASTERS; node++)
        use_one(client, names[node]);
}

/* It works on all nodes, and all is given back. */
static void use(lk_client_t *client)
{
    use_all(client);
    assert_lk(0, lk_client_close(client));
}

/* One without memory for a connection says ENOTCONN, as always: they are made before, where allocations fail. */
static lk_client_t *open_well(void)
{
    lk_client_t *client = NULL;
    assert_lk(0, open_patiently(&client, cluster_url(nodes, options())));
    if (!calls)
        use_all(client);
    return client;
}

static void open_url(struct world *w)
{
    (void)w;
    lk_client_t *client = NULL;
    const char *url = cluster_url(nodes, options());
    failing_begin();
    int rc = tried(0, lk_client_open(&client, url), ENOMEM, ENOTCONN);
    failing_end();
    if (rc != 0)
        assert_lk(0, lk_client_open(&client, cluster_url(nodes, patient())));
    use(client);
}

/* The first command to a node makes its connections, or the first one of a thread its memory. */
static void use_a_node(struct world *w)
{
    (void)w;
    lk_client_t *client = open_well();
    lk_mutex_t m;
    failing_begin();
    if (tried(0, lk_mutex_init(&m, client, names[1], NULL), ENOMEM) == 0) {
        if (tried(0, lk_mutex_lockfor(&m, failing_patience_ms()), ENOMEM, UNREACHABLE, ETIMEDOUT) == 0)
            tried(0, lk_mutex_unlock(&m), UNREACHABLE, ESTALE);
        tried(0, lk_mutex_destroy(&m));
    }
    failing_end();
    use(client);
}

enum { ASKED_WITHIN_MS = 20 };

static int cut_all(void)
{
    cluster_order(nodes, "CLIENT KILL TYPE normal");
    return 0;
}

/* Connections end, so the map is asked for once more, and they are made anew. */
static void asked_anew(struct world *w)
{
    (void)w;
    lk_client_t *client = NULL;
    lk_mutex_t m;
    assert_lk(0, lk_client_open(&client, cluster_url(nodes, patient())));
    assert_lk(0, lk_mutex_init(&m, client, names[2], NULL));
    use_all(client);
    failing_begin();
    spared(cut_all());
    sleep_ms(ASKED_WITHIN_MS);
    failing_end();
    assert_lk(0, lk_mutex_lockfor(&m, FAILING_LONG_MS));
    assert_lk(0, lk_mutex_unlock(&m));
    assert_lk(0, lk_mutex_destroy(&m));
    use(client);
}

/* Before it ends a walk asks which slots are where, by a connection of its own. */
static void walk_through(struct world *w)
{
    (void)w;
    lk_client_t *client = open_well();
    lk_inspect_t *walk = NULL;
    lk_inspected_t object = LK_INSPECTED_INIT;
    failing_begin();
    if (tried(0, lk_inspect_open(&walk, client, NULL), ENOMEM) == 0)
        tried(ENOENT, lk_inspect_next(walk, &object), ENOMEM, UNREACHABLE);
    failing_end();
    if (walk != NULL)
        eventually(lk_inspect_next(walk, &object) == ENOENT, FAILING_LONG_MS);
    lk_inspect_close(walk);
    use(client);
}

static void all_of(struct world *w, enum failing kind)
{
    nodes = cluster_begin(w, false);
    calls = kind == FAIL_CALL;
    for (int node = 0; node < CLUSTER_MASTERS; node++)
        names[node] = cluster_name(nodes, node, "m");
    each_failure(w, "open", kind, open_url);
    each_failure(w, "use", kind, use_a_node);
    each_failure(w, "asked anew", kind, asked_anew);
    if (calls)
        each_failure(w, "walk", kind, walk_through);
    world_close(w, nodes);
}

int main(void)
{
    return all_failures(all_of);
}
