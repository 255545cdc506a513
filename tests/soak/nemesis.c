/* SPDX-License-Identifier: MIT */
/*
 * nemesis.c - see nemesis.h. Each fault has a beginning and an end; its times are noted around both.
 */
#include "nemesis.h"

#include "record.h"

#include <dirent.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BUSY_SCRIPT_TEXT                                                                                               \
    "local t=redis.call('TIME') local e=t[1]*1000000+t[2]+ARGV[1]*1000 "                                               \
    "repeat t=redis.call('TIME') until t[1]*1000000+t[2]>e return 1"

static redisContext *redis_of(struct nemesis *nemesis)
{
    struct timeval patience = { 20, 0 };
    if (nemesis->redis == NULL || nemesis->redis->err != 0) {
        if (nemesis->redis != NULL)
            redisFree(nemesis->redis);
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

/* PROXY_DROP_REPLY is not among them: where many share a connection, no network loses one reply and not the next. */
static const enum proxy_fault request_faults[] = { PROXY_CUT_REQUEST, PROXY_CUT_REPLY, PROXY_HOLD_REQUEST,
                                                   PROXY_PARK_REQUEST };

static void begin_network(struct proxy *proxy, const struct fault *fault)
{
    switch (fault->kind) {
    case CUT:
        proxy_cut(proxy);
        break;
    case CUT_AFTER:
        proxy_cut_after(proxy, fault->number % 2 != 0 ? PROXY_DOWN : PROXY_UP, fault->number);
        break;
    case STALL:
        proxy_stall(proxy, fault->number);
        break;
    case LOSE_REPLIES:
        proxy_stall(proxy, PROXY_DOWN);
        break;
    case DELAY:
        proxy_delay(proxy, fault->number);
        break;
    case DRIBBLE:
        proxy_dribble(proxy, PROXY_BOTH, 0);
        break;
    case REFUSE:
        proxy_refuse(proxy, true);
        proxy_cut(proxy);
        break;
    case CUT_REQUEST:
    case CUT_REPLY:
    case HOLD_REQUEST:
    case PARK_REQUEST:
        proxy_once(proxy, request_faults[fault->kind - CUT_REQUEST], fault->number, NULL);
        break;
    }
}

static void end_network(struct proxy *proxy, const struct fault *fault)
{
    switch (fault->kind) {
    case CUT_AFTER:
        proxy_cut_after(proxy, PROXY_UP, -1);
        proxy_cut_after(proxy, PROXY_DOWN, -1);
        break;
    case STALL:
        proxy_resume(proxy);
        break;
    case LOSE_REPLIES:
        proxy_cut(proxy);
        proxy_resume(proxy);
        break;
    case DELAY:
        proxy_delay(proxy, 0);
        break;
    case DRIBBLE:
        proxy_dribble(proxy, PROXY_BOTH, -1);
        break;
    case REFUSE:
        proxy_refuse(proxy, false);
        break;
    case CUT_REQUEST:
    case CUT_REPLY:
    case HOLD_REQUEST:
    case PARK_REQUEST:
        proxy_once(proxy, PROXY_CUT_REQUEST, 0, NULL); /* none is due any more */
        proxy_release(proxy);
        break;
    }
}

static void wish(struct nemesis *nemesis, const struct fault *fault, enum wish wish)
{
    __atomic_store_n(&nemesis->table->wishes[fault->process][fault->thread], wish, __ATOMIC_SEQ_CST);
}

static void begin_process(struct nemesis *nemesis, const struct fault *fault)
{
    pid_t pid = nemesis->actors[fault->process];
    switch (fault->kind) {
    case KILL_PROCESS:
        if (pid != 0)
            world_kill(nemesis->world, pid);
        nemesis->actors[fault->process] = 0; /* the driver starts another one */
        break;
    case STOP_PROCESS:
        if (pid != 0)
            world_stop(pid);
        break;
    case EXIT_THREAD:
        wish(nemesis, fault, WISH_EXIT);
        break;
    case FORK_PROCESS:
        wish(nemesis, fault, WISH_FORK);
        break;
    case CANCEL_THREAD:
        wish(nemesis, fault, WISH_CANCEL);
        break;
    }
}

static void begin_server(struct nemesis *nemesis, const struct fault *fault)
{
    char ms[16];
    switch (fault->kind) {
    case STOP_SERVER:
        world_stop_server(nemesis->world);
        break;
    case RESTART:
        world_kill_server(nemesis->world);
        break;
    case LOSE_DATA:
        nemesis_next_epoch(nemesis);
        world_kill_server(nemesis->world);
        drop_data(nemesis);
        break;
    case FLUSH_DATA:
        nemesis_next_epoch(nemesis);
        order(nemesis, "FLUSHALL", NULL);
        break;
    case KILL_CLIENTS:
        order(nemesis, "CLIENT KILL TYPE normal", NULL);
        break;
    case KILL_LISTENERS:
        order(nemesis, "CLIENT KILL TYPE pubsub", NULL);
        break;
    case FLUSH_SCRIPTS:
        order(nemesis, "SCRIPT FLUSH", NULL);
        break;
    case PAUSE_CLIENTS:
        snprintf(ms, sizeof ms, "%d", fault->length_ms);
        order(nemesis, "CLIENT PAUSE %s ALL", ms);
        break;
    case NO_MEMORY:
        order(nemesis, "CONFIG SET maxmemory 1", NULL);
        break;
    case BUSY_SCRIPT:
        begin_busy_script(nemesis, fault->length_ms);
        break;
    case READ_ONLY:
        order(nemesis, "REPLICAOF 127.0.0.1 1", NULL);
        break;
    case SMALL_BUFFERS:
        order(nemesis, "CONFIG SET client-output-buffer-limit %s", "pubsub 1 1 1");
        break;
    case FEW_CLIENTS:
        order(nemesis, "CONFIG SET maxclients 2", NULL);
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
    case LOSE_DATA:
        nemesis_rest(nemesis);
        world_restart_server(nemesis->world);
        nemesis_next_epoch(nemesis);
        break;
    case RESTART:
        nemesis_rest(nemesis);
        world_restart_server(nemesis->world);
        break;
    case FLUSH_DATA:
        nemesis_next_epoch(nemesis);
        break;
    case NO_MEMORY:
        order(nemesis, "CONFIG SET maxmemory 0", NULL);
        break;
    case BUSY_SCRIPT:
        end_busy_script(nemesis);
        break;
    case READ_ONLY:
        order(nemesis, "REPLICAOF NO ONE", NULL);
        break;
    case SMALL_BUFFERS:
        order(nemesis, "CONFIG SET client-output-buffer-limit %s", "pubsub 33554432 8388608 60");
        break;
    case FEW_CLIENTS:
        order(nemesis, "CONFIG SET maxclients 10000", NULL);
        break;
    }
}

static void on_network(struct nemesis *nemesis, const struct fault *fault,
                       void (*does)(struct proxy *, const struct fault *))
{
    for (int i = 0; i < nemesis->table->processes; i++)
        if (fault->process == EVERYBODY || fault->process == i)
            does(nemesis->proxies[i], fault);
}

void nemesis_begin(struct nemesis *nemesis, struct fault *fault)
{
    fault->begin_ns = now_ns();
    if (fault->kind < CUT)
        begin_process(nemesis, fault);
    else if (fault->kind < STOP_SERVER)
        on_network(nemesis, fault, begin_network);
    else if (fault_is_failover(fault) && nemesis->cluster != NULL)
        nemesis_begincluster(nemesis, fault);
    else if (fault_is_failover(fault))
        nemesis_beginfailover(nemesis, fault);
    else
        begin_server(nemesis, fault);
}

bool nemesis_end(struct nemesis *nemesis, struct fault *fault)
{
    if (fault_is_failover(fault) &&
        !(nemesis->cluster != NULL ? nemesis_endcluster : nemesis_endfailover)(nemesis, fault))
        return false;
    if (fault->kind == KILL_PROCESS || fault->kind == EXIT_THREAD)
        nemesis_next_epoch(nemesis);
    if (fault->kind == STOP_PROCESS && nemesis->actors[fault->process] != 0)
        world_cont(nemesis->actors[fault->process]);
    else if (fault->kind >= CUT && fault->kind < STOP_SERVER)
        on_network(nemesis, fault, end_network);
    else if (fault->kind >= STOP_SERVER)
        end_server(nemesis, fault);
    fault->end_ns = now_ns();
    return true;
}
