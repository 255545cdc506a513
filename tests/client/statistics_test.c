/* SPDX-License-Identifier: MIT */
/*
 * statistics_test.c - the statistics count what happened, and docs/statistics.md describes each of them
 *
 * labels: threads memory
 */
#include "client/client.h"
#include "world.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef LK_SOURCE_DIR
#define LK_SOURCE_DIR "."
#endif
#define DOCS LK_SOURCE_DIR "/docs/statistics.md"

static json_t *parsed(const char *text)
{
    json_error_t error;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (json == NULL)
        assert_failed(__FILE__, __LINE__, "line %d: %s", error.line, error.text);
    return json;
}

static json_t *stats_of(lk_client_t *client)
{
    char *text = NULL;
    assert_lk(0, lk_client_stats(client, &text));
    json_t *json = parsed(text);
    lk_free(text);
    return json;
}

/* A number of the client. */
static int64_t total(lk_client_t *client, const char *field)
{
    json_t *stats = stats_of(client);
    json_int_t number = -1;
    json_unpack(stats, "{s:{s:I}}", "client", field, &number);
    json_decref(stats);
    assert_true(number >= 0);
    return number;
}

/* A number of the object of that name; -1: no such object. */
static int64_t number_of(lk_client_t *client, const char *name, const char *field)
{
    json_t *stats = stats_of(client), *object;
    json_int_t number = -1;
    size_t i;
    json_array_foreach(json_object_get(stats, "objects"), i, object)
    {
        if (strcmp(json_string_value(json_object_get(object, "name")), name) == 0)
            assert_int_equal(json_unpack(object, "{s:I}", field, &number), 0);
    }
    json_decref(stats);
    return number;
}

struct histogram {
    int64_t count;
    double sum;
    int64_t buckets[LK__BUCKETS];
};

/* Reads "wait_seconds" or "hold_seconds"; its bounds go up and its buckets add up. */
static struct histogram histogram_of(lk_client_t *client, const char *name)
{
    json_t *stats = stats_of(client), *buckets, *bucket;
    struct histogram h = { 0 };
    json_int_t count, added = 0;
    double last = 0;
    size_t i;
    assert_int_equal(json_unpack(stats, "{s:{s:{s:{s:I, s:F, s:o}}}}", "kinds", "mutex", name, "count", &count, "sum",
                                 &h.sum, "buckets", &buckets),
                     0);
    h.count = count;
    assert_int_equal(json_array_size(buckets), LK__BUCKETS);
    json_array_foreach(buckets, i, bucket)
    {
        json_t *le;
        assert_int_equal(json_unpack(bucket, "{s:o, s:I}", "le", &le, "count", &count), 0);
        h.buckets[i] = count;
        added += count;
        if (i == LK__BUCKETS - 1) {
            assert_string_equal(json_string_value(le), "inf");
        } else {
            assert_true(json_number_value(le) > last);
            last = json_number_value(le);
        }
    }
    assert_int_equal(added, h.count);
    json_decref(stats);
    return h;
}

static lk_client_t *client;
static lk_mutex_t *orders;

static void open_orders(struct world *w, const char *options)
{
    client = world_client(w, options);
    orders = world_mutex(w, client, "orders", NULL);
}

static void lock_once(void)
{
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
}

/* --- counts --------------------------------------------------------------------------------------------- */

static void a_new_client_did_nothing_yet(struct world *w)
{
    static const char *const totals[] = { "reconnects", "round_trips", "script_reloads", "messages" };
    client = world_client(w, "");
    json_t *stats = stats_of(client);
    const char *id = json_string_value(json_object_get(json_object_get(stats, "client"), "id"));
    assert_string_equal(json_string_value(json_object_get(stats, "version")), lk_version());
    assert_int_equal(strlen(id), LK__ID_LENGTH);
    assert_int_equal(strspn(id, "0123456789abcdef"), LK__ID_LENGTH);
    assert_int_equal(json_array_size(json_object_get(stats, "objects")), 0);
    assert_int_equal(json_integer_value(json_object_get(stats, "objects_left_out")), 0);
    json_decref(stats);
    for (size_t i = 0; i < sizeof totals / sizeof *totals; i++)
        assert_int_equal(total(client, totals[i]), 0);
    assert_int_equal(histogram_of(client, "wait_seconds").count, 0);
    assert_int_equal(histogram_of(client, "hold_seconds").count, 0);
}

