/* SPDX-License-Identifier: MIT */
/*
 * world.c - see world.h
 */
#include "world.h"

#include "coverage.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <ftw.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARENA_BYTES (1 << 20)
#define STARTS_WITHIN_MS 20000
#define LEFT_AFTER_MS 1500 /* for what a closed client leaves to the server or the kernel */
#define CHILD_WITHIN_MS 60000
#define ARGV_MAX 48

struct world_arena {
    size_t used;
    int ready[WORLD_CHILDREN_MAX]; /* atomic builtins: written by children */
    _Alignas(16) char bytes[ARENA_BYTES];
};

static void start_server(struct world *w);
static void check_server(struct world *w);
static void check_process(struct world *w);
static void remove_dir(struct world *w);
static redisContext *redis_of(struct world *w);
static redisReply *command(struct world *w, const char *format, va_list args);
static redisReply *reply_to(struct world *w, const char *format, ...);
static char *keep(const char *text, size_t length);
static int count_entries(const char *dir);
static void reap(struct world *w, pid_t pid);

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
    eventually(access(path, F_OK) != 0, 1000); /* a joined thread may still be listed */
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

const char *world_url(struct world *w, const char *options)
{
    char url[512];
    int length = snprintf(url, sizeof url, "unix://%s%s%s", w->socket, options[0] != 0 ? "?" : "", options);
    assert_that(length < (int)sizeof url);
    return keep(url, (size_t)length);
}

/* Signs of life with an end, and none of a waiter among them: only notes of clients that were granted claims. */
static bool has_notes_alone(struct world *w, const redisReply *key)
{
    return strncmp(key->str, "latchkey:seen:", 14) == 0 &&
           world_int(w, "EVAL %s 1 %b",
                     "for _, one in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do "
                     "if string.find(one, ':', 1, true) then return -1 end end return redis.call('PTTL', KEYS[1])",
                     key->str, key->len) > 0;
}

/* Is it a key that the documentation allows to be left behind? */
static bool may_be_left(struct world *w, const redisReply *key)
{
    for (int i = 0; i < w->allowed_count; i++)
        if (fnmatch(w->allowed[i], key->str, 0) == 0)
            return true;
    static const char *const short_lived[] = { "redisson_lock_token:", "latchkey:once:", "latchkey:opened:" };
    for (size_t i = 0; i < sizeof short_lived / sizeof *short_lived; i++)
        if (strncmp(key->str, short_lived[i], strlen(short_lived[i])) == 0)
            return world_int(w, "PTTL %b", key->str, key->len) > 0;
    return has_notes_alone(w, key);
}

