/* SPDX-License-Identifier: MIT */
/*
 * fake_server.c - see fake_server.h. The answers are a table in shared memory; the child looks each
 * command up when it comes.
 */
#include "fake_server.h"

#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define ANSWERS_MAX 32
#define REPLY_MAX 8192
#define CLIENTS_MAX 32
#define ANY "*"       /* what has no answer of its own */
#define TIME "\1time" /* the true time, as TIME gives it */

struct answer {
    char command[24];
    size_t length;
    int64_t asked;
    char reply[REPLY_MAX];
};

struct table { /* shared */
    int busy;  /* whoever made it 1 may read or write the rest */
    int count;
    _Atomic int64_t pause_ms; /* before a script is answered */
    struct answer answers[ANSWERS_MAX];
};

struct fake {
    struct world *world;
    char socket[96];
    struct table *table;
    pid_t pid;
};

struct client {
    int fd; /* -1: none */
    redisReader *reader;
};

static const char *const greeting[][2] = {
    { "PING", "+PONG\r\n" },
    { "ROLE", "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n" },
    { "CONFIG", "*2\r\n$16\r\nmaxmemory-policy\r\n$10\r\nnoeviction\r\n" },
    { "INFO", "$48\r\nredis_version:7.0.15\r\nmaxmemory:0\r\nrole:master\r\n\r\n" },
    { "EVALSHA", "-NOSCRIPT No matching script.\r\n" },
    { "TIME", TIME },
    { "ECHO", FAKE_ECHO },
    { ANY, "+OK\r\n" },
};

static int fake_run(struct world *w, void *arg);

static void table_lock(struct table *table)
{
    while (__atomic_exchange_n(&table->busy, 1, __ATOMIC_ACQUIRE) != 0)
        sleep_ms(1);
}

static void table_unlock(struct table *table)
{
    __atomic_store_n(&table->busy, 0, __ATOMIC_RELEASE);
}

/* The entry of a command, with the table locked; made if `make`, else possibly NULL. */
static struct answer *answer_of(struct table *table, const char *command, bool make)
{
    for (int i = 0; i < table->count; i++)
        if (strcasecmp(table->answers[i].command, command) == 0)
            return &table->answers[i];
    if (!make || table->count == ANSWERS_MAX)
        return NULL;
    struct answer *answer = &table->answers[table->count++];
    snprintf(answer->command, sizeof answer->command, "%s", command);
    return answer;
}

static void end_fake(void *arg)
{
    struct fake *f = arg;
    world_kill(f->world, f->pid);
    free(f);
}

struct fake *fake_begin(struct world *w)
{
    struct fake *f = calloc(1, sizeof *f);
    assert_that(f != NULL);
    f->world = w;
    f->table = world_shared(w, sizeof *f->table);
    snprintf(f->socket, sizeof f->socket, "%s/fake.sock", w->dir);
    for (size_t i = 0; i < sizeof greeting / sizeof greeting[0]; i++)
        fake_answer(f, greeting[i][0], greeting[i][1]);
    f->pid = world_fork(w, fake_run, f);
    world_at_end(w, NULL, f, end_fake);
    return f;
}

void fake_end(struct fake *f)
{
    world_close(f->world, f);
}

lk_client_t *fake_client(struct fake *f, const char *options)
{
    return world_client_at(f->world, f, fake_url(f, options));
}

const char *fake_url(struct fake *f, const char *options)
{
    static char url[1024];
    char all[WORLD_OPTIONS];
    snprintf(url, sizeof url, "unix://%s?%s", f->socket, world_options(all, options));
    return url;
}

void fake_answer(struct fake *f, const char *command, const char *reply)
{
    fake_answer_bytes(f, command, reply, strlen(reply));
}

void fake_answer_bytes(struct fake *f, const char *command, const char *bytes, size_t length)
{
    assert_that(length <= REPLY_MAX);
    table_lock(f->table);
    struct answer *answer = answer_of(f->table, command, true);
    if (answer != NULL) {
        memcpy(answer->reply, bytes, length);
        answer->length = length;
    }
    table_unlock(f->table);
    assert_that(answer != NULL);
}

void fake_pause(struct fake *f, int64_t ms)
{
    f->table->pause_ms = ms;
}

int64_t fake_asked(struct fake *f, const char *command)
{
    table_lock(f->table);
    const struct answer *answer = answer_of(f->table, command, false);
    int64_t asked = answer != NULL ? answer->asked : 0;
    table_unlock(f->table);
    return asked;
}

/* --- the child ------------------------------------------------------------------------------------------ */

