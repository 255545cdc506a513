/* SPDX-License-Identifier: MIT */
/*
 * server.c - a whole client and a server that answers anything: no call takes it for a hold that was not
 * given, every call returns in time with a code of the table
 *
 * The input: which object, the calls made, and what the server, a thread here, answers to each script.
 * Once that is used up it answers "done", so that a client closes without delay.
 */
#include "fuzz.h"
#include "lock/scripts.h"
#include "redis/redis.h"

#include <latchkey/latchkey.h>

#include <hiredis/hiredis.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { LEASE_MS = 100, LIMIT_MS = 5, SLACK_MS = 1500, CALLS_MAX = 8, CLIENTS = 8, TOKENS = 64, REPLY_MAX = 1024 };
enum { TRIES = 3 };

#define OPTIONS "lease=100ms&command_timeout=20ms&connect_timeout=30ms&poll=10ms&retry_min=1ms&retry_max=5ms&prefix=p:"

/* --- what the server may say, and what it said; under mu ----------------------------------------------------- */

static struct {
    pthread_mutex_t mu;
    struct input answers;
    uint64_t tokens[TOKENS]; /* of grants that were whole */
    int token_count;
    bool any_token; /* raw bytes went out that may be a grant */
} said = { .mu = PTHREAD_MUTEX_INITIALIZER };

static char path[64];

struct client {
    int fd; /* -1: none */
    redisReader *reader;
    bool subscribed;
};
static struct client clients[CLIENTS];

struct reply {
    char bytes[REPLY_MAX];
    size_t length;
};

static void add(struct reply *reply, const char *format, ...) LK__PRINTF(2, 3);
static void add(struct reply *reply, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(reply->bytes + reply->length, REPLY_MAX - reply->length, format, args);
    va_end(args);
    require(length >= 0 && reply->length + (size_t)length < REPLY_MAX);
    reply->length += (size_t)length;
}

static long long server_us(void)
{
    struct timeval now;
    gettimeofday(&now, NULL);
    return (long long)now.tv_sec * 1000000 + now.tv_usec;
}

static void note_token(uint64_t token)
{
    said.tokens[said.token_count++ % TOKENS] = token;
}

/* --- which form a script's answer has --- */

static bool calls(const redisReply *request, const struct lk__script *script)
{
    static char text[1 << 16]; /* under mu */
    const char *called = request->element[1]->str;
    *lk__script_write(script, LK__PUBSUB_PLAIN, text) = '\0';
    return called != NULL && (strcmp(called, script->sha1[LK__PUBSUB_PLAIN]) == 0 || strcmp(called, text) == 0);
}

static long long number_of(const redisReply *request)
{
    return strtoll(request->element[request->elements - 1]->str, NULL, 10);
}

/* --- answers to scripts ----------------------------------------------------------------------------------------- */

static long long any_number(struct input *input)
{
    static const long long edges[] = { INT64_MIN, -1, INT64_MAX, (1LL << 53) - 1, 1LL << 53, 1LL << 32, INT32_MAX };
    uint8_t how = take_byte(input);
    if (how < 64)
        return how - 8;
    if (how < 128)
        return server_us() + (how - 96) * 1000LL;
    if (how < 160)
        return edges[how % 7];
    return (long long)take_number(input, how % 8 + 1);
}

static void say_numbers(struct reply *reply, struct input *input, const redisReply *request)
{
    long long numbers[8] = { 0 };
    int count = take_byte(input) % 9;
    add(reply, "*%d\r\n", count);
    for (int i = 0; i < count; i++) {
        numbers[i] = any_number(input);
        if (i == 2)
            numbers[i] = number_of(request); /* else all end here */
        add(reply, ":%lld\r\n", numbers[i]);
    }
    if (count >= 4 && (numbers[0] == 1 || numbers[0] == 2) && numbers[3] > 0)
        note_token((uint64_t)numbers[3]);
}

static void say_grant(struct reply *reply, struct input *input, const redisReply *request)
{
    uint64_t token = 1 + take_number(input, 2);
    note_token(token);
    add(reply, "*4\r\n:%d\r\n:%lld\r\n:%lld\r\n:%llu\r\n", 1 + take_byte(input) % 2, server_us(), number_of(request),
        (unsigned long long)token);
}

static void say_queued(struct reply *reply, const redisReply *request)
{
    bool holder = calls(request, &lk__lua_lock_acquire);
    add(reply, "*%d\r\n:0\r\n:%lld\r\n:%lld\r\n:7\r\n:3\r\n:0\r\n%s", holder ? 7 : 6, server_us(), number_of(request),
        holder ? "$1\r\nx\r\n" : "");
}

