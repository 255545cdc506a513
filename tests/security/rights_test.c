/* SPDX-License-Identifier: MIT */
/*
 * rights_test.c - the access rule of docs/security.md is what the sources need, and the probe looks for it
 *
 * Commands and patterns are read from the scripts and the C files themselves, so that neither the page nor
 * the probe can fall behind.
 */
#include "rights.h"

#include "barrier/scripts.h"
#include "client/scripts.h"
#include "cond/scripts.h"
#include "inspect/scripts.h"
#include "latch/scripts.h"
#include "once/scripts.h"
#include "redlock/scripts.h"
#include "lock/scripts.h"
#include "redis/redis.h"
#include "redis/scripts.h"
#include "rwlock/scripts.h"
#include "semaphore/scripts.h"

#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* --- what the sources say ---------------------------------------------------------------------------------- */

static void add_right(struct words *rights, const char *sign, const char *word, size_t length)
{
    char right[48];
    int written = snprintf(right, sizeof right, "%s%.*s", sign, (int)length, word);
    for (char *c = right; *c != '\0' && sign[0] == '+'; c++)
        *c = (char)tolower((unsigned char)*c);
    words_add(rights, right, (size_t)written);
}

static void add_commands(struct words *rights, const char *commands)
{
    for (const char *at = commands; *at != '\0'; at += strspn(at, " ")) {
        add_right(rights, "+", at, strcspn(at, " "));
        at += strcspn(at, " ");
    }
}

/* What the node of a single server has in its messages' commands. */
static void add_messages(struct words *rights)
{
    const struct lk__node node = { .server = { .pubsub = LK__PUBSUB_PLAIN } };
    const struct lk__pubsub *words = lk__node_pubsub(&node);
    add_right(rights, "+", words->publish, strlen(words->publish));
    add_right(rights, "+", words->subscribe, strlen(words->subscribe));
    add_right(rights, "+", words->unsubscribe, strlen(words->unsubscribe));
}