static void the_id_is_that_of_the_owner_in_redis(struct world *w)
{
    open_orders(w, "");
    assert_lk(0, lk_mutex_lock(orders));
    json_t *stats = stats_of(client);
    const char *id = json_string_value(json_object_get(json_object_get(stats, "client"), "id"));
    assert_memory_equal(id, world_owner(w, "orders"), LK__ID_LENGTH);
    json_decref(stats);
    assert_lk(0, lk_mutex_unlock(orders));
}

static void the_server_is_named_without_the_password(struct world *w)
{
    char url[256], expected[256];
    world_redis(w, "ACL SETUSER app on >opensesame ~* &* +@all");
    snprintf(url, sizeof url, "unix://app:opensesame@%s?lease=20s&connect_timeout=10s", w->socket);
    snprintf(expected, sizeof expected, "unix://app:***@%s?db=0", w->socket);
    assert_lk(0, lk_client_open(&client, url));
    json_t *stats = stats_of(client);
    assert_string_equal(expected, json_string_value(json_object_get(json_object_get(stats, "client"), "server")));
    json_decref(stats);
    assert_lk(0, lk_client_close(client));
}

static void nowhere_to_put_it_is_a_mistake(struct world *w)
{
    client = world_client(w, "");
    assert_lk(EINVAL, lk_client_stats(client, NULL));
}

/* Once for each grant, however deep it is held. */
static void each_grant_is_an_acquisition(struct world *w)
{
    open_orders(w, "");
    assert_int_equal(number_of(client, "orders", "acquisitions"), 0);
    for (int i = 0; i < 3; i++)
        lock_once();
    assert_lk(0, lk_mutex_lockfor(orders, 1000));
    assert_lk(0, lk_mutex_lock(orders));
    assert_int_equal(number_of(client, "orders", "acquisitions"), 4);
    assert_int_equal(histogram_of(client, "wait_seconds").count, 4);
    assert_int_equal(histogram_of(client, "hold_seconds").count, 3); /* the fourth is held still */
    assert_lk(0, lk_mutex_unlock(orders));
    assert_int_equal(histogram_of(client, "hold_seconds").count, 3);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_int_equal(histogram_of(client, "hold_seconds").count, 4);
    assert_int_equal(number_of(client, "orders", "acquisitions"), 4);
    assert_int_equal(number_of(client, "orders", "contended"), 0);
    assert_int_equal(number_of(client, "orders", "lost"), 0);
    assert_int_equal(number_of(client, "orders", "waiting"), 0);
}

static void who_fails_acquires_nothing(struct world *w)
{
    lk_client_t *others = world_client(w, "");
    open_orders(w, "");
    lk_mutex_t *held = world_mutex(w, others, "orders", NULL);
    assert_lk(0, lk_mutex_lock(held));
    assert_lk(EBUSY, lk_mutex_trylock(orders));
    assert_lk(ETIMEDOUT, lk_mutex_lockfor(orders, 10));
    assert_int_equal(number_of(client, "orders", "acquisitions"), 0);
    assert_int_equal(number_of(client, "orders", "contended"), 0);
    assert_int_equal(number_of(client, "orders", "waiting"), 0);
    assert_int_equal(histogram_of(client, "wait_seconds").count, 0);
    assert_lk(0, lk_mutex_unlock(held));
}

static int wait_for_orders(int index, void *arg)
{
    (void)index;
    (void)arg;
    int rc = lk_mutex_lock(orders);
    return rc != 0 ? rc : lk_mutex_unlock(orders);
}

static int three_wait(void *arg)
{
    return run_threads(3, wait_for_orders, arg);
}

