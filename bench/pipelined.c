/* SPDX-License-Identifier: MIT */
/*
 * pipelined.c - what an uncontended pair costs the server: its processor time with 64 commands in flight, when system
 * calls weigh little and scripts are what is left
 *
 *   pipelined.us.<kind>        server's processor time of a pair of each primitive
 *   pipelined.us.redisson      of Redisson's fenced lock with its unlock latch
 *   pipelined.us.ping          of two PINGs
 *   pipelined.commands.<kind>  commands of a pair, those inside the scripts as well
 */
#include "measure.h"
#include "record.h"
#include "redisson.h"
#include "server.h"
#include "subject.h"
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>

enum { PAIRS_IN_FLIGHT = 32 };

/* What a batch consists of. */
struct source {
    const char *name;
    void (*put)(struct source *source, struct wire_out *out); /* append one pair */
    int replies;                                              /* to a pair */
    const struct record *record;
    char object[32]; /* its name in the replay */
    struct redisson lock;
    int64_t turn;
};

static void put_pings(struct source *source, struct wire_out *out)
{
    (void)source;
    wire_put(out, WORDS("PING"));
    wire_put(out, WORDS("PING"));
}

static void put_record(struct source *source, struct wire_out *out)
{
    record_take(source->record, out, source->object, source->turn);
    record_give(source->record, out, source->object, source->turn);
    source->turn++;
}

static void put_redisson(struct source *source, struct wire_out *out)
{
    redisson_put_take(&source->lock, out);
    redisson_put_give(&source->lock, out);
    redisson_put_forget(&source->lock, out);
}

static void run_batch(struct source *source, struct wire *wire, struct wire_out *out)
{
    out->length = 0;
    for (int i = 0; i < PAIRS_IN_FLIGHT; i++)
        source->put(source, out);
    wire_send(wire, out);
    for (int i = 0; i < PAIRS_IN_FLIGHT; i++)
        if (source->record != NULL)
            record_check(source->record, wire);
        else
            for (int k = 0; k < source->replies; k++)
                wire_read(wire);
}

static void measure(const struct place *place, struct source *source)
{
    struct wire *wire = wire_open(place->address), *asking = wire_open(place->address);
    struct wire_out out = { 0 };
    int64_t pairs = 0;
    run_batch(source, wire, &out);
    struct server_cost before = server_cost(asking, place->server);
    for (int64_t end = now_ns() + place->ms * 1000000; now_ns() < end; pairs += PAIRS_IN_FLIGHT)
        run_batch(source, wire, &out);
    struct server_cost spent = server_spent(asking, place->server, before);
    tell((double)spent.cpu_ns / 1e3 / (double)pairs, "pipelined.us.%s", source->name);
    tell((double)spent.commands / (double)pairs, "pipelined.commands.%s", source->name);
    free(out.bytes);
    wire_close(asking);
    wire_close(wire);
}

static void measure_kind(const struct place *place, lk_client_t *client, const struct subject_kind *kind)
{
    struct record *record = record_pair(place, client, kind);
    struct source source = { .name = kind->name, .put = put_record, .record = record };
    snprintf(source.object, sizeof source.object, "piped-%s", kind->name);
    measure(place, &source);
    record_free(record);
}

int main(int argc, char **argv)
{
    struct place place;
    lk_client_t *client;
    place_read(&place, argc, argv, "");
    if (lk_client_open(&client, place.url) != 0)
        fail(place.url);
    struct source pings = { .name = "ping", .put = put_pings, .replies = 2 };
    struct source redisson = { .name = "redisson", .put = put_redisson, .replies = 3 };
    struct wire *wire = wire_open(place.address);
    redisson_init(&redisson.lock, wire, "piped-java", 1);
    wire_close(wire);

    measure(&place, &pings);
    measure(&place, &redisson);
    for (const struct subject_kind *kind = subject_kinds; kind->name != NULL; kind++)
        measure_kind(&place, client, kind);
    return lk_client_close(client);
}
