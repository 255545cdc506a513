/* SPDX-License-Identifier: MIT */
/*
 * world.c - see world.h
 */
#include "certificates.h"
#include "world_parts.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <ftw.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define STARTS_WITHIN_MS 20000
#define LEFT_AFTER_MS 1500 /* for what a closed client leaves to the server or the kernel */
#define ARGV_MAX 48

static void start_server(struct world *w);
static void check_server(struct world *w);
static void check_process(struct world *w);
static void remove_dir(struct world *w);
static int count_entries(const char *dir);

/* The files of TLS are made before the server reads them. */
static void begin_tls(struct world *w)
{
    const char *wanted = getenv("LATCHKEY_TEST_TLS");
    if (wanted == NULL || strcmp(wanted, "yes") != 0)
        return;
    w->tls_port = free_port();
    certificates_make(w->dir);
}

static int tell_tid(void *arg)
{
    *(pid_t *)arg = gettid();
    return 0;
}

/* A sanitizer's own thread starts with the first one of the program: have that behind us. */
static void start_first_thread(void)
{
    char path[40];
    pid_t tid;
    in_thread(tell_tid, &tid);
    snprintf(path, sizeof path, "/proc/self/task/%d", (int)tid);
    eventually(access(path, F_OK) != 0, 10000); /* a joined thread may still be listed */
}