/* Whoever had to wait counts: the one in the queue of Redis, and those behind it in this process. */
static void those_who_wait_are_counted_while_and_after(struct world *w)
{
    lk_client_t *others = world_client(w, "");
    struct worker waiters;
    open_orders(w, "lease=20s&poll=5s");
    lk_mutex_t *held = world_mutex(w, others, "orders", NULL);
    assert_lk(0, lk_mutex_lock(held));
    worker_start(&waiters, three_wait, NULL);
    eventually(number_of(client, "orders", "waiting") == 3, 5000);
    eventually(world_queued(w, "orders") == 1 && world_listening(w, "mutex:{orders}"), 5000);
    assert_int_equal(number_of(client, "orders", "acquisitions"), 0);
    sleep_ms(20);
    assert_lk(0, lk_mutex_unlock(held));
    assert_int_equal(worker_join(&waiters), 0);
    assert_int_equal(number_of(client, "orders", "waiting"), 0);
    assert_int_equal(number_of(client, "orders", "acquisitions"), 3);
    assert_int_equal(number_of(client, "orders", "contended"), 3);
    assert_true(total(client, "messages") >= 1); /* the grant */
    struct histogram waits = histogram_of(client, "wait_seconds");
    assert_int_equal(waits.count, 3);
    assert_true(waits.sum >= 0.060);
    assert_int_equal(waits.buckets[0] + waits.buckets[1] + waits.buckets[2], 0); /* none within 10 ms */
}

static void renewals_and_losses_outlive_their_holds(struct world *w)
{
    open_orders(w, "lease=2400ms&command_timeout=750ms");
    assert_lk(0, lk_mutex_lock(orders));
    assert_int_equal(number_of(client, "orders", "renewals"), 0);
    eventually(number_of(client, "orders", "renewals") >= 2, 5000);
    assert_int_equal(number_of(client, "orders", "lost"), 0);
    world_redis(w, "DEL orders");
    eventually(number_of(client, "orders", "lost") == 1, 5000);
    assert_lk(ESTALE, lk_mutex_unlock(orders));
    assert_int_equal(number_of(client, "orders", "lost"), 1);
    assert_true(number_of(client, "orders", "renewals") >= 2);
    assert_int_equal(number_of(client, "orders", "acquisitions"), 1);
    assert_int_equal(histogram_of(client, "hold_seconds").count, 0); /* how long it was good is not known exactly */

    int64_t renewals = number_of(client, "orders", "renewals");
    assert_lk(0, lk_mutex_lock(orders));
    eventually(number_of(client, "orders", "renewals") > renewals, 5000);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_int_equal(number_of(client, "orders", "lost"), 1);
}

static void a_free_lock_and_its_unlock_are_two_round_trips(struct world *w)
{
    open_orders(w, "");
    lock_once();
    int64_t before = total(client, "round_trips");
    for (int i = 0; i < 5; i++)
        lock_once();
    assert_int_equal(total(client, "round_trips"), before + 10);
}

static void each_lost_connection_is_a_reconnect(struct world *w)
{
    open_orders(w, "");
    for (int i = 1; i <= 3; i++) {
        lock_once();
        world_killcommands(w);
        lock_once();
        assert_int_equal(total(client, "reconnects"), i);
    }
}

static void scripts_the_server_forgot_are_reloads(struct world *w)
{
    open_orders(w, "");
    lock_once();
    int64_t first = total(client, "script_reloads");
    assert_int_equal(first, 2); /* one to lock, one to unlock: this server never saw them */
    lock_once();
    assert_int_equal(total(client, "script_reloads"), first);
    for (int i = 1; i <= 2; i++) {
        world_redis(w, "SCRIPT FLUSH");
        lock_once();
        lock_once();
        assert_int_equal(total(client, "script_reloads"), first + 2 * i);
    }
}

/* --- objects -------------------------------------------------------------------------------------------- */