/* The length of a string literal of capitals only whose quote is at `quote`, or 0; codes of replies are none. */
static size_t capitals(const char *quote)
{
    size_t length = strspn(quote + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    bool is_code = strncmp(quote - 7, "reply, ", 7) == 0 || strncmp(quote - 7, "error, ", 7) == 0;
    return quote[length + 1] == '"' && !is_code ? length : 0;
}

/* Beside the rule, the page says who needs these: AUTH nobody. What Sentinels are asked it has there as well. */
static bool is_beside_the_rule(const char *command)
{
    static const char *const beside[] = { "AUTH\"", "SELECT\"", "WAIT\"", "CLUSTER\"", "NODES\"", "CONFIG\"" };
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
        if (strncmp(command, beside[i], strlen(beside[i])) == 0)
            return true;
    return false;
}

/* Commands that C sends itself: those files format or write them. */
static void add_plain_commands(struct words *rights, const char *path)
{
    char *text = source_text(path);
    bool sends = strstr(text, "redisFormatCommand") != NULL || strstr(text, "lk__wire_make(") != NULL ||
                 strstr(text, "lk__talk_say(") != NULL;
    if (!sends || strstr(path, "/sentinels.c") != NULL) {
        free(text);
        return;
    }
    for (const char *at = text; (at = strchr(at, '"')) != NULL; at++) {
        size_t length = capitals(at);
        if (length == 6 && strncmp(at + 1, "CLIENT", 6) == 0 && strstr(at, "\"SETNAME\"") != NULL)
            words_add(rights, "+client|setname", 15);
        else if (length > 0 && strncmp(at + 1, "SETNAME", 7) != 0 && !is_beside_the_rule(at + 1))
            add_right(rights, "+", at + 1, length);
    }
    free(text);
}

/* Is this a name of a key or a channel, and not of a file or an option? */
static bool is_family(const char *text, size_t length)
{
    static const char *const starts[] = { "latchkey:", "redisson_" };
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (length > strlen(starts[i]) && strncmp(text, starts[i], strlen(starts[i])) == 0 &&
            strspn(text, "abcdefghijklmnopqrstuvwxyz_:") >= length)
            return true;
    return false;
}

/* Literals such as "latchkey:queue:sem" or 'redisson_sc', up to a '%' or '{'. */
static void add_families(struct words *families, const char *path)
{
    char *text = source_text(path);
    for (const char *at = text; (at = strpbrk(at, "\"'")) != NULL; at++) {
        size_t length = strcspn(at + 1, "\"'%{\n");
        if (is_family(at + 1, length))
            words_add(families, at + 1, length);
    }
    free(text);
}

static void each_source(const char *pattern, struct words *into, void (*add)(struct words *, const char *))
{
    glob_t found;
    char full[512];
    snprintf(full, sizeof full, "%s/src/%s", LK_SOURCE_DIR, pattern);
    assert_int_equal(0, glob(full, 0, NULL, &found));
    for (size_t i = 0; i < found.gl_pathc; i++)
        add(into, found.gl_pathv[i]);
    globfree(&found);
}

static bool is_channel(const char *family)
{
    return strncmp(family, "latchkey:client", 15) == 0 || strstr(family, "channel") != NULL ||
           strcmp(family, "redisson_sc") == 0 || strcmp(family, "latchkey:ran") == 0 ||
           strcmp(family, "latchkey:met") == 0;
}

/* What may be a name's own key is up to the user: PREFIX*. Ours begin with latchkey:. */
static void patterns_of(const struct words *families, struct words *rights)
{
    words_add(rights, "~PREFIX*", 8);
    for (int i = 0; i < families->count; i++) {
        char pattern[64];
        const char *family = families->at[i];
        size_t length = strcspn(family, "%");
        const char *end = family[length - 1] == '_' || family[length - 1] == ':' ? "" : ":";
        if (is_channel(family))
            snprintf(pattern, sizeof pattern, "&%s%s*", family, end);
        else if (strncmp(family, "latchkey:", 9) == 0)
            strcpy(pattern, "~latchkey:*");
        else
            snprintf(pattern, sizeof pattern, "~%s%s*", family, end);
        words_add(rights, pattern, strlen(pattern));
    }
}

static void families_of(struct words *families)
{
    families->count = 0;
    each_source("*/*.c", families, add_families);
    assert_true(families->count >= 15);
}

/* Of all scripts but a mutex's own. */
static void other_commands(struct words *rights)
{
    add_commands(rights, lk__lua_rwlock_commands);
    add_commands(rights, lk__lua_semaphore_commands);
    add_commands(rights, lk__lua_latch_commands);
    add_commands(rights, lk__lua_once_commands);
    add_commands(rights, lk__lua_barrier_commands);
    add_commands(rights, lk__lua_cond_commands);
    add_commands(rights, lk__lua_redlock_commands);
    add_commands(rights, lk__lua_client_commands);
}

static void rights_used(struct words *rights)
{
    struct words families;
    rights->count = 0;
    add_commands(rights, lk__lua_lock_commands);
    other_commands(rights);
    add_messages(rights);
    words_add(rights, "+pubsub|numsub", 14); /* of redisson.lua, which can do without */
    words_add(rights, "+pubsub|shardnumsub", 19);
    each_source("*/*.c", rights, add_plain_commands);
    families_of(&families);
    patterns_of(&families, rights);
}

/* --- tests --------------------------------------------------------------------------------------------------- */

/* Each module with scripts is among those that rights_used() knows. */
static void no_module_is_forgotten(void)
{
    glob_t found;
    assert_int_equal(0, glob(LK_SOURCE_DIR "/src/*/CMakeLists.txt", 0, NULL, &found));
    int with_scripts = 0;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char *text = source_text(found.gl_pathv[i]);
        with_scripts += strstr(text, " SCRIPTS ") != NULL;
        free(text);
    }
    globfree(&found);
    assert_int_equal(11, with_scripts); /* the primitives', the redlock's, the probe, a client's words, and what tools look with */
}

static void the_page_has_the_rule_that_the_sources_need(void)
{
    struct words documented, used;
    rights_documented(&documented);
    rights_used(&used);
    assert_int_equal(0, words_compare(&documented, &used, "docs/security.md", "what the sources use"));
}

static void the_page_has_what_mutexes_do_without(void)
{
    struct words others = { 0 }, mutex = { 0 }, beyond = { 0 }, told = { 0 };
    other_commands(&others);
    add_commands(&mutex, lk__lua_lock_commands);
    for (int i = 0; i < others.count; i++)
        if (!words_have(&mutex, others.at[i]))
            words_add(&beyond, others.at[i], strlen(others.at[i]));
    char *docs = source_text("docs/security.md"), *end = strstr(docs, "` | not for mutexes:"), *save;
    assert_non_null(end);
    *end = '\0';
    for (char *word = strtok_r(strrchr(docs, '`') + 1, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save))
        words_add(&told, word, strlen(word));
    assert_int_equal(0, words_compare(&told, &beyond, "docs/security.md", "what other scripts use"));
    free(docs);
}