struct world *world_begin(const char *server_args)
{
    struct world *w = calloc(1, sizeof *w);
    const char *tmp = getenv("TMPDIR");
    assert_that(w != NULL);
    slack_begin();
    start_first_thread();
    w->threads_before = count_entries("/proc/self/task");
    w->descriptors_before = count_entries("/proc/self/fd");
    if (tmp == NULL || strlen(tmp) > 40) /* a socket's path is short */
        tmp = "/tmp";
    snprintf(w->dir, sizeof w->dir, "%s/lk-XXXXXX", tmp);
    assert_that(mkdtemp(w->dir) != NULL);
    snprintf(w->socket, sizeof w->socket, "%s/redis.sock", w->dir);
    snprintf(w->server_args, sizeof w->server_args, "%s", server_args != NULL ? server_args : "");
    w->arena = mmap(NULL, sizeof *w->arena, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_that(w->arena != MAP_FAILED);
    begin_tls(w);
    world_restart_server(w);
    return w;
}

void world_end(struct world *w)
{
    char complaint[sizeof w->complaint];
    world_close(w, NULL);
    for (int i = 0; i < w->child_count; i++)
        if (w->children[i] != 0)
            world_kill(w, w->children[i]);
    if (w->ears != NULL)
        redisFree(w->ears);
    if (w->server != 0) {
        world_cont_server(w);
        check_server(w);
        world_kill_server(w);
    }
    if (w->redis != NULL)
        redisFree(w->redis);
    munmap(w->arena, sizeof *w->arena);
    remove_dir(w);
    check_process(w);
    memcpy(complaint, w->complaint, sizeof complaint);
    free(w->endings);
    free(w);
    if (complaint[0] != 0)
        assert_failed(__FILE__, __LINE__, "at the end of the test: %s", complaint);
}

void world_allow(struct world *w, const char *pattern)
{
    assert_that(w->allowed_count < (int)(sizeof w->allowed / sizeof w->allowed[0]));
    snprintf(w->allowed[w->allowed_count++], sizeof w->allowed[0], "%s", pattern);
}

const char *world_options(char all[WORLD_OPTIONS], const char *options)
{
    const char *said = strstr(options, "describe=") == NULL ? "describe=no" : "";
    int length = snprintf(all, WORLD_OPTIONS, "%s%s%s", said, said[0] != 0 && options[0] != 0 ? "&" : "", options);
    assert_that(length < WORLD_OPTIONS);
    return all;
}

const char *world_tlsurl(struct world *w, int port, const char *options)
{
    char url[1024], all[WORLD_OPTIONS];
    int length = snprintf(url, sizeof url, "rediss://127.0.0.1:%d?cacert=%s/ca.pem&%s", port, w->dir,
                          world_options(all, options));
    assert_that(length < (int)sizeof url);
    return world_keep(url, (size_t)length);
}

const char *world_url(struct world *w, const char *options)
{
    char url[1024], all[WORLD_OPTIONS];
    if (w->tls_port != 0)
        return world_tlsurl(w, w->tls_port, options);
    int length = snprintf(url, sizeof url, "unix://%s?%s", w->socket, world_options(all, options));
    assert_that(length < (int)sizeof url);
    return world_keep(url, (size_t)length);
}

/* Leased permits of which the token is left, with an end. */
static bool has_tokens_alone(struct world *w, const redisReply *key)
{
    return strncmp(key->str, "latchkey:permits:", 17) == 0 &&
           world_int(w, "ZCOUNT %b 0 inf", key->str, key->len) == 0 && world_int(w, "PTTL %b", key->str, key->len) > 0;
}

/* The name in "{NAME}" or ":NAME", as helper keys end. */
static const char *name_in(const char *tail)
{
    static char name[512];
    snprintf(name, sizeof name, "%s", tail + 1);
    if (tail[0] == '{')
        name[strcspn(name, "}")] = '\0';
    return name;
}

/* Is it a key that the documentation allows to be left behind? */
static bool may_be_left(struct world *w, const redisReply *key)
{
    static const char total[] = "latchkey:total:sem:"; /* as long as its semaphore may stay, it may */
    const char *name = strncmp(key->str, total, sizeof total - 1) == 0 ? name_in(key->str + sizeof total - 1) : NULL;
    for (int i = 0; i < w->allowed_count; i++)
        if (fnmatch(w->allowed[i], key->str, 0) == 0 || (name != NULL && fnmatch(w->allowed[i], name, 0) == 0))
            return true;
    static const char *const short_lived[] = { "redisson_lock_token:", "latchkey:once:", "latchkey:opened:",
                                               "latchkey:settings:", "latchkey:who:" };
    for (size_t i = 0; i < sizeof short_lived / sizeof *short_lived; i++)
        if (strncmp(key->str, short_lived[i], strlen(short_lived[i])) == 0)
            return world_int(w, "PTTL %b", key->str, key->len) > 0;
    bool since = strcmp(key->str, "latchkey:since") == 0; /* a quorum's clients met the server */
    return since || has_tokens_alone(w, key);
}

const char *world_left(struct world *w)
{
    const char *left = NULL;
    redisReply *keys = world_reply(w, "KEYS *");
    for (size_t i = 0; i < keys->elements && left == NULL; i++)
        if (!may_be_left(w, keys->element[i]))
            left = world_keep(keys->element[i]->str, keys->element[i]->len);
    freeReplyObject(keys);
    return left;
}

static void complain(struct world *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (w->complaint[0] == 0)
        vsnprintf(w->complaint, sizeof w->complaint, format, args);
    va_end(args);
}

/* Channels of the library's that somebody listens on. */
static int64_t heard(struct world *w)
{
    return world_elements(w, "PUBSUB CHANNELS latchkey:*") + world_elements(w, "PUBSUB SHARDCHANNELS latchkey:*");
}

/* Nothing but documented keys, and nobody listens any more. */
static void check_server(struct world *w)
{
    int64_t until_ms = now_ms() + LEFT_AFTER_MS;
    const char *left;
    while ((left = world_left(w)) != NULL && now_ms() < until_ms)
        sleep_ms(10);
    if (left != NULL)
        complain(w, "a key is left: %s", left);
    while (heard(w) != 0 && now_ms() < until_ms)
        sleep_ms(10);
    if (heard(w) != 0)
        complain(w, "somebody still listens on a channel of the library");
}

static bool process_is_as_before(struct world *w, int *threads, int *descriptors)
{
    *threads = count_entries("/proc/self/task");
    *descriptors = count_entries("/proc/self/fd");
    return *threads == w->threads_before && *descriptors == w->descriptors_before;
}

/* Say what the open descriptors are. */
static void print_descriptors(void)
{
    for (int fd = 3; fd < 1024; fd++) {
        char path[32], target[128];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(path, target, sizeof target - 1);
        if (length > 0)
            print_error("descriptor %d is %.*s\n", fd, (int)length, target);
    }
}

static void check_process(struct world *w)
{
    int threads, descriptors;
    int64_t until_ms = now_ms() + LEFT_AFTER_MS;
    while (!process_is_as_before(w, &threads, &descriptors) && now_ms() < until_ms)
        sleep_ms(10);
    if (process_is_as_before(w, &threads, &descriptors))
        return;
    complain(w, "%d threads and %d descriptors, %d and %d before", threads, descriptors, w->threads_before,
             w->descriptors_before);
    if (descriptors != w->descriptors_before)
        print_descriptors();
}

static int count_entries(const char *dir)
{
    DIR *d = opendir(dir);
    int count = -2; /* "." and ".." */
    assert_that(d != NULL);
    while (readdir(d) != NULL)
        count++;
    closedir(d);
    return count;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info;
    (void)type;
    (void)where;
    return remove(path);
}

static void remove_dir(struct world *w)
{
    if (nftw(w->dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS) != 0)
        print_message("could not remove %s\n", w->dir);
}

/* --- the server ------------------------------------------------------------------------------------- */

#if defined(__SANITIZE_THREAD__)
/*
 * It does not see that the kernel hands a descriptor's number out again only after a thread of the library has closed it. What
 * libsim.so says for programs without this is said here as well.
 */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:write_config\ncalled_from_lib:libsim.so\n";
}
#endif