static void objects_are_those_that_exist_by_their_own_names(struct world *w)
{
    lk_mutex_t again, bills;
    open_orders(w, "prefix=billing:");
    assert_lk(0, lk_mutex_init(&again, client, "orders", NULL));
    assert_lk(0, lk_mutex_init(&bills, client, "bills", NULL));
    lock_once();
    assert_lk(0, lk_mutex_lock(&again));
    assert_lk(0, lk_mutex_unlock(&again));
    assert_int_equal(number_of(client, "orders", "acquisitions"), 2); /* one object with two handles */
    assert_int_equal(number_of(client, "bills", "acquisitions"), 0);
    json_t *stats = stats_of(client), *objects = json_object_get(stats, "objects");
    assert_int_equal(json_array_size(objects), 2);
    for (size_t i = 0; i < 2; i++)
        assert_string_equal(json_string_value(json_object_get(json_array_get(objects, i), "kind")), "mutex");
    json_decref(stats);
    assert_lk(0, lk_mutex_destroy(&bills));
    assert_int_equal(number_of(client, "bills", "acquisitions"), -1);
    assert_lk(0, lk_mutex_destroy(&again));
    assert_int_equal(number_of(client, "orders", "acquisitions"), 2);
}

/* A text of bounded length and valid JSON, whatever a program names its objects. */
static void objects_too_many_or_unreadable_are_counted_only(struct world *w)
{
    enum { MANY = 1005 };
    static lk_mutex_t many[MANY];
    lk_mutex_t unreadable;
    char name[32];
    open_orders(w, "");
    assert_lk(0, lk_mutex_init(&unreadable, client, "\xff\xfe", NULL));
    json_t *stats = stats_of(client);
    assert_int_equal(json_array_size(json_object_get(stats, "objects")), 1);
    assert_int_equal(json_integer_value(json_object_get(stats, "objects_left_out")), 1);
    json_decref(stats);
    assert_lk(0, lk_mutex_destroy(&unreadable));

    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "\"quoted\\%d\"\n", i);
        assert_lk(0, lk_mutex_init(&many[i], client, name, NULL));
    }
    stats = stats_of(client);
    assert_int_equal(json_array_size(json_object_get(stats, "objects")), 1000);
    assert_int_equal(json_integer_value(json_object_get(stats, "objects_left_out")), MANY + 1 - 1000);
    json_decref(stats);
    for (int i = 0; i < MANY; i++)
        assert_lk(0, lk_mutex_destroy(&many[i]));
}

/* --- histograms ----------------------------------------------------------------------------------------- */

static void a_time_goes_into_the_first_bucket_that_is_not_below_it(void)
{
    static const struct {
        int64_t us;
        int bucket;
    } table[] = {
        { 0, 0 },         { -5, 0 },         { 1, 0 },          { 1000, 0 },
        { 1001, 1 },      { 5000, 1 },       { 5001, 2 },       { 10000, 2 },
        { 10001, 3 },     { 50000, 3 },      { 50001, 4 },      { 100000, 4 },
        { 100001, 5 },    { 500000, 5 },     { 500001, 6 },     { 1000000, 6 },
        { 1000001, 7 },   { 5000000, 7 },    { 5000001, 8 },    { 10000000, 8 },
        { 10000001, 9 },  { 30000000, 9 },   { 30000001, 10 },  { 60000000, 10 },
        { 60000001, 11 }, { 300000000, 11 }, { 300000001, 12 }, { INT64_MAX / 1024, 12 },
    };
    struct lk__histogram histogram = { 0 };
    unsigned long long sum = 0;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        unsigned long long before = atomic_load(&histogram.buckets[table[i].bucket]);
        lk__histogram_add(&histogram, lk__histogram_times, table[i].us);
        sum += table[i].us > 0 ? (unsigned long long)table[i].us : 0;
        assert_int_equal(atomic_load(&histogram.buckets[table[i].bucket]), before + 1);
        assert_int_equal(atomic_load(&histogram.count), i + 1);
        assert_int_equal(atomic_load(&histogram.sum), sum);
    }
}