const char *world_left(struct world *w)
{
    const char *left = NULL;
    redisReply *keys = reply_to(w, "KEYS *");
    for (size_t i = 0; i < keys->elements && left == NULL; i++)
        if (!may_be_left(w, keys->element[i]))
            left = keep(keys->element[i]->str, keys->element[i]->len);
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

/* Nothing but documented keys, and nobody listens any more. */
static void check_server(struct world *w)
{
    int64_t until_ms = now_ms() + LEFT_AFTER_MS;
    const char *left;
    while ((left = world_left(w)) != NULL && now_ms() < until_ms)
        sleep_ms(10);
    if (left != NULL)
        complain(w, "a key is left: %s", left);
    while (world_elements(w, "PUBSUB CHANNELS latchkey:*") != 0 && now_ms() < until_ms)
        sleep_ms(10);
    if (world_elements(w, "PUBSUB CHANNELS latchkey:*") != 0)
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

/* --- commands --------------------------------------------------------------------------------------- */

/* Texts are handed out from a ring, so that tests need not free them. */
static char *keep(const char *text, size_t length)
{
    static char *ring[8];
    static unsigned next;
    char *kept = realloc(ring[next % 8], length + 1);
    assert_that(kept != NULL);
    memcpy(kept, text, length);
    kept[length] = 0;
    ring[next++ % 8] = kept;
    return kept;
}

static redisContext *connect_to(struct world *w)
{
    struct timeval patience = { 10, 0 };
    redisContext *context = redisConnectUnixWithTimeout(w->socket, patience);
    if (context == NULL || context->err != 0)
        assert_failed(__FILE__, __LINE__, "the test cannot reach its server");
    fcntl(context->fd, F_SETFD, FD_CLOEXEC);
    redisSetTimeout(context, patience);
    return context;
}

/* Has the server ended this connection? (hiredis would find out by SIGPIPE.) */
static bool was_cut(const redisContext *context)
{
    char byte;
    return context->err != 0 || recv(context->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* The connection of this process, made anew after a restart of the server or a fork. */
static redisContext *redis_of(struct world *w)
{
    if (w->redis != NULL && (w->redis_of != getpid() || was_cut(w->redis))) {
        redisFree(w->redis); /* in a child: closes its copy of the descriptor */
        w->redis = NULL;
    }
    if (w->redis == NULL)
        w->redis = connect_to(w);
    w->redis_of = getpid();
    return w->redis;
}

static redisReply *command(struct world *w, const char *format, va_list args)
{
    redisReply *reply = redisvCommand(redis_of(w), format, args);
    if (reply == NULL)
        assert_failed(__FILE__, __LINE__, "%s: the server did not answer: %s", format, w->redis->errstr);
    if (reply->type == REDIS_REPLY_ERROR)
        assert_failed(__FILE__, __LINE__, "%s: %s", format, reply->str);
    return reply;
}

static redisReply *reply_to(struct world *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = command(w, format, args);
    va_end(args);
    return reply;
}

void world_redis(struct world *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    freeReplyObject(command(w, format, args));
    va_end(args);
}

int64_t world_int(struct world *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = command(w, format, args);
    va_end(args);
    int64_t value = reply->type == REDIS_REPLY_INTEGER ? reply->integer
                    : reply->type == REDIS_REPLY_NIL   ? -1
                                                       : strtoll(reply->str, NULL, 10);
    freeReplyObject(reply);
    return value;
}

const char *world_str(struct world *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = command(w, format, args);
    va_end(args);
    const char *text = reply->str != NULL ? keep(reply->str, reply->len) : keep("", 0);
    freeReplyObject(reply);
    return text;
}

int64_t world_elements(struct world *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = command(w, format, args);
    va_end(args);
    int64_t count = (int64_t)reply->elements;
    freeReplyObject(reply);
    return count;
}

/* The elements of an array of texts, divided by blanks. */
static const char *joined(const redisReply *reply)
{
    char text[4096] = "";
    size_t length = 0;
    for (size_t i = 0; i < reply->elements && length < sizeof text; i++)
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "%s%s", i > 0 ? " " : "", reply->element[i]->str);
    return keep(text, strlen(text));
}

int64_t world_leaseleft(struct world *w, const char *name)
{
    return world_int(w, "EVAL %s 3 %s latchkey:rw:{%s} latchkey:permits:{%s}",
                     "local time, left = redis.call('TIME'), math.max(0, redis.call('PTTL', KEYS[1])) "
                     "for i = 2, 3 do "
                     "  local last = redis.call('ZRANGE', KEYS[i], -1, -1, 'WITHSCORES')[2] "
                     "  if last then left = math.max(left, last - time[1] * 1000 - math.floor(time[2] / 1000)) end "
                     "end return left",
                     name, name, name);
}

int64_t world_pttl(struct world *w, const char *name)
{
    return world_int(w, "PTTL %s", name);
}

bool world_exists(struct world *w, const char *key)
{
    return world_int(w, "EXISTS %s", key) == 1;
}

bool world_listening(struct world *w, const char *object)
{
    return world_int(w, "EVAL %s 1 latchkey:seen:%s",
                     "local signs, deaf = redis.call('ZRANGE', KEYS[1], 0, '+inf', 'BYSCORE', 'WITHSCORES'), 0 "
                     "for i = 2, #signs, 2 do deaf = deaf + tonumber(signs[i]) % 1 * 2048 % 2 end return deaf",
                     object) == 0;
}

int64_t world_queued(struct world *w, const char *name)
{
    return world_int(w, "ZCARD latchkey:queue:mutex:{%s}", name);
}

int64_t world_rwqueued(struct world *w, const char *name)
{
    return world_int(w, "ZCARD latchkey:queue:rw:{%s}", name);
}

int64_t world_semqueued(struct world *w, const char *name)
{
    return world_int(w, "ZCARD latchkey:queue:sem:{%s}", name) +
           world_int(w, "ZCARD latchkey:queue:permits:{%s}", name);
}

int64_t world_rwholds(struct world *w, const char *name)
{
    return world_int(w, "ZCARD latchkey:rw:{%s}", name);
}

const char *world_owner(struct world *w, const char *name)
{
    redisReply *fields = reply_to(w, "HKEYS %s", name);
    const char *owner = joined(fields);
    freeReplyObject(fields);
    return owner;
}

int64_t world_holds(struct world *w, const char *name)
{
    redisReply *values = reply_to(w, "HVALS %s", name);
    int64_t holds = values->elements > 0 ? strtoll(values->element[0]->str, NULL, 10) : -1;
    freeReplyObject(values);
    return holds;
}

const char *world_keys(struct world *w)
{
    redisReply *keys = reply_to(w, "KEYS *");
    const char *text = joined(keys);
    freeReplyObject(keys);
    return text;
}

int64_t world_counter(struct world *w, const char *field)
{
    char line[80];
    const char *info = world_str(w, "INFO everything"), *found;
    snprintf(line, sizeof line, "\n%s:", field);
    found = strstr(info, line);
    return found != NULL ? strtoll(found + strlen(line), NULL, 10) : -1;
}

int64_t world_commands(struct world *w, const char *command_name)
{
    char line[80];
    const char *info = world_str(w, "INFO commandstats"), *found;
    snprintf(line, sizeof line, "cmdstat_%s:calls=", command_name);
    found = strstr(info, line);
    return found != NULL ? strtoll(found + strlen(line), NULL, 10) : 0;
}

void world_subscribe(struct world *w, const char *channel)
{
    if (w->ears != NULL)
        redisFree(w->ears);
    w->ears = connect_to(w);
    redisReply *reply = redisCommand(w->ears, "SUBSCRIBE %s", channel);
    assert_that(reply != NULL && reply->type == REDIS_REPLY_ARRAY);
    freeReplyObject(reply);
}

const char *world_message(struct world *w, int64_t ms)
{
    int64_t until_ms = now_ms() + ms;
    redisReply *reply = NULL;
    const char *text;
    for (;;) {
        assert_that(redisGetReplyFromReader(w->ears, (void **)&reply) == REDIS_OK);
        if (reply != NULL)
            break;
        struct pollfd wait = { .fd = w->ears->fd, .events = POLLIN };
        int64_t left_ms = until_ms - now_ms();
        if (left_ms < 0 || poll(&wait, 1, (int)left_ms) == 0)
            return NULL;
        assert_that(redisBufferRead(w->ears) == REDIS_OK);
    }
    assert_that(reply->type == REDIS_REPLY_ARRAY && reply->elements == 3);
    text = keep(reply->element[2]->str, reply->element[2]->len);
    freeReplyObject(reply);
    return text;
}

/* --- the server ------------------------------------------------------------------------------------- */

/* In a child about to exec: die with the test, leave it its terminal. */
static void die_with_parent(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(126);
}

static void write_config(struct world *w)
{
    char path[96];
    snprintf(path, sizeof path, "%s/redis.conf", w->dir);
    FILE *config = fopen(path, "w");
    assert_that(config != NULL);
    fprintf(config, "port 0\nunixsocket %s\ndir %s\nsave \"\"\nappendonly no\nlogfile server.log\n", w->socket, w->dir);
    fprintf(config, "enable-debug-command yes\n");
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
    reap(w, w->server);
    w->server = 0;
}

void world_killcommands(struct world *w)
{
    world_redis(w, "CLIENT KILL TYPE normal SKIPME yes");
}

void world_killsubscriptions(struct world *w)
{
    world_redis(w, "CLIENT KILL TYPE pubsub");
}

/* --- processes -------------------------------------------------------------------------------------- */

/* What a child keeps of its parent: neither handlers that jump back into the runner, nor its children. */
static void become_child(struct world *w, pid_t parent, int index)
{
    static const int handled[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS };
    die_with_parent(parent);
    for (size_t i = 0; i < sizeof handled / sizeof handled[0]; i++)
        signal(handled[i], SIG_DFL);
    in_child = true;
    w->me = index;
    w->ending_count = 0;
}

static bool sleeps(const char *thread)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/stat", thread);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return true; /* it has just ended */
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    const char *state = length > 0 ? strrchr(text, ')') : NULL;
    return state == NULL || state[2] == 'S';
}

static bool others_sleep(void)
{
    char me[16];
    bool all = true;
    snprintf(me, sizeof me, "%d", (int)gettid());
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *entry; tasks != NULL && (entry = readdir(tasks)) != NULL;)
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, me) != 0)
            all = all && sleeps(entry->d_name);
    if (tasks != NULL)
        closedir(tasks);
    return all;
}