static void write_config(struct world *w)
{
    char path[96];
    snprintf(path, sizeof path, "%s/redis.conf", w->dir);
    FILE *config = fopen(path, "w");
    assert_that(config != NULL);
    fprintf(config, "port 0\nunixsocket %s\ndir %s\nsave \"\"\nappendonly no\nlogfile server.log\n", w->socket, w->dir);
    fprintf(config, "enable-debug-command yes\n");
    if (w->tls_port != 0)
        fprintf(config,
                "bind 127.0.0.1\ntls-port %d\ntls-cert-file %s/server.pem\ntls-key-file %s/server.key\n"
                "tls-ca-cert-file %s/ca.pem\ntls-auth-clients optional\n",
                w->tls_port, w->dir, w->dir, w->dir);
    assert_that(fclose(config) == 0);
}

static void exec_server(struct world *w)
{
    char path[96], *argv[ARGV_MAX] = { path, path };
    int argc = 2;
    const char *binary = getenv("LATCHKEY_TEST_SERVER");
    snprintf(path, sizeof path, "%s/redis.conf", w->dir);
    for (char *rest = w->server_args, *arg; argc < ARGV_MAX - 1 && (arg = strtok_r(rest, " ", &rest)) != NULL;)
        argv[argc++] = arg;
    execvp(binary != NULL && binary[0] != 0 ? binary : "redis-server", argv);
    _exit(errno == ENOENT ? 127 : 126);
}

static void start_server(struct world *w)
{
    pid_t parent = getpid();
    write_config(w);
    w->server = fork();
    assert_that(w->server >= 0);
    if (w->server == 0) {
        int nothing = open("/dev/null", O_RDWR);
        dup2(nothing, 0);
        dup2(nothing, 1);
        dup2(nothing, 2);
        die_with_parent(parent);
        exec_server(w);
    }
}

/* Has it answered PING? Ends the program with 77 if there is no such binary. */
static bool server_answers(struct world *w)
{
    int status;
    if (waitpid(w->server, &status, WNOHANG) == w->server) {
        w->server = 0;
        remove_dir(w);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
            print_message("skipped: there is no redis-server\n");
            exit(77);
        }
        assert_failed(__FILE__, __LINE__, "the server ended while starting");
    }
    redisContext *context = redisConnectUnix(w->socket);
    redisReply *reply = context != NULL && context->err == 0 ? redisCommand(context, "PING") : NULL;
    bool answers = reply != NULL && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    redisFree(context);
    return answers;
}

void world_restart_server(struct world *w)
{
    assert_that(w->server == 0);
    start_server(w);
    eventually(server_answers(w), STARTS_WITHIN_MS);
}

void world_stop_server(struct world *w)
{
    world_stop(w->server);
}

void world_cont_server(struct world *w)
{
    world_cont(w->server);
}

void world_kill_server(struct world *w)
{
    world_reap(w, w->server);
    w->server = 0;
}