static void holds_are_as_long_as_they_were_held(struct world *w)
{
    open_orders(w, "");
    lock_once();
    double sum = histogram_of(client, "hold_seconds").sum;
    int64_t began_ms = now_ms();
    assert_lk(0, lk_mutex_lock(orders));
    sleep_ms(120);
    assert_lk(0, lk_mutex_unlock(orders));
    double held = (double)(now_ms() - began_ms) / 1000;
    struct histogram holds = histogram_of(client, "hold_seconds");
    assert_int_equal(holds.count, 2);
    assert_true(holds.sum - sum >= 0.119 && holds.sum - sum <= held + 0.010);
    int64_t longer = 0;
    for (int i = 5; i < LK__BUCKETS; i++)
        longer += holds.buckets[i];
    assert_true(longer >= 1); /* behind 100 ms */
}

enum { BUSY_THREADS = 4, BUSY_LOCKS = SANITIZED ? 25 : 100 };

static int lock_often(int index, void *arg)
{
    lk_mutex_t own;
    char name[16];
    (void)arg;
    snprintf(name, sizeof name, "own-%d", index);
    int rc = lk_mutex_init(&own, client, name, NULL);
    for (int i = 0; i < BUSY_LOCKS && rc == 0; i++) {
        rc = lk_mutex_lock(&own);
        if (rc == 0)
            rc = lk_mutex_unlock(&own);
        if (rc == 0)
            rc = wait_for_orders(index, NULL);
    }
    return rc != 0 ? rc : lk_mutex_destroy(&own);
}

static int all_lock_often(void *arg)
{
    int rc = run_threads(BUSY_THREADS, lock_often, NULL);
    gate_open(arg);
    return rc;
}

/* Objects come and go while they are counted, and nothing is counted twice or forgotten. */
static void statistics_may_be_taken_while_threads_work(struct world *w)
{
    struct gate done = { 0 };
    struct worker workers;
    int64_t last = 0;
    open_orders(w, "command_timeout=5s");
    worker_start(&workers, all_lock_often, &done);
    while (!gate_is_open(&done)) {
        char *text = NULL;
        int rc = lk_client_stats(client, &text);
        json_t *stats = rc == 0 ? json_loads(text, 0, NULL) : NULL;
        json_int_t trips = -1;
        lk_free(text);
        json_unpack(stats, "{s:{s:I}}", "client", "round_trips", &trips);
        json_decref(stats);
        if (trips < last)
            break;
        last = trips;
        sleep_ms(1);
    }
    bool complete = gate_is_open(&done);
    assert_int_equal(worker_join(&workers), 0);
    assert_true(complete);
    assert_int_equal(number_of(client, "orders", "acquisitions"), BUSY_THREADS * BUSY_LOCKS);
    assert_int_equal(histogram_of(client, "wait_seconds").count, 2 * BUSY_THREADS * BUSY_LOCKS);
    assert_int_equal(histogram_of(client, "hold_seconds").count, 2 * BUSY_THREADS * BUSY_LOCKS);
}

/* --- the documentation ---------------------------------------------------------------------------------- */

/* Paths of all fields, each between line ends: "client.id", "objects[].name". */
struct paths {
    char text[8192];
};

/* All kinds have the same fields, which are described and shown for the mutex. */
static bool is_of_another_kind(const char *path)
{
    return strncmp(path, "kinds.", 6) == 0 && strncmp(path, "kinds.mutex.", 12) != 0;
}

static void add_path(struct paths *paths, const char *path)
{
    char line[256];
    if (is_of_another_kind(path))
        return;
    snprintf(line, sizeof line, "\n%s\n", path);
    if (strstr(paths->text, line) == NULL) {
        assert_true(strlen(paths->text) + strlen(line) < sizeof paths->text);
        strcat(paths->text, paths->text[0] == '\0' ? line : line + 1);
    }
}

static void add_paths(struct paths *paths, const char *path, const json_t *json)
{
    char longer[200];
    const char *key;
    json_t *value;
    size_t i;
    if (json_is_object(json)) {
        json_object_foreach((json_t *)(uintptr_t)json, key, value)
        {
            snprintf(longer, sizeof longer, "%s%s%s", path, path[0] == '\0' ? "" : ".", key);
            add_paths(paths, longer, value);
        }
    } else if (json_is_array(json)) {
        json_array_foreach(json, i, value)
        {
            snprintf(longer, sizeof longer, "%s[]", path);
            add_paths(paths, longer, value);
        }
    } else {
        add_path(paths, path);
    }
}

