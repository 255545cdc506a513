/* SPDX-License-Identifier: MIT */
/*
 * record.h - the commands of a pair as the library sends them, to be sent again without the library
 *
 * They are heard by MONITOR, so they are the very scripts and arguments, whatever these become. What differs between
 * two pairs is a number that counts on: the replay counts on as well, from where the library stopped. A deadline is
 * set to a time that no bench reaches.
 */
#ifndef BENCH_RECORD_H
#define BENCH_RECORD_H

#include "measure.h"
#include "subject.h"
#include "wire.h"

struct record;

/* Take and give one of that kind a few times, listening. `client` has to stay open while the record is used. */
struct record *record_pair(const struct place *place, lk_client_t *client, const struct subject_kind *kind);
void record_free(struct record *record);

/* Append a take and a give of the object `name`; `turn` counts the pairs of that name, from 0. */
void record_take(const struct record *record, struct wire_out *out, const char *name, int64_t turn);
void record_give(const struct record *record, struct wire_out *out, const char *name, int64_t turn);

/* Send a take, wait for the answer, send the give, wait: what a blocking connection does. Checks the answers. */
void record_run(const struct record *record, struct wire *wire, const char *name, int64_t turn);

/* The answers of a take and of a give in order; ends the program if nothing was taken or given. */
void record_check(const struct record *record, struct wire *wire);

#endif
