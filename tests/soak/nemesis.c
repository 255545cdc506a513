/* SPDX-License-Identifier: MIT */
/*
 * nemesis.c - faults of processes, of the network and of one server. Each has a beginning and an end; its times are
 * noted around both.
 */
#include "driver.h"

#include <dirent.h>
#include <hiredis/hiredis.h>
#include <string.h>
#include <unistd.h>

#define BUSY_SCRIPT_TEXT                                                                                               \
    "local t=redis.call('TIME') local e=t[1]*1000000+t[2]+ARGV[1]*1000 "                                               \
    "repeat t=redis.call('TIME') until t[1]*1000000+t[2]>e return 1"

static redisContext *redis_of(struct nemesis *nemesis)
{
    struct timeval patience = { 20, 0 };
    if (nemesis->redis == NULL || nemesis->redis->err != 0) {
        nemesis_rest(nemesis);
        nemesis->redis = redisConnectUnixWithTimeout(nemesis->world->socket, patience);
        assert_that(nemesis->redis != NULL && nemesis->redis->err == 0);
        redisSetTimeout(nemesis->redis, patience);
    }
    return nemesis->redis;
}

void nemesis_rest(struct nemesis *nemesis)
{
    if (nemesis->redis != NULL)
        redisFree(nemesis->redis);
    nemesis->redis = NULL;
}

/* `format` may have a place for one text, which may hold blanks. */
static void order(struct nemesis *nemesis, const char *format, const char *text)
{
    redisReply *reply = redisCommand(redis_of(nemesis), format, text);
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
        fprintf(stderr, "%s: %s\n", format, reply != NULL ? reply->str : "no answer");
    freeReplyObject(reply);
}

/* The server answers when the script is done; until then it answers nobody, or says BUSY. */
static void begin_busy_script(struct nemesis *nemesis, int ms)
{
    int done = 0;
    redisAppendCommand(redis_of(nemesis), "EVAL %s 0 %d", BUSY_SCRIPT_TEXT, ms);
    while (done == 0 && redisBufferWrite(nemesis->redis, &done) == REDIS_OK)
        continue;
}

static void end_busy_script(struct nemesis *nemesis)
{
    redisReply *reply = NULL;
    redisGetReply(redis_of(nemesis), (void **)&reply);
    freeReplyObject(reply);
}

static void drop_data(struct nemesis *nemesis)
{
    char folder[128], path[600];
    snprintf(folder, sizeof folder, "%s/appendonlydir", nemesis->world->dir);
    DIR *dir = opendir(folder);
    for (const struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        unlink(path);
    }
    if (dir != NULL)
        closedir(dir);
}

void nemesis_next_epoch(struct nemesis *nemesis)
{
    __atomic_add_fetch(&nemesis->table->epoch, 1, __ATOMIC_SEQ_CST);
}

static void begin_process(struct nemesis *nemesis, const struct fault *fault)
{
    static const enum wish wishes[] = { [EXIT_THREAD] = WISH_EXIT, [FORK_PROCESS] = WISH_FORK,
                                        [CANCEL_THREAD] = WISH_CANCEL };
    pid_t *pid = &nemesis->actors[fault->process];
    if (fault->kind >= EXIT_THREAD) {
        __atomic_store_n(&nemesis->table->wishes[fault->process][fault->thread], wishes[fault->kind], __ATOMIC_SEQ_CST);
    } else if (*pid != 0 && fault->kind == STOP_PROCESS) {
        world_stop(*pid);
    } else if (*pid != 0) {
        world_kill(nemesis->world, *pid);
        *pid = 0; /* the driver starts another one */
    }
}

static void end_process(struct nemesis *nemesis, const struct fault *fault)
{
    if (fault->kind == KILL_PROCESS || fault->kind == EXIT_THREAD)
        nemesis_next_epoch(nemesis);
    if (fault->kind == STOP_PROCESS && nemesis->actors[fault->process] != 0)
        world_cont(nemesis->actors[fault->process]);
}

/* PROXY_DROP_REPLY is not among them: where many share a connection, no network loses one reply and not the next. */
static const enum proxy_fault once[] = { PROXY_CUT_REQUEST, PROXY_CUT_REPLY, PROXY_HOLD_REQUEST, PROXY_PARK_REQUEST };