/* Done, gone or late; or, where there is such a verdict, taken over from an owner that died. */
static void say_outcome(struct reply *reply, struct input *input, const redisReply *request)
{
    static const enum lk__verdict verdicts[] = { LK__LATE, LK__GONE, LK__DONE, LK__GRANTED_OWNERDEAD };
    int outcome = take_byte(input) % 4;
    add(reply, "*3\r\n:%d\r\n:%lld\r\n:%lld\r\n", verdicts[outcome], server_us(), number_of(request));
}

/* Which grants nothing. */
static void say_done(struct reply *reply, const redisReply *request)
{
    add(reply, "*3\r\n:%d\r\n:%lld\r\n:%lld\r\n", LK__DONE, server_us(), number_of(request));
}

static void say_error(struct reply *reply, struct input *input)
{
    static const char *const errors[] = { "NOSCRIPT No matching script.",
                                          "OOM command not allowed",
                                          "READONLY no",
                                          "NOPERM this user",
                                          "WRONGTYPE wrong",
                                          "LOADING yes",
                                          "ERR \x1b[31m",
                                          "MOVED 1 a:1" };
    add(reply, "-%s\r\n", errors[take_byte(input) % 8]);
}

static void say_bytes(struct reply *reply, struct input *input)
{
    size_t length = take_byte(input) % 64;
    for (size_t i = 0; i < length; i++)
        reply->bytes[reply->length++] = (char)take_byte(input);
    said.any_token = true;
}

/* The argument that is an owner: what a grant by message has to name. */
static const char *owner_in(const redisReply *request)
{
    for (size_t i = 0; i < request->elements; i++) {
        const char *text = request->element[i]->str;
        if (text != NULL && strspn(text, "0123456789abcdef") == 32 && text[32] == ':')
            return text;
    }
    return "nobody";
}