/*
 * GCC's AddressSanitizer does not look after its own locks at a fork, as the C library does: were another thread
 * just in its malloc() or its pthread_create(), the child would wait for ever in its own first one. So the others
 * are to sleep, at several looks in a row, as they do soon: in a poll() or in wait for a condition.
 */
void world_rest(void)
{
    int64_t until_ms = now_ms() + 2000;
    for (int looks = SANITIZED && !THREAD_SANITIZED ? 0 : 3; looks < 3 && now_ms() < until_ms; sleep_ms(2))
        looks = others_sleep() ? looks + 1 : 0;
}

pid_t world_fork(struct world *w, int (*fn)(struct world *w, void *arg), void *arg)
{
    int index = w->child_count, *ready = &w->arena->ready[index];
    pid_t parent = getpid(), pid;
    assert_that(index < WORLD_CHILDREN_MAX);
    world_rest();
    fflush(NULL);
    pid = fork();
    assert_that(pid >= 0);
    if (pid == 0) {
        become_child(w, parent, index);
        int status = fn(w, arg);
        if (status == 0)
            world_close(w, NULL);
        fflush(NULL);
        _exit(status);
    }
    w->children[w->child_count++] = pid;
    for (int64_t until_ms = now_ms() + CHILD_WITHIN_MS; __atomic_load_n(ready, __ATOMIC_ACQUIRE) == 0; sleep_ms(1)) {
        siginfo_t ended = { 0 };
        if (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == pid &&
            __atomic_load_n(ready, __ATOMIC_ACQUIRE) == 0)
            assert_failed(__FILE__, __LINE__, "a child ended before it was ready");
        assert_that(now_ms() < until_ms);
    }
    return pid;
}

