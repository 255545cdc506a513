/* SPDX-License-Identifier: MIT */
/*
 * survey_test.c - lk_survey() hands on what each server says of itself, and docs/command.md describes each field
 *
 * labels: threads memory
 */
#include "rights.h"
#include "world.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *survey(const char *url)
{
    lk_clientattr_t attr = LK_CLIENTATTR_INIT;
    json_error_t error;
    char *text = NULL;
    attr.url = url;
    assert_lk(0, lk_survey(&attr, &text));
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (json == NULL)
        assert_failed(__FILE__, __LINE__, "line %d: %s", error.line, error.text);
    lk_free(text);
    return json;
}

static const json_t *only_server(const json_t *json)
{
    const json_t *servers = json_object_get(json, "servers");
    assert_int_equal(1, json_array_size(servers));
    return json_array_get(servers, 0);
}

static const char *text_at(const json_t *object, const char *group, const char *field)
{
    const char *text = json_string_value(json_object_get(json_object_get(object, group), field));
    return text != NULL ? text : "";
}

static void a_server_says_what_it_is(struct world *w)
{
    world_redis(w, "CONFIG SET timeout 77");
    json_t *json = survey(world_url(w, "lease=7s&wait_replicas=0"));
    const json_t *server = only_server(json);
    assert_true(atoi(text_at(server, "info", "redis_version")) >= 7);
    assert_true(strlen(text_at(server, "info", "run_id")) == 40);
    assert_string_equal("77", text_at(server, "config", "timeout"));
    assert_true(strstr(text_at(server, "config", "client-output-buffer-limit"), "pubsub ") != NULL);
    assert_true(llabs(json_integer_value(json_object_get(server, "ahead_us"))) < 60 * 1000000);
    assert_string_equal("", json_string_value(json_object_get(server, "missing")));
    assert_int_equal(7000, json_integer_value(json_object_get(json_object_get(json, "options"), "lease_ms")));
    assert_string_equal("server", text_at(json, "options", "kind"));
    json_decref(json);
    assert_string_equal("", world_keys(w));
}

/* A secret among the settings is not asked for. */
static void no_password_is_told(struct world *w)
{
    char *text = NULL;
    char url[256];
    world_redis(w, "CONFIG SET requirepass SECRET");
    snprintf(url, sizeof url, "unix://:SECRET@%s", w->socket);
    lk_clientattr_t attr = { .size = sizeof attr, .url = url };
    assert_lk(0, lk_survey(&attr, &text));
    assert_true(strstr(text, "SECRET") == NULL);
    assert_true(strstr(text, "\"password\": true") != NULL);
    lk_free(text);
    attr.url = world_url(w, "");
    text = NULL;
    assert_lk(EACCES, lk_survey(&attr, &text));
    assert_null(text);
    world_redis(w, "CONFIG SET requirepass \"\"");
}

/* With the rule of docs/security.md there is INFO and no CONFIG; without +info there is neither. */
static void what_rules_keep_back_is_null(struct world *w)
{
    static struct words rights;
    rights_documented(&rights);
    rights_user(w, &rights, "~orders*", NULL);
    json_t *json = survey(rights_url(w, ""));
    assert_true(json_is_object(json_object_get(only_server(json), "info")));
    assert_true(json_is_null(json_object_get(only_server(json), "config")));
    json_decref(json);
    rights_user(w, &rights, "~orders*", "+info");
    json = survey(rights_url(w, ""));
    assert_true(json_is_null(json_object_get(only_server(json), "info")));
    json_decref(json);
    rights_user(w, &rights, "~orders*", "+zremrangebyscore");
    json = survey(rights_url(w, ""));
    assert_string_equal("+zremrangebyscore", json_string_value(json_object_get(only_server(json), "missing")));
    json_decref(json);
}

static void mistakes_are_told(struct world *w)
{
    char *text = NULL;
    lk_clientattr_t attr = { .size = sizeof attr, .url = "redis://127.0.0.1:1" };
    assert_lk(EINVAL, lk_survey(&attr, NULL));
    assert_lk(ENOTCONN, lk_survey(&attr, &text));
    attr.url = "redis://127.0.0.1?survey=yes";
    assert_lk(EINVAL, lk_survey(&attr, &text));
    attr.size = 3;
    assert_lk(EINVAL, lk_survey(&attr, &text));
    assert_null(text);
    (void)w;
}

/* Each field, but for those that the server names itself, stands in the table. */
static void check_described(const json_t *object, const char *before, const char *page)
{
    const char *key;
    json_t *value;
    char field[96];
    json_object_foreach((json_t *)object, key, value) {
        snprintf(field, sizeof field, "| `%s%s` |", before, key);
        if (!json_is_object(value) && !json_is_array(value) && strstr(page, field) == NULL)
            assert_failed(__FILE__, __LINE__, "docs/command.md has no row for %s", field);
    }
}

static void each_field_is_described(struct world *w)
{
    char *page = source_text("docs/command.md");
    json_t *json = survey(world_url(w, ""));
    check_described(json, "", page);
    check_described(json_object_get(json, "options"), "options.", page);
    check_described(only_server(json), "servers[].", page);
    json_decref(json);
    free(page);
}

int main(void)
{
    return world_run(a_server_says_what_it_is, no_password_is_told, what_rules_keep_back_is_null, mistakes_are_told,
                     each_field_is_described);
}
