/* SPDX-License-Identifier: MIT */
/*
 * force.c - `latchkey force-release`: take a name away from whoever holds it
 *
 * The mutex and the read-write lock of the name are looked at; who holds them is shown, and has to be the owner that
 * was said, if one was. The look and what follows are two requests: who takes the name in between, in a round trip, is
 * ended in place of the other.
 */
#include "client.h"
#include "found.h"
#include "look.h"
#include "who.h"
#include "words.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SHOWN_MAX = 64 };

/* A lock of the name, and who holds it. */
struct taken {
    const char *kind;
    lk_holder_t holders[SHOWN_MAX];
    unsigned count;
    struct people people; /* the first of them */
    bool unrecoverable; /* nobody has it, and nobody gets it: a robust one that was given back unrepaired */
};

struct target {
    lk_client_t *client;
    const char *name;
    struct taken mutex, rwlock;
};

static int look_at(struct target *target, struct taken *taken, int kind, const char *noun)
{
    taken->kind = noun;
    int rc = lk_inspect_holders(target->client, kind, target->name, taken->holders, sizeof *taken->holders, SHOWN_MAX,
                                &taken->count);
    if (rc == EPROTO) /* the key is of something else */
        taken->count = 0;
    for (unsigned i = 0; i < taken->count && i < SHOWN_MAX; i++)
        make_printable(taken->holders[i].id);
    return rc == EPROTO ? 0 : rc;
}

static int look_whether_usable(struct target *target)
{
    struct rows rows = { 0 };
    int rc = look_at_name(&rows, target->client, target->name);
    for (int i = 0; rc == 0 && i < rows.count; i++) {
        struct taken *taken = strcmp(rows.row[i].kind, "rwlock") == 0 ? &target->rwlock : &target->mutex;
        if (strcmp(rows.row[i].mode, "unrecoverable") == 0)
            taken->unrecoverable = true;
    }
    return rc;
}

/* Those who had it, before it is gone: whoever finds out that it is not his may end at once. */
static void meet(const struct target *target, struct taken *taken)
{
    taken->people.count = taken->count;
    for (unsigned i = 0; i < taken->count && i < PEOPLE_MAX; i++) {
        struct person *person = &taken->people.person[i];
        memcpy(person->id, taken->holders[i].id, sizeof person->id);
        person->known = ask_who(target->client, person->id, &person->who) == 0;
    }
}

/* Does an id begin with what was said, whole parts of it? */
static bool is_owner(const char *id, const char *owner)
{
    size_t length = strlen(owner);
    return strncmp(id, owner, length) == 0 && (id[length] == 0 || id[length] == ':');
}

/* Is everybody who holds it that owner? */
static bool is_all_of(const struct taken *taken, const char *owner)
{
    bool all = taken->count <= SHOWN_MAX;
    for (unsigned i = 0; i < taken->count && i < SHOWN_MAX; i++)
        all = all && is_owner(taken->holders[i].id, owner);
    return all;
}

static void show_holder(FILE *out, const struct target *target, const struct taken *taken, unsigned i)
{
    char name[LK_NAME_MAX + 1], words[WHO_WORDS];
    bool known = i < PEOPLE_MAX && taken->people.person[i].known;
    fprintf(out, "%s %s is held by %s%s%s\n", taken->kind, printable_name(name, target->name), taken->holders[i].id,
            known ? ", " : "", known ? who_words(words, &taken->people.person[i].who) : "");
}

static void show(FILE *out, const struct target *target, const struct taken *taken)
{
    char name[LK_NAME_MAX + 1];
    printable_name(name, target->name);
    if (taken->unrecoverable)
        fprintf(out, "%s %s was given back unrepaired: nobody gets it\n", taken->kind, name);
    for (unsigned i = 0; i < taken->count && i < SHOWN_MAX; i++)
        show_holder(out, target, taken, i);
    if (taken->count > SHOWN_MAX)
        fprintf(out, "%s %s is held by %u others\n", taken->kind, name, taken->count - SHOWN_MAX);
}

