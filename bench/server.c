/* SPDX-License-Identifier: MIT */
#include "server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Time on a processor, ns; the file's first number. */
static int64_t cpu_of(pid_t server)
{
    char path[64];
    long long ns = 0;
    snprintf(path, sizeof path, "/proc/%d/schedstat", (int)server);
    FILE *file = fopen(path, "r");
    if (file == NULL || fscanf(file, "%lld", &ns) != 1) {
        perror(path);
        exit(1);
    }
    fclose(file);
    return ns;
}

static bool runs_a_script(const char *command)
{
    return strncmp(command, "eval", 4) == 0 || strncmp(command, "fcall", 5) == 0;
}

/* Of commands that no script sends, so each came from outside. */
static bool comes_from_outside(const char *command)
{
    static const char *const names[] = { "ping:",      "echo:",        "hello:", "role:", "client|setname:",
                                         "subscribe:", "unsubscribe:", "blpop:", NULL };
    for (int i = 0; names[i] != NULL; i++)
        if (strncmp(command, names[i], strlen(names[i])) == 0)
            return true;
    return runs_a_script(command);
}

/* Add one line: cmdstat_evalsha:calls=7,usec=160,... */
static void add_command(struct server_cost *cost, const char *line)
{
    const char *calls = strstr(line, "calls="), *usec = strstr(line, "usec=");
    const char *name = line + strlen("cmdstat_");
    if (calls == NULL || usec == NULL || strncmp(name, "info", 4) == 0)
        return;
    int64_t count = strtoll(calls + strlen("calls="), NULL, 10);
    cost->commands += count;
    if (comes_from_outside(name))
        cost->asked += count;
    if (runs_a_script(name)) {
        cost->scripts += count;
        cost->script_us += strtoll(usec + strlen("usec="), NULL, 10);
    }
}

static void add_commands(struct server_cost *cost, struct wire *wire)
{
    struct wire_reply reply = wire_ask(wire, WORDS("INFO", "commandstats"));
    char *text = strndup(reply.bytes, reply.length), *rest = NULL;
    for (char *line = strtok_r(text, "\r\n", &rest); line != NULL; line = strtok_r(NULL, "\r\n", &rest))
        if (strncmp(line, "cmdstat_", 8) == 0)
            add_command(cost, line);
    free(text);
}

struct server_cost server_cost(struct wire *wire, pid_t server)
{
    struct server_cost cost = { 0 };
    add_commands(&cost, wire);
    cost.cpu_ns = cpu_of(server);
    return cost;
}

struct server_cost server_spent(struct wire *wire, pid_t server, struct server_cost since)
{
    struct server_cost cost = { .cpu_ns = cpu_of(server) };
    add_commands(&cost, wire);
    cost.cpu_ns -= since.cpu_ns;
    cost.script_us -= since.script_us;
    cost.scripts -= since.scripts;
    cost.asked -= since.asked;
    cost.commands -= since.commands;
    return cost;
}