void world_ready(struct world *w)
{
    coverage_save(); /* what is done from here on is lost if it is killed */
    __atomic_store_n(&w->arena->ready[w->me], 1, __ATOMIC_RELEASE);
}

static void forget(struct world *w, pid_t pid)
{
    for (int i = 0; i < w->child_count; i++)
        if (w->children[i] == pid)
            w->children[i] = 0;
}

static void reap(struct world *w, pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    forget(w, pid);
}

int world_wait(struct world *w, pid_t pid)
{
    int status;
    for (int64_t until_ms = now_ms() + CHILD_WITHIN_MS; waitpid(pid, &status, WNOHANG) != pid; sleep_ms(2))
        if (now_ms() > until_ms) {
            reap(w, pid);
            assert_failed(__FILE__, __LINE__, "a child did not end");
        }
    forget(w, pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void world_kill(struct world *w, pid_t pid)
{
    reap(w, pid);
}

int64_t world_killholder(struct world *w, pid_t pid, const char *name)
{
    world_stop(pid);
    int64_t left_ms = world_leaseleft(w, name);
    world_kill(w, pid);
    return left_ms;
}

void world_stop(pid_t pid)
{
    siginfo_t stopped;
    kill(pid, SIGSTOP);
    waitid(P_PID, (id_t)pid, &stopped, WSTOPPED | WNOWAIT);
}

void world_cont(pid_t pid)
{
    kill(pid, SIGCONT);
}

void *world_shared(struct world *w, size_t size)
{
    void *memory = w->arena->bytes + w->arena->used;
    w->arena->used += (size + 15) & ~(size_t)15;
    assert_that(w->arena->used <= ARENA_BYTES);
    return memory;
}

void gate_open(struct gate *gate)
{
    __atomic_store_n(&gate->open, 1, __ATOMIC_RELEASE);
}

bool gate_is_open(const struct gate *gate)
{
    return __atomic_load_n(&gate->open, __ATOMIC_ACQUIRE) != 0;
}

void gate_pass(struct gate *gate)
{
    eventually(gate_is_open(gate), 30000);
}
