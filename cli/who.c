/* SPDX-License-Identifier: MIT */
#include "who.h"
#include "found.h"
#include "look.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int ask_who(lk_client_t *client, const char *id, lk_who_t *who)
{
    *who = (lk_who_t)LK_WHO_INIT;
    int rc = id[0] != 0 ? lk_inspect_who(client, id, who) : ENOENT;
    return rc == EPROTO ? ENOENT : rc; /* what stands there was not said by a client */
}

static void add(struct people *people, lk_client_t *client, unsigned place, const char *id)
{
    struct person *person = &people->person[place];
    snprintf(person->id, sizeof person->id, "%s", id);
    person->known = ask_who(client, id, &person->who) == 0;
    make_printable(person->id);
}

static int kind_number(const char *kind)
{
    return strcmp(kind, "mutex") == 0 ? LK_KIND_MUTEX : strcmp(kind, "rwlock") == 0 ? LK_KIND_RWLOCK : LK_KIND_PERMITS;
}

int ask_holders(lk_client_t *client, const char *kind, const char *name, struct people *people)
{
    lk_holder_t holders[PEOPLE_MAX];
    people->count = 0;
    int rc = lk_inspect_holders(client, kind_number(kind), name, holders, sizeof *holders, PEOPLE_MAX, &people->count);
    for (unsigned i = 0; rc == 0 && i < people->count && i < PEOPLE_MAX; i++)
        add(people, client, i, holders[i].id);
    return rc;
}

int ask_waiters(lk_client_t *client, const char *kind, const char *name, struct people *people)
{
    lk_waiter_t waiters[PEOPLE_MAX];
    people->count = 0;
    int rc = look_at_queue(client, kind, name, waiters, PEOPLE_MAX, &people->count);
    for (unsigned i = 0; rc == 0 && i < people->count && i < PEOPLE_MAX; i++)
        add(people, client, i, waiters[i].id);
    return rc;
}

/* The library says printable ASCII; whatever it is, a terminal gets no other. */
const char *who_words(char text[WHO_WORDS], const lk_who_t *who)
{
    int length = snprintf(text, WHO_WORDS, "%s:%ld", who->host, who->pid);
    if (who->program[0] != 0)
        length += snprintf(text + length, (size_t)(WHO_WORDS - length), " %s", who->program);
    if (who->arguments[0] != 0)
        length += snprintf(text + length, (size_t)(WHO_WORDS - length), " %s", who->arguments);
    if (who->why[0] != 0)
        snprintf(text + length, (size_t)(WHO_WORDS - length), " (%s)", who->why);
    make_printable(text);
    return text;
}

static void set_if_said(json_t *object, const char *key, const char *text)
{
    if (text[0] != 0)
        json_object_set_new(object, key, text_of(text));
}

json_t *who_object(const lk_who_t *who)
{
    json_t *object = json_object();
    set_if_said(object, "host", who->host);
    if (who->pid != 0)
        json_object_set_new(object, "pid", json_integer(who->pid));
    set_if_said(object, "program", who->program);
    set_if_said(object, "arguments", who->arguments);
    set_if_said(object, "why", who->why);
    return object;
}

json_t *people_array(const struct people *people)
{
    json_t *array = json_array();
    for (unsigned i = 0; i < people->count && i < PEOPLE_MAX; i++) {
        json_t *object = json_pack("{s:o}", "owner", text_of(people->person[i].id));
        if (people->person[i].known)
            json_object_set_new(object, "who", who_object(&people->person[i].who));
        json_array_append_new(array, object);
    }
    return array;
}