/* 0: go on; else an exit code, and why was said. */
static int check_owner(const struct settings *s, const struct target *target)
{
    const struct taken *both[] = { &target->mutex, &target->rwlock };
    bool unusable = target->mutex.unrecoverable || target->rwlock.unrecoverable;
    if (target->mutex.count + target->rwlock.count == 0 && (!unusable || s->owner != NULL)) {
        complain("%s: nobody holds %s", s->command->name, target->name);
        return EXIT_NO;
    }
    for (int i = 0; s->owner != NULL && i < 2; i++)
        if (!is_all_of(both[i], s->owner)) {
            complain("%s: it is not %s alone who holds %s", s->command->name, s->owner, target->name);
            show(stderr, target, both[i]);
            return EXIT_NO;
        }
    return EXIT_OK;
}

/* Ask on the terminal; who is none has said --yes. */
static int ask(const struct settings *s, const struct target *target)
{
    char line[16] = "";
    if (s->yes)
        return EXIT_OK;
    show(stderr, target, &target->mutex);
    show(stderr, target, &target->rwlock);
    if (!isatty(STDIN_FILENO)) {
        complain("%s: standard input is no terminal to ask on: say --yes", s->command->name);
        return EXIT_USE;
    }
    bool held = target->mutex.count + target->rwlock.count > 0;
    fputs(held ? "Holders go on as if they had it until their next renewal. Take it away? [y/N] "
               : "Is what it guards in order again? [y/N] ", stderr);
    bool yes = fgets(line, sizeof line, stdin) != NULL && (line[0] == 'y' || line[0] == 'Y');
    return yes ? EXIT_OK : EXIT_NO;
}

static void tell(const struct settings *s, const struct target *target, const struct taken *taken)
{
    char name[LK_NAME_MAX + 1];
    if (!s->json) {
        if (taken->unrecoverable)
            printf("%s %s is usable again\n", taken->kind, printable_name(name, target->name));
        for (unsigned i = 0; i < taken->count && i < SHOWN_MAX; i++)
            printf("%s %s was taken from %s\n", taken->kind, printable_name(name, target->name), taken->holders[i].id);
        return;
    }
    json_t *owners = json_array();
    for (unsigned i = 0; i < taken->count && i < SHOWN_MAX; i++)
        json_array_append_new(owners, json_string(taken->holders[i].id));
    json_t *object = json_pack("{s:o, s:s, s:I, s:o}", "name", text_of(target->name), "kind", taken->kind, "holders",
                               (json_int_t)taken->count, "owners", owners);
    if (taken->count > 0)
        json_object_set_new(object, "held_by", people_array(&taken->people));
    print_json(s, object);
}

static int release_mutex(const struct target *target)
{
    lk_mutex_t mutex;
    int rc = lk_mutex_init(&mutex, target->client, target->name, NULL);
    if (rc != 0)
        return rc;
    rc = lk_mutex_forceunlock(&mutex);
    lk_mutex_destroy(&mutex);
    return rc;
}

static int release_rwlock(const struct target *target)
{
    lk_rwlock_t rwlock;
    int rc = lk_rwlock_init(&rwlock, target->client, target->name, NULL);
    if (rc != 0)
        return rc;
    rc = lk_rwlock_forceunlock(&rwlock);
    lk_rwlock_destroy(&rwlock);
    return rc;
}

static int release(const struct settings *s, const struct target *target, const struct taken *taken)
{
    if (taken->count == 0 && !taken->unrecoverable)
        return EXIT_OK;
    int rc = taken == &target->mutex ? release_mutex(target) : release_rwlock(target);
    if (rc != 0)
        return complain_of(target->name, rc);
    tell(s, target, taken);
    return EXIT_OK;
}

static int take_away(const struct settings *s, struct target *target)
{
    int rc = look_at(target, &target->mutex, LK_KIND_MUTEX, "mutex");
    if (rc == 0)
        rc = look_at(target, &target->rwlock, LK_KIND_RWLOCK, "rwlock");
    if (rc == 0)
        rc = look_whether_usable(target);
    if (rc != 0)
        return complain_of(target->name, rc);
    meet(target, &target->mutex);
    meet(target, &target->rwlock);
    int code = check_owner(s, target);
    if (code == 0)
        code = ask(s, target);
    if (code == 0)
        code = release(s, target, &target->rwlock); /* in the order in which `run` gives them back */
    return code == 0 ? release(s, target, &target->mutex) : code;
}

int run_force_release(struct settings *s, int count, char **operands)
{
    struct target target = { .name = operands[0] };
    (void)count;
    int code = open_client(s, &target.client);
    if (code != 0)
        return code;
    code = take_away(s, &target);
    close_client(target.client);
    int written = flush_output();
    return code != 0 ? code : written;
}