/* What tools need beyond it is a row of its own, and the probe asks nobody for it. */
static void the_page_has_what_tools_need_beyond_the_rule(void)
{
    struct words documented, tools = { 0 }, beyond = { 0 };
    char *docs = source_text("docs/security.md"), *row = strstr(docs, "| beyond the rule:"), *probe;
    assert_non_null(row);
    rights_documented(&documented);
    add_commands(&tools, lk__lua_inspect_commands);
    for (int i = 0; i < tools.count; i++)
        if (!words_have(&documented, tools.at[i]))
            words_add(&beyond, tools.at[i], strlen(tools.at[i]));
    assert_int_equal(1, beyond.count);
    assert_string_equal("+scan", beyond.at[0]);
    assert_memory_equal(row - strlen("| `+scan` "), "| `+scan` ", strlen("| `+scan` "));
    probe = source_text("src/redis/probe.lua");
    assert_null(strstr(probe, "SCAN"));
    free(probe);
    free(docs);
}

/* --- the probe ----------------------------------------------------------------------------------------------- */

/* What the probe says to a user who may only run it, told apart as it does. */
static void probe_says(struct world *w, struct words *needed, struct words *other)
{
    const char *script =
        "local told = assert(loadstring(ARGV[7]))() return told[1] .. ' | ' .. told[2]"; /* as one text */
    world_redis(w, "ACL SETUSER nobody on >secret ~none &none -@all +eval");
    world_redis(w, "AUTH nobody secret");
    const char *told =
        world_str(w, "EVAL %s 0 id PREFIX 1 PUBLISH SUBSCRIBE UNSUBSCRIBE %s", script, lk__lua_redis_probe.pieces[0]);
    char text[2048];
    snprintf(text, sizeof text, "%s", told);
    world_redis(w, "AUTH default any");
    struct words *into = needed;
    needed->count = other->count = 0;
    for (char *save, *word = strtok_r(text, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save))
        if (word[0] == '|')
            into = other;
        else
            words_add(into, word, strlen(word));
}

/* What has no word in an answer of the probe, because it is looked at otherwise or can be done without. */
static bool is_asked_otherwise(const char *right)
{
    static const char *const words[] = { "+eval",           "+role",          "+info",
                                         "+client|setname", "+pubsub|numsub", "+pubsub|shardnumsub" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], right) == 0)
            return true;
    return right[0] != '+'; /* without a command nothing is known of its keys */
}

/* Commands of a mutex are needed by all, the others by some. */
static void the_probe_looks_for_each_command(struct world *w)
{
    struct words needed, other, used, mutex, expected_needed = { 0 }, expected_other = { 0 };
    probe_says(w, &needed, &other);
    rights_used(&used);
    mutex.count = 0;
    add_commands(&mutex, lk__lua_lock_commands);
    static const char *const plain[] = { "+ping", "+evalsha", "+subscribe", "+unsubscribe" };
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        words_add(&mutex, plain[i], strlen(plain[i]));
    for (int i = 0; i < used.count; i++)
        if (!is_asked_otherwise(used.at[i]))
            words_add(words_have(&mutex, used.at[i]) ? &expected_needed : &expected_other, used.at[i],
                      strlen(used.at[i]));
    assert_int_equal(0, words_compare(&needed, &expected_needed, "the probe's first list", "what mutexes use"));
    assert_int_equal(0, words_compare(&other, &expected_other, "the probe's second list", "what others use"));
}

/* Every family of keys and channels that C files make has its place in the probe. */
static void the_probe_looks_at_each_family(void)
{
    struct words families, probed = { 0 };
    families_of(&families);
    char *probe = source_text("src/redis/probe.lua");
    for (int i = 0; i < families.count; i++) {
        char quoted[64];
        const char *family = families.at[i];
        bool ours = strncmp(family, "latchkey:", 9) == 0 && !is_channel(family);
        snprintf(quoted, sizeof quoted, "'%s%s", ours ? family + 9 : family, ours ? "'" : "");
        if (strstr(probe, quoted) == NULL)
            fail_msg("src/redis/probe.lua does not look at %s", family);
        words_add(&probed, family, strlen(family));
    }
    free(probe);
}

int main(void)
{
    if (access(LK_SOURCE_DIR "/docs/security.md", R_OK) != 0)
        return 77; /* built without its sources at hand */
    int failed =
        plain_run(no_module_is_forgotten, the_page_has_the_rule_that_the_sources_need,
                  the_page_has_what_mutexes_do_without, the_page_has_what_tools_need_beyond_the_rule,
                  the_probe_looks_at_each_family);
    return failed + world_run(the_probe_looks_for_each_command);
}