/* A field of a histogram is described once for all: "kinds.mutex.wait_seconds", and "buckets[].le". */
static bool is_described(const char *docs, const char *path)
{
    char row[256];
    const char *ending = strstr(path, "_margin.") != NULL ? "_margin." : "_seconds.", *end = strstr(path, ending);
    int length = end != NULL ? (int)(end - path) + (int)strlen(ending) - 1 : (int)strlen(path);
    snprintf(row, sizeof row, "\n| `%.*s` | ", length, path);
    if (strstr(docs, row) == NULL)
        return false;
    return end == NULL || is_described(docs, end + strlen(ending));
}

static char *read_docs(void)
{
    char *text = calloc(1, 65536);
    FILE *file = fopen(DOCS, "r");
    assert_non_null(text);
    assert_non_null(file);
    assert_true(fread(text, 1, 65535, file) > 0);
    fclose(file);
    return text;
}

static struct paths real_paths(struct world *w)
{
    struct paths paths = { "" };
    open_orders(w, "");
    json_t *stats = stats_of(client);
    add_paths(&paths, "", stats);
    json_decref(stats);
    return paths;
}

static void each_field_is_described(struct world *w)
{
    if (access(DOCS, R_OK) != 0)
        skip(); /* built without its sources at hand */
    struct paths paths = real_paths(w);
    char *docs = read_docs(), *path = strtok(paths.text, "\n");
    int count = 0;
    for (; path != NULL; path = strtok(NULL, "\n"), count++)
        if (!is_described(docs, path))
            fail_msg("docs/statistics.md does not describe %s", path);
    assert_true(count > 15);
    for (int kind = 1; kind < LK__KINDS; kind++) {
        char quoted[32];
        snprintf(quoted, sizeof quoted, "`%s`", lk__kind_names[kind] != NULL ? lk__kind_names[kind] : "mutex");
        assert_non_null(strstr(docs, quoted));
    }
    free(docs);
}

/* The example shows all there is, and nothing that is not. */
static void the_example_is_like_a_real_one(struct world *w)
{
    static const char opening[] = "\n```json\n";
    if (access(DOCS, R_OK) != 0)
        skip();
    struct paths real = real_paths(w), shown = { "" };
    char *docs = read_docs(), *begin = strstr(docs, opening);
    assert_non_null(begin);
    begin += strlen(opening);
    *strstr(begin, "\n```") = '\0';
    json_t *example = parsed(begin);
    add_paths(&shown, "", example);
    assert_string_equal(shown.text, real.text);

    json_t *kind = json_object_get(json_object_get(example, "kinds"), "mutex"), *histogram;
    const char *name;
    json_object_foreach(kind, name, histogram)
    {
        json_t *bucket;
        json_int_t added = 0;
        size_t i;
        json_array_foreach(json_object_get(histogram, "buckets"), i, bucket) added +=
            json_integer_value(json_object_get(bucket, "count"));
        assert_int_equal(added, json_integer_value(json_object_get(histogram, "count")));
    }
    json_decref(example);
    free(docs);
}

int main(void)
{
    int failed =
        world_run(a_new_client_did_nothing_yet, the_id_is_that_of_the_owner_in_redis,
                  the_server_is_named_without_the_password, nowhere_to_put_it_is_a_mistake,
                  each_grant_is_an_acquisition, who_fails_acquires_nothing, those_who_wait_are_counted_while_and_after,
                  renewals_and_losses_outlive_their_holds, a_free_lock_and_its_unlock_are_two_round_trips,
                  each_lost_connection_is_a_reconnect, scripts_the_server_forgot_are_reloads,
                  objects_are_those_that_exist_by_their_own_names, objects_too_many_or_unreadable_are_counted_only,
                  holds_are_as_long_as_they_were_held, statistics_may_be_taken_while_threads_work,
                  each_field_is_described, the_example_is_like_a_real_one);
    return failed + plain_run(a_time_goes_into_the_first_bucket_that_is_not_below_it);
}