static void publish(const struct reply *message)
{
    for (int i = 0; i < CLIENTS; i++)
        if (clients[i].fd >= 0 && clients[i].subscribed)
            send(clients[i].fd, message->bytes, message->length, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void say_message(struct input *input, const redisReply *request)
{
    struct reply message = { .length = 0 };
    char errmsg[256];
    const char *owner = owner_in(request);
    uint64_t token = 1 + take_number(input, 2);
    note_token(token);
    char kind = take_byte(input) % 4 == 3 ? 'F' : 'G';
    snprintf(errmsg, sizeof errmsg, "%c %.120s %lld %d %llu %d", kind, owner, server_us(), LEASE_MS,
             (unsigned long long)token, take_byte(input) % 2);
    add(&message, "*3\r\n$7\r\nmessage\r\n$48\r\nlatchkey:client:%.32s\r\n$%zu\r\n%s\r\n", owner, strlen(errmsg),
        errmsg);
    publish(&message);
}

/* False: the connection ends. */
static bool answer_script(struct reply *reply, const redisReply *request)
{
    struct input *input = &said.answers;
    if (input->left == 0) {
        say_done(reply, request);
        return true;
    }
    switch (take_byte(input) % 8) {
    case 0:
        say_grant(reply, input, request);
        return true;
    case 1:
        say_queued(reply, request);
        return true;
    case 2:
        say_outcome(reply, input, request);
        return true;
    case 3:
        say_bytes(reply, input);
        return true;
    case 4:
        say_numbers(reply, input, request);
        return true;
    case 5:
        return false;
    case 6:
        say_error(reply, input);
        return true;
    default:
        say_message(input, request);
        say_queued(reply, request);
        return true;
    }
}

/* --- the server's thread ------------------------------------------------------------------------------------------ */

static bool is(const redisReply *request, size_t i, const char *word)
{
    return i < request->elements && request->element[i]->str != NULL && strcmp(request->element[i]->str, word) == 0;
}

/* The only script without keys is what asks for rights when a client is opened: none are lacking. */
static bool is_probe(const redisReply *request)
{
    return is(request, 0, "EVAL") && is(request, 2, "0");
}

static bool answer(struct client *client, struct reply *reply, const redisReply *request)
{
    if (is_probe(request)) {
        add(reply, "*2\r\n$0\r\n\r\n$0\r\n\r\n");
        return true;
    }
    if (is(request, 0, "EVALSHA") || is(request, 0, "EVAL")) {
        pthread_mutex_lock(&said.mu);
        bool goes_on = answer_script(reply, request);
        pthread_mutex_unlock(&said.mu);
        return goes_on;
    }
    if (is(request, 0, "ROLE")) {
        add(reply, "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n");
    } else if (is(request, 0, "TIME")) {
        long long us = server_us();
        add(reply, "*2\r\n$10\r\n%010lld\r\n$6\r\n%06lld\r\n", us / 1000000, us % 1000000);
    } else if (is(request, 0, "SUBSCRIBE")) {
        client->subscribed = true;
        add(reply, "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n");
    } else if (is(request, 0, "PING")) {
        add(reply, "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
    } else {
        add(reply, "+OK\r\n");
    }
    return true;
}

static bool listen_to(struct client *client)
{
    char bytes[16384];
    redisReply *request = NULL;
    ssize_t length = read(client->fd, bytes, sizeof bytes);
    bool goes_on = length > 0 && redisReaderFeed(client->reader, bytes, (size_t)length) == REDIS_OK;
    while (goes_on && redisReaderGetReply(client->reader, (void **)&request) == REDIS_OK && request != NULL) {
        struct reply reply = { .length = 0 };
        goes_on = answer(client, &reply, request) &&
                  send(client->fd, reply.bytes, reply.length, MSG_NOSIGNAL) == (ssize_t)reply.length;
        freeReplyObject(request);
        request = NULL;
    }
    return goes_on;
}

static void begin_client(int fd)
{
    for (int i = 0; i < CLIENTS; i++)
        if (clients[i].fd < 0) {
            clients[i] = (struct client){ .fd = fd, .reader = redisReaderCreate() };
            return;
        }
    close(fd);
}

static void end_client(struct client *client)
{
    close(client->fd);
    redisReaderFree(client->reader);
    client->fd = -1;
}

static void *serve(void *arg)
{
    int listener = *(int *)arg;
    for (;;) {
        struct pollfd polled[1 + CLIENTS] = { { listener, POLLIN, 0 } };
        for (int i = 0; i < CLIENTS; i++)
            polled[1 + i] = (struct pollfd){ clients[i].fd, POLLIN, 0 };
        if (poll(polled, 1 + CLIENTS, -1) < 0)
            continue;
        for (int i = 0; i < CLIENTS; i++)
            if (polled[1 + i].revents != 0 && !listen_to(&clients[i]))
                end_client(&clients[i]);
        if (polled[0].revents != 0)
            begin_client(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
    }
    return NULL;
}

static void remove_socket(void)
{
    unlink(path);
}

static void start_server(void)
{
    static int listener;
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    pthread_t thread;
    for (int i = 0; i < CLIENTS; i++)
        clients[i].fd = -1;
    snprintf(path, sizeof path, "/tmp/latchkey-fuzz-%d.sock", (int)getpid());
    strcpy(address.sun_path, path);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    unlink(path);
    require(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 64) == 0);
    atexit(remove_socket);
    require(pthread_create(&thread, NULL, serve, &listener) == 0);
}

/* --- the calls ---------------------------------------------------------------------------------------------------- */

enum kind { MUTEX, FAIR, RWLOCK, COUNTED, LEASED, LATCH, KINDS };

/* One object, called by one thread. */
struct user {
    enum kind kind;
    lk_mutex_t mutex;
    lk_rwlock_t rwlock;
    lk_sem_t sem;
    lk_latch_t latch;
    int holds; /* as the answers of the library have it */
};

static bool is_code(int rc)
{
    static const int codes[] = { 0,         EBUSY,      ETIMEDOUT, EPERM,     ESTALE, EDEADLK,        EAGAIN,
                                 EOVERFLOW, EOWNERDEAD, ENOTCONN,  EIO,       EPROTO, EACCES,         ENOSPC,
                                 ENOTSUP,   ENOENT,     EEXIST,    ECANCELED, EINVAL, ENOTRECOVERABLE };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i] == rc)
            return true;
    return false;
}

/* 0: any token. */
static bool was_given(uint64_t token)
{
    pthread_mutex_lock(&said.mu);
    bool given = said.any_token;
    for (int i = 0; i < said.token_count && i < TOKENS; i++)
        given |= token == 0 || said.tokens[i] == token;
    pthread_mutex_unlock(&said.mu);
    return given;
}

/* A lock says it is held: by a grant that was sent, for no longer than its lease. */
static void check_hold(struct user *user, bool reading)
{
    uint64_t token = 0;
    int64_t left_ms = 0;
    bool mutex = user->kind == MUTEX || user->kind == FAIR;
    int rc = mutex ? lk_mutex_token(&user->mutex, &token) : lk_rwlock_token(&user->rwlock, &token);
    require(rc == 0 || rc == ESTALE || (reading && rc == EPERM)); /* readers have no token */
    require(rc != 0 || token > 0);
    require(was_given(token));
    rc = mutex ? lk_mutex_remaining(&user->mutex, &left_ms) : lk_rwlock_remaining(&user->rwlock, &left_ms);
    require((rc == 0 && left_ms >= 0 && left_ms <= LEASE_MS) || rc == ESTALE);
}

static int call_mutex(struct user *user, uint8_t what)
{
    lk_mutexinfo_t info = LK_MUTEXINFO_INIT;
    lk_waiter_t waiters[4];
    unsigned count;
    switch (what % 8) {
    case 0:
        return lk_mutex_trylock(&user->mutex);
    case 1:
        return lk_mutex_lockfor(&user->mutex, LIMIT_MS);
    case 2:
        return lk_mutex_check(&user->mutex);
    case 3:
        return lk_mutex_extend(&user->mutex, LEASE_MS);
    case 4:
        return lk_mutex_forceunlock(&user->mutex);
    case 5:
        return lk_mutex_info(&user->mutex, &info);
    case 6:
        return lk_mutex_queue(&user->mutex, waiters, sizeof(lk_waiter_t), 4, &count);
    default:
        return lk_mutex_unlock(&user->mutex);
    }
}

static int call_rwlock(struct user *user, uint8_t what)
{
    lk_rwlockinfo_t info = LK_RWLOCKINFO_INIT;
    lk_waiter_t waiters[4];
    unsigned count;
    switch (what % 8) {
    case 0:
        return lk_rwlock_tryrdlock(&user->rwlock);
    case 1:
        return lk_rwlock_wrlockfor(&user->rwlock, LIMIT_MS);
    case 2:
        return lk_rwlock_rdlockfor(&user->rwlock, LIMIT_MS);
    case 3:
        return what & 8 ? lk_rwlock_extend(&user->rwlock, LEASE_MS) : lk_rwlock_check(&user->rwlock);
    case 4:
        return lk_rwlock_downgrade(&user->rwlock);
    case 5:
        return what & 8 ? lk_rwlock_queue(&user->rwlock, waiters, sizeof(lk_waiter_t), 4, &count)
                        : lk_rwlock_info(&user->rwlock, &info);
    case 6:
        return lk_rwlock_forceunlock(&user->rwlock);
    default:
        return lk_rwlock_unlock(&user->rwlock);
    }
}

static int call_sem(struct user *user, uint8_t what)
{
    lk_seminfo_t info = LK_SEMINFO_INIT;
    lk_waiter_t waiters[4];
    unsigned taken, count;
    int value;
    switch (what % 8) {
    case 0:
        return lk_sem_trywait(&user->sem);
    case 1:
        return lk_sem_acquire(&user->sem, 2, LIMIT_MS);
    case 2:
        return lk_sem_post(&user->sem);
    case 3:
        return lk_sem_getvalue(&user->sem, &value);
    case 4:
        return lk_sem_addpermits(&user->sem, 2);
    case 5:
        return lk_sem_drain(&user->sem, &taken);
    case 6:
        return what & 8 ? lk_sem_queue(&user->sem, waiters, sizeof(lk_waiter_t), 4, &count)
                        : lk_sem_info(&user->sem, &info);
    default:
        return lk_sem_trysetpermits(&user->sem, 3);
    }
}

static int call_latch(struct user *user, uint8_t what)
{
    lk_latchinfo_t info = LK_LATCHINFO_INIT;
    unsigned count;
    switch (what % 6) {
    case 0:
        return lk_latch_waitfor(&user->latch, LIMIT_MS);
    case 1:
        return lk_latch_countdown(&user->latch);
    case 2:
        return lk_latch_getcount(&user->latch, &count);
    case 3:
        return lk_latch_trysetcount(&user->latch, 2);
    case 4:
        return lk_latch_info(&user->latch, &info);
    default:
        return lk_latch_delete(&user->latch);
    }
}

static bool takes(const struct user *user, uint8_t what)
{
    return user->kind == RWLOCK ? what % 8 <= 2 : user->kind <= FAIR && what % 8 <= 1;
}

static void follow(struct user *user, uint8_t what, int rc)
{
    bool gives = user->kind <= RWLOCK && what % 8 == 7;
    if (takes(user, what) && (rc == 0 || rc == EOWNERDEAD)) {
        user->holds++;
        check_hold(user, user->kind == RWLOCK && what % 8 != 1);
    } else if (gives) {
        require((rc == EPERM) == (user->holds == 0)); /* nothing is held but what was told */
        user->holds -= user->holds > 0;
    }
}

static bool overtime; /* a call took too long */

static void call(struct user *user, uint8_t what)
{
    int64_t began_us = lk__now_us();
    errno = 4711;
    int rc = user->kind == RWLOCK  ? call_rwlock(user, what)
             : user->kind < RWLOCK ? call_mutex(user, what)
             : user->kind == LATCH ? call_latch(user, what)
                                   : call_sem(user, what);
    require(errno == 4711);
    require(is_code(rc));
    require(rc == 0 || (lk_errortext()[0] != '\0' && is_one_line(lk_errortext())));
    overtime |= lk__now_us() - began_us >= SLACK_MS * 1000;
    follow(user, what, rc);
}

static void begin_user(struct user *user, lk_client_t *client)
{
    lk_mutexattr_t fair = LK_MUTEXATTR_INIT;
    lk_rwlockattr_t robust = LK_RWLOCKATTR_INIT;
    lk_semattr_t leased = LK_SEMATTR_INIT;
    fair.fair = fair.robust = 1;
    robust.robust = 1;
    leased.leased = 1;
    int rc = user->kind == MUTEX     ? lk_mutex_init(&user->mutex, client, "m", NULL)
             : user->kind == FAIR    ? lk_mutex_init(&user->mutex, client, "m", &fair)
             : user->kind == RWLOCK  ? lk_rwlock_init(&user->rwlock, client, "rw", &robust)
             : user->kind == COUNTED ? lk_sem_init(&user->sem, client, "s", 3, NULL)
             : user->kind == LEASED  ? lk_sem_init(&user->sem, client, "s", 3, &leased)
                                     : lk_latch_init(&user->latch, client, "l", NULL);
    require(rc == 0);
}

/* Until nothing is held any more: an object in use cannot be destroyed. */
static void give_back(struct user *user)
{
    while (user->holds > 0)
        call(user, 7);
    for (int permits = 0; user->kind == LEASED && lk_sem_post(&user->sem) != EPERM; permits++)
        require(permits < 2 * CALLS_MAX);
}

static void end_user(struct user *user)
{
    int rc = user->kind < RWLOCK    ? lk_mutex_destroy(&user->mutex)
             : user->kind == RWLOCK ? lk_rwlock_destroy(&user->rwlock)
             : user->kind == LATCH  ? lk_latch_destroy(&user->latch)
                                    : lk_sem_destroy(&user->sem);
    require(rc == 0);
}

/* From now on the server answers by these bytes; without any, nothing that would be a grant. */
static void answer_by(struct input input)
{
    pthread_mutex_lock(&said.mu);
    said.answers = input;
    pthread_mutex_unlock(&said.mu);
}

static void use_client(struct user *user, lk_client_t *client, const uint8_t *calls, int count)
{
    begin_user(user, client);
    for (int i = 0; i < count; i++)
        call(user, calls[i]);
    give_back(user);
    answer_by((struct input){ 0 });
    end_user(user);
    int rc = lk_client_close(client);
    require(rc == 0 || rc == EIO);
}

static void run(struct input input)
{
    struct user user = { .kind = take_byte(&input) % KINDS };
    uint8_t calls[CALLS_MAX];
    int count = take_byte(&input) % (CALLS_MAX + 1);
    char url[256];
    lk_client_t *client;
    if (path[0] == '\0')
        start_server();
    for (int i = 0; i < count; i++)
        calls[i] = take_byte(&input);

    pthread_mutex_lock(&said.mu);
    said.token_count = 0;
    said.any_token = false;
    pthread_mutex_unlock(&said.mu);
    answer_by(input);
    snprintf(url, sizeof url, "unix://%s?%s", path, OPTIONS);
    if (lk_client_open(&client, url) == 0) /* but on a busy machine */
        use_client(&user, client, calls, count);
    answer_by((struct input){ 0 });
}

/* A machine that stands still for a moment does not do so at the same call again and again. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    int tries = 0;
    do {
        require(tries++ < TRIES);
        overtime = false;
        run((struct input){ bytes, size });
    } while (overtime);
    return 0;
}
