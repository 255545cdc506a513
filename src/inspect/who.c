/* SPDX-License-Identifier: MIT */
/*
 * who.c - who a client is, in the words that it said of itself: see client/describe.c
 *
 * Whoever may write the key may write anything. So that is read as words of a client or not at all, and made printable
 * once more.
 */
#include "client/describe.h"
#include "client/scripts.h"
#include "config/json.h"
#include "config/name.h"
#include "inspect/inspect.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MOST = 4000 /* of ours are fewer */ };

/* --- words -------------------------------------------------------------------------------------------------------- */

/* Keys of a later version are passed over. */
static void take(lk_who_t *who, const char *key, const struct lk__jsonvalue *value)
{
    const struct {
        const char *key;
        char *text;
        size_t size;
    } fields[] = { { "host", who->host, sizeof who->host },
                   { "program", who->program, sizeof who->program },
                   { "arguments", who->arguments, sizeof who->arguments },
                   { "why", who->why, sizeof who->why } };
    long long pid = value->form == '0' ? strtoll(value->text, NULL, 10) : 0;
    if (strcmp(key, "pid") == 0)
        who->pid = pid > 0 && pid <= LONG_MAX ? (long)pid : 0;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (value->form == '"' && strcmp(key, fields[i].key) == 0)
            lk__name_print(fields[i].text, fields[i].size, value->text, strlen(value->text));
}

/* False: these are no words of a client. They are decoded where they stand. */
static bool read_words(lk_who_t *who, char *words)
{
    struct lk__json json = { .at = words, .end = words + strlen(words), .line = 1 };
    struct lk__jsonvalue value;
    const char *key;
    if (!lk__json_skip(&json, '{'))
        return false;
    if (lk__json_skip(&json, '}'))
        return lk__json_ended(&json);
    do {
        if (lk__json_key(&json, &key) == 0 || !lk__json_value(&json, &value))
            return false;
        take(who, key, &value);
    } while (lk__json_skip(&json, ','));
    return lk__json_skip(&json, '}') && lk__json_ended(&json);
}

/* --- at the server ------------------------------------------------------------------------------------------------ */

/* `place`: of a quorum, which of its servers. */
static int ask_with(struct lk__reply *reply, lk_client_t *client, const char *id, unsigned place, lk_who_t *who)
{
    char key[LK__WHO_KEY];
    struct lk__client_who_reply said;
    lk__who_key(key, id);
    const struct lk__client_keys keys = { .who = key };
    const struct lk__client_who_args args = { .most = WORDS_MOST };
    const struct lk__command command = {
        .script = &lk__lua_client_who, .keys = &keys, .args = &args, .place = place
    };
    struct lk__call call = { .node = &client->node, .what = "lk_inspect_who", .command = &command, .reply = reply };
    int rc = lk__call_run(&call);
    if (rc != 0)
        return rc;
    lk__client_who_read(reply, &said);
    if (said.verdict == LK__ABSENT)
        return lk__fail(ENOENT, "lk_inspect_who: the client of %.64s says nothing of itself, or is gone", id);
    return read_words(who, (char *)said.words)
               ? 0
               : lk__fail(EPROTO, "lk_inspect_who: at %s is nothing that a client says", key);
}

/* The words of a client are too long for a small stack. */
static int ask_one(lk_client_t *client, const char *id, unsigned place, lk_who_t *who)
{
    struct {
        struct lk__reply reply;
        struct lk__value values[LK__REPLY_MAX];
        char text[WORDS_MOST + 64];
    } *room = lk__alloc(sizeof *room);
    if (room == NULL)
        return lk__fail(ENOMEM, "lk_inspect_who: out of memory");
    lk__reply_in(&room->reply, room->values, LK__REPLY_MAX, room->text, sizeof room->text);
    int rc = ask_with(&room->reply, client, id, place, who);
    lk__free(room);
    return rc;
}

/* A client tells all servers of a quorum: the first that knows is believed, and that none does is so if all say it. */
static int ask_all(lk_client_t *client, const char *id, lk_who_t *who)
{
    int rc = ENOENT, failed = 0;
    for (unsigned n = 0; rc != 0 && rc != ECANCELED && lk__node_nth(&client->node, n) != NULL; n++) {
        rc = lk__client_stay(client, "lk_inspect_who");
        if (rc == 0)
            rc = ask_one(client, id, n + 1, who);
        if (rc != 0 && rc != ENOENT)
            failed = rc;
    }
    if (rc == ENOENT && failed != 0)
        rc = lk__fail(failed, "lk_inspect_who: a server of the quorum does not answer, and no other knows %.64s", id);
    return rc;
}

static int ask(lk_client_t *client, const char *id, lk_who_t *who)
{
    if (client->options->quorum)
        return ask_all(client, id, who);
    int rc = lk__client_stay(client, "lk_inspect_who");
    return rc == 0 ? ask_one(client, id, 0, who) : rc;
}

/* --- the call ----------------------------------------------------------------------------------------------------- */

/* An id of ours begins with that of its client: hex digits. */
static bool has_client(const char *id)
{
    return strspn(id, "0123456789abcdef") == LK__ID_LENGTH && (id[LK__ID_LENGTH] == ':' || id[LK__ID_LENGTH] == '\0');
}

int lk_inspect_who(lk_client_t *client, const char *id, lk_who_t *who)
{
    struct lk__apistate api = lk__api_enter();
    lk_who_t found = LK_WHO_INIT;
    int rc = lk__sized_check(who, LK__THROUGH(lk_who_t, why), "lk_who_t");
    if (rc == 0 && id == NULL)
        rc = lk__fail(EINVAL, "lk_inspect_who: no id was given");
    if (rc == 0)
        rc = lk__client_enter(client);
    if (rc == 0) {
        rc = has_client(id) ? ask(client, id, &found)
                            : lk__fail(ENOENT, "lk_inspect_who: no client of this library has an id as %.64s", id);
        lk__client_leave(client);
    }
    if (rc == 0)
        lk__sized_write(who, &found, sizeof found);
    return lk__api_leave(&api, rc);
}