/* Look up what to say to this command, and count it. */
static size_t reply_to(struct table *table, const char *command, char reply[REPLY_MAX])
{
    size_t length = 0;
    table_lock(table);
    struct answer *answer = answer_of(table, command, true);
    if (answer != NULL)
        answer->asked++;
    if (answer == NULL || answer->length == 0)
        answer = answer_of(table, ANY, false);
    length = answer->length;
    memcpy(reply, answer->reply, length);
    table_unlock(table);
    return length;
}

static bool is(const char *reply, size_t length, const char *special)
{
    return length == strlen(special) && memcmp(reply, special, length) == 0;
}

/* The last word of a request, but for settings behind it: "protocol=1 fair=no robust=no", and maybe one word more. */
static const char *last_word(const redisReply *request)
{
    size_t last = request->elements - 1;
    for (size_t i = last; i > 0 && i + 2 > last; i--)
        if (strncmp(request->element[i]->str, "protocol=", 9) == 0)
            return request->element[i - 1]->str;
    return request->element[last]->str;
}

/* Put that in the place of each '#'. */
static size_t number_it(char reply[REPLY_MAX], size_t length, const redisReply *request)
{
    const char *word = last_word(request);
    size_t size = strlen(word);
    for (size_t i = 0; reply[0] == '*' && i < length; i++)
        if (reply[i] == '#' && length + size <= REPLY_MAX) {
            memmove(reply + i + size, reply + i + 1, length - i - 1);
            memcpy(reply + i, word, size);
            length += size - 1;
        }
    return length;
}

/* False: the connection ends. */
static bool say(struct client *client, struct table *table, const redisReply *request)
{
    const char *command = request->element[0]->str;
    char reply[REPLY_MAX];
    size_t length = reply_to(table, command, reply);
    if (is(reply, length, FAKE_CLOSE))
        return false;
    if (is(reply, length, FAKE_SILENT))
        return true;
    if (is(reply, length, TIME)) {
        struct timeval now;
        gettimeofday(&now, NULL);
        length = (size_t)snprintf(reply, sizeof reply, "*2\r\n$10\r\n%010lld\r\n$6\r\n%06ld\r\n", (long long)now.tv_sec,
                                  (long)now.tv_usec);
    }
    if (is(reply, length, FAKE_ECHO) && request->elements == 2)
        length = (size_t)snprintf(reply, sizeof reply, "$%zu\r\n%s\r\n", strlen(request->element[1]->str),
                                  request->element[1]->str);
    length = number_it(reply, length, request);
    if (strcmp(command, "EVALSHA") == 0)
        sleep_ms(table->pause_ms);
    return send(client->fd, reply, length, MSG_NOSIGNAL) == (ssize_t)length;
}

/* False: the connection ends. */
static bool listen_to(struct client *client, struct table *table)
{
    char bytes[16384];
    redisReply *request;
    ssize_t length = read(client->fd, bytes, sizeof bytes);
    if (length <= 0 || redisReaderFeed(client->reader, bytes, (size_t)length) != REDIS_OK)
        return false;
    for (;;) {
        bool goes_on;
        request = NULL;
        if (redisReaderGetReply(client->reader, (void **)&request) != REDIS_OK)
            return false;
        if (request == NULL)
            return true;
        goes_on = request->type == REDIS_REPLY_ARRAY && request->elements > 0 && say(client, table, request);
        freeReplyObject(request);
        if (!goes_on)
            return false;
    }
}

static void client_end(struct client *client)
{
    close(client->fd);
    redisReaderFree(client->reader);
    client->fd = -1;
}

static void client_begin(struct client *clients, int fd)
{
    for (int i = 0; i < CLIENTS_MAX; i++)
        if (clients[i].fd < 0) {
            clients[i] = (struct client){ .fd = fd, .reader = redisReaderCreate() };
            return;
        }
    close(fd);
}

static int fake_run(struct world *w, void *arg)
{
    struct fake *f = arg;
    struct client clients[CLIENTS_MAX];
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", f->socket);
    unlink(f->socket);
    assert_that(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 64) == 0);
    for (int i = 0; i < CLIENTS_MAX; i++)
        clients[i].fd = -1;
    world_ready(w);
    for (;;) {
        struct pollfd fds[1 + CLIENTS_MAX] = { { .fd = listener, .events = POLLIN } };
        for (int i = 0; i < CLIENTS_MAX; i++)
            fds[1 + i] = (struct pollfd){ .fd = clients[i].fd, .events = POLLIN };
        if (poll(fds, 1 + CLIENTS_MAX, -1) < 0)
            continue;
        for (int i = 0; i < CLIENTS_MAX; i++)
            if (fds[1 + i].revents != 0 && !listen_to(&clients[i], f->table))
                client_end(&clients[i]);
        if (fds[0].revents != 0)
            client_begin(clients, accept4(listener, NULL, NULL, SOCK_CLOEXEC));
    }
}