static void on_proxy(struct proxy *proxy, const struct fault *fault, bool begins)
{
    switch (fault->kind) {
    case CUT_AFTER:
        proxy_cut_after(proxy, PROXY_UP, begins && fault->number % 2 == 0 ? fault->number : -1);
        proxy_cut_after(proxy, PROXY_DOWN, begins && fault->number % 2 != 0 ? fault->number : -1);
        break;
    case DELAY:
        proxy_delay(proxy, begins ? fault->number : 0);
        break;
    case DRIBBLE:
        proxy_dribble(proxy, PROXY_BOTH, begins ? 0 : -1);
        break;
    case REFUSE:
        proxy_refuse(proxy, begins);
        break;
    case STALL:
    case LOSE_REPLIES:
        if (begins)
            proxy_stall(proxy, fault->kind == STALL ? fault->number : PROXY_DOWN);
        break;
    case CUT:
        break;
    default: /* at the end none is due any more */
        proxy_once(proxy, once[fault->kind - CUT_REQUEST], begins ? fault->number : 0, NULL);
        if (!begins)
            proxy_release(proxy);
    }
    if (begins ? fault->kind == CUT || fault->kind == REFUSE : fault->kind == LOSE_REPLIES)
        proxy_cut(proxy);
    if (!begins && (fault->kind == STALL || fault->kind == LOSE_REPLIES))
        proxy_resume(proxy);
}

static void on_network(struct nemesis *nemesis, const struct fault *fault, bool begins)
{
    for (int i = 0; i < nemesis->table->processes; i++)
        if (fault->process == EVERYBODY || fault->process == i)
            on_proxy(nemesis->proxies[i], fault, begins);
}

/* What is ordered at the beginning, and at the end; some do more. */
static const struct orders {
    const char *begin, *end;
} orders[FAULT_KINDS] = {
    [FLUSH_DATA] = { "FLUSHALL", NULL },
    [KILL_CLIENTS] = { "CLIENT KILL TYPE normal", NULL },
    [KILL_LISTENERS] = { "CLIENT KILL TYPE pubsub", NULL },
    [FLUSH_SCRIPTS] = { "SCRIPT FLUSH", NULL },
    [NO_MEMORY] = { "CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0" },
    [READ_ONLY] = { "REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE" },
    [FEW_CLIENTS] = { "CONFIG SET maxclients 2", "CONFIG SET maxclients 10000" },
};

static void begin_server(struct nemesis *nemesis, const struct fault *fault)
{
    char ms[16];
    snprintf(ms, sizeof ms, "%d", fault->length_ms);
    if (fault_loses_data(fault))
        nemesis_next_epoch(nemesis);
    if (orders[fault->kind].begin != NULL)
        order(nemesis, orders[fault->kind].begin, NULL);
    switch (fault->kind) {
    case STOP_SERVER:
        world_stop_server(nemesis->world);
        break;
    case RESTART:
    case LOSE_DATA:
        world_kill_server(nemesis->world);
        if (fault->kind == LOSE_DATA)
            drop_data(nemesis);
        break;
    case PAUSE_CLIENTS:
        order(nemesis, "CLIENT PAUSE %s ALL", ms);
        break;
    case BUSY_SCRIPT:
        begin_busy_script(nemesis, fault->length_ms);
        break;
    case SMALL_BUFFERS:
        order(nemesis, "CONFIG SET client-output-buffer-limit %s", "pubsub 1 1 1");
        break;
    case FEW_CLIENTS:
        order(nemesis, "CLIENT KILL TYPE normal", NULL);
        break;
    }
}

static void end_server(struct nemesis *nemesis, const struct fault *fault)
{
    switch (fault->kind) {
    case STOP_SERVER:
        world_cont_server(nemesis->world);
        break;
    case RESTART:
    case LOSE_DATA:
        nemesis_rest(nemesis);
        world_restart_server(nemesis->world);
        break;
    case BUSY_SCRIPT:
        end_busy_script(nemesis);
        break;
    case SMALL_BUFFERS:
        order(nemesis, "CONFIG SET client-output-buffer-limit %s", "pubsub 33554432 8388608 60");
        break;
    }
    if (orders[fault->kind].end != NULL)
        order(nemesis, orders[fault->kind].end, NULL);
    if (fault_loses_data(fault))
        nemesis_next_epoch(nemesis);
}

void nemesis_begin(struct nemesis *nemesis, struct fault *fault)
{
    fault->begin_ns = now_ns();
    if (fault->kind < CUT)
        begin_process(nemesis, fault);
    else if (fault->kind < STOP_SERVER)
        on_network(nemesis, fault, true);
    else if (fault_is_failover(fault))
        servers_begin(nemesis, fault);
    else
        begin_server(nemesis, fault);
}

bool nemesis_end(struct nemesis *nemesis, struct fault *fault)
{
    if (fault_is_failover(fault) && !servers_end(nemesis, fault))
        return false;
    if (fault->kind < CUT)
        end_process(nemesis, fault);
    else if (fault->kind < STOP_SERVER)
        on_network(nemesis, fault, false);
    else if (!fault_is_failover(fault))
        end_server(nemesis, fault);
    fault->end_ns = now_ns();
    return true;
}
