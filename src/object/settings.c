/* SPDX-License-Identifier: MIT */
/*
 * settings.c - settings that all who use a name should share: noticed where they do not
 *
 * Handles of one client are compared when they are bound (object.c). Clients meet at the server, in the settings mark: a
 * key with the settings, in words, of whoever used the name last. The first ask of an object brings its own, and the
 * script of the ask compares; so does the first ask half an hour after that, which keeps the mark alive as long as it
 * is in use. No other ask has anything to do with it.
 *
 * Where they differ the script does nothing else. The caller is told, and asks again to be let in all the same; then its
 * settings become the mark, so that others are told in turn: users who look at the mark only when they come would not
 * hear of those who came later. With strict=yes the caller is refused, and the mark stays. So is one whose library speaks
 * another protocol than the last user's, which is the first word of the settings.
 */
#include "object/acquire.h"

#include <stdio.h>
#include <string.h>

/*
 * Moments are counted in units of 67 s, as only some 16 bits of them are kept: an object that nobody acquired for 51 days
 * may be due half an hour late. LATELY is half of what the mark lasts, which is SETTINGS_LAST_S of cmake/scripts.py.
 */
enum { UNIT_BITS = 26, LATELY = 27, DIFFERS = 1 }; /* the last: kept instead of a moment's last bit */

static uint16_t moment(int64_t at_us)
{
    return (uint16_t)(at_us >> UNIT_BITS);
}

bool lk__settings_isdue(const struct lk__object *object, int64_t now_us)
{
    return object->kind->settings != NULL && !object->traits.anonymous &&
           (uint16_t)(moment(now_us) - atomic_load(&object->settings_seen)) >= LATELY;
}

void lk__settings_makedue(struct lk__object *object)
{
    uint16_t long_ago = (uint16_t)(moment(lk__now_us()) - LATELY),
             differs = atomic_load(&object->settings_told) & DIFFERS;
    atomic_store(&object->settings_seen, long_ago);
    atomic_store(&object->settings_told, (uint16_t)((long_ago & ~DIFFERS) | differs));
}

/* It changes with keys or scripts that libraries before cannot share: docs/protocol.md. */
#define PROTOCOL "protocol=1 "

struct lk__settingsmark lk__settings_mark(const struct lk__object *object, struct lk__settingstext *text)
{
    const struct lk__traits *traits = &object->traits;
    const char *words = object->kind->settings[2 * traits->order + traits->robust];
    lk__key_ours(text->key, object->kind->settings_key, object->member.entry.key);
    int length = snprintf(text->words, sizeof text->words, PROTOCOL "%s", words);
    if (traits->stripes > 0)
        snprintf(text->words + length, sizeof text->words - (size_t)length, " stripes=%u", (unsigned)traits->stripes);
    return (struct lk__settingsmark){ .key = text->key, .mine = text->words };
}

/*
 * Each time it is an error, but a program is told once. Threads that ask at the same time may all find that others differ,
 * and one of them late, when another one has found that they agree now: so not twice within half an hour.
 */
bool lk__settings_differ(struct lk__object *object, const char *mine, const char *found)
{
    bool strict = object->client->options->strict, foreign = strncmp(found, PROTOCOL, strlen(PROTOCOL)) != 0;
    if (foreign)
        lk__fail(EINVAL,
                 "%s: another version of Latchkey used it within the last hour, and both cannot share it: " PROTOCOL
                 "here, and %.80s there; end all programs with one of them first",
                 object->what, found);
    else if (strict)
        lk__fail(EINVAL, "%s: %s here, and %.80s where it was used within the last hour; refused by strict=yes",
                 object->what, mine, found);
    uint16_t now = moment(lk__now_us()), told = atomic_exchange(&object->settings_told, now | DIFFERS);
    if ((told & DIFFERS) || (uint16_t)(now - told) < LATELY)
        return strict || foreign;
    if (foreign)
        lk__log(LK_LOG_WARNING, "%s", lk_errortext());
    else
        lk__log(LK_LOG_WARNING,
                "%s: %s here, but others use it with %.80s; give all who use this name the same settings", object->what,
                mine, found);
    lk__events_ofobject(&object->client->events, LK_EVENT_DISAGREES, object->kind->number, lk__object_name(object), 0);
    return strict || foreign;
}

void lk__settings_note(struct lk__object *object, const struct lk__acquirefsm_result *result)
{
    if (!result->marked)
        return;
    if (!result->disagreed)
        atomic_fetch_and(&object->settings_told, (uint16_t)~DIFFERS);
    atomic_store(&object->settings_seen, moment(lk__now_us()));
}
