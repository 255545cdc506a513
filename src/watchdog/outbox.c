/* SPDX-License-Identifier: MIT */
/*
 * outbox.c - commands that are resent until they are answered or past their end
 *
 * Guards: dog->mu, all of it. A reference is dropped without that lock, as the last one takes it.
 *
 * The hard case: a command that undoes a request whose copies may still come. One answer says nothing then: the
 * command is sent once more when the server's clock has passed the deadline of those copies, and only what is
 * answered from then on counts. A clock that is known badly makes that deadline late, so the command is sent after
 * each command timeout, too.
 */
#include "watchdog/watchdog.h"

#include <string.h>

/* --- entries alone in their memory -------------------------------------------------------------------------------- */

/* All are of one size, so that the memory of one serves the next. */
struct lone {
    struct lk__outboxentry entry;
    struct lk__watchdog *dog;
    union {
        max_align_t aligned;
        unsigned char bytes[LK__OUTBOX_ARGS];
    } args; /* of the command, copied */
    char id[LK__OWNER_ID];
};

static void free_lone(struct lk__outboxentry *entry)
{
    struct lone *lone = LK__CONTAINER(entry, struct lone, entry);
    assert(!entry->pending && !entry->inflight && !lk__timer_isset(&entry->timer));
    lk__block_unref(entry->block);
    lk__watchdog_free(lone->dog, lone, sizeof *lone);
}

struct lk__outboxentry *lk__outboxentry_new(struct lk__watchdog *dog, const char *id, struct lk__block *block)
{
    if (lk__watchdog_start(dog) != 0)
        return NULL;
    struct lone *lone = lk__watchdog_alloc(dog, sizeof *lone);
    if (lone == NULL) {
        lk__fail(ENOMEM, "out of memory for a request");
        return NULL;
    }
    assert(strlen(id) < sizeof lone->id);
    lone->dog = dog;
    lone->entry.refs = 1;
    lone->entry.free = free_lone;
    lone->entry.block = lk__block_ref(block);
    lone->entry.id = strcpy(lone->id, id);
    return &lone->entry;
}

void lk__outboxentry_set(struct lk__outboxentry *entry, const struct lk__command *command, size_t args_size)
{
    struct lone *lone = LK__CONTAINER(entry, struct lone, entry);
    assert(args_size <= sizeof lone->args);
    entry->command = *command;
    entry->command.args = command->script != NULL ? memcpy(lone->args.bytes, command->args, args_size) : NULL;
}

/* --- the outbox --------------------------------------------------------------------------------------------------- */

void lk__outbox_init(struct lk__outbox *outbox)
{
    lk__cond_init(&outbox->answered);
}

void lk__outbox_destroy(struct lk__outbox *outbox)
{
    assert(lk__heap_first(&outbox->heap) == NULL);
    pthread_cond_destroy(&outbox->answered);
}

struct lk__sent lk__outboxentry_sent(const struct lk__outboxentry *entry)
{
    struct lk__sent sent = { .id = entry->id, .nth = entry->nth, .flags = entry->flags };
    if (entry->dating == LK__DEADLINE) {
        sent.deadline_us = entry->until.date.us;
        sent.deadline_here_us = entry->until.here_us;
    } else if (entry->dating == LK__KEEP) {
        sent.keep_until_us = entry->until.date.us;
        sent.keep_here_us = entry->until.here_us;
    }
    sent.epoch = entry->dating != LK__UNDATED ? entry->until.date.epoch : 0;
    return sent;
}

void lk__outbox_add(struct lk__watchdog *dog, struct lk__outboxentry *entry, int64_t end_us)
{
    assert(lk__mu_held(&dog->mu));
    if (dog->stopping)
        return;
    if (!entry->pending) {
        lk__outboxentry_ref(entry);
        dog->outbox.pending += !entry->unawaited;
    }
    entry->pending = true;
    entry->end_us = end_us;
    if (!entry->inflight)
        lk__heap_set(&dog->outbox.heap, &entry->timer, 0);
    lk__watchdog_wake(dog);
}

void lk__outbox_send(struct lk__watchdog *dog, struct lk__outboxentry *entry, int64_t end_us)
{
    lk__watchdog_lock(dog);
    lk__outbox_add(dog, entry, end_us);
    lk__mu_unlock(&dog->mu);
}

void lk__outbox_addunawaited(struct lk__watchdog *dog, struct lk__outboxentry *entry, int64_t end_us)
{
    assert(lk__mu_held(&dog->mu));
    if (entry->pending)
        return;
    entry->unawaited = true;
    lk__outbox_add(dog, entry, end_us);
}

void lk__outbox_handon(struct lk__watchdog *dog, struct lk__outboxentry *entry, int64_t end_us)
{
    lk__watchdog_lock(dog);
    lk__outbox_addunawaited(dog, entry, end_us);
    lk__mu_unlock(&dog->mu);
}

void lk__outbox_settle(struct lk__watchdog *dog, int64_t until_us)
{
    lk__watchdog_lock(dog);
    while (dog->outbox.pending > 0 && lk__cond_wait(&dog->outbox.answered, &dog->mu, until_us) != ETIMEDOUT)
        ;
    lk__mu_unlock(&dog->mu);
}

/* Under dog->mu, left and taken again: take the entry out of the outbox. */
static void end(struct lk__watchdog *dog, struct lk__outboxentry *entry)
{
    assert(lk__mu_held(&dog->mu));
    entry->pending = false;
    lk__heap_remove(&dog->outbox.heap, &entry->timer);
    dog->outbox.pending -= !entry->unawaited;
    pthread_cond_broadcast(&dog->outbox.answered);
    lk__mu_unlock(&dog->mu);
    lk__outboxentry_unref(entry);
    lk__watchdog_locklast(dog);
}

/* Nobody waits for the entry any more. */
static void unawait(struct lk__watchdog *dog, struct lk__outboxentry *entry)
{
    assert(lk__mu_held(&dog->mu));
    dog->outbox.pending -= !entry->unawaited;
    entry->unawaited = true;
    pthread_cond_broadcast(&dog->outbox.answered);
}

/* A place in a queue lasts as long as its client asks for others, and no longer than the queue without anybody. */
enum { PLACE_S = 3600 };

/* Its time is over. */
static void give_up(struct lk__watchdog *dog, struct lk__outboxentry *entry)
{
    if (!entry->placed) {
        end(dog, entry);
        return;
    }
    entry->placed = false;
    entry->end_us += PLACE_S * INT64_C(1000000);
    unawait(dog, entry);
}

static struct lk__node *node_of(const struct lk__watchdog *dog, const struct lk__outboxentry *entry)
{
    return lk__node_for(dog->node, &entry->command, entry->manner == LK__BY_ASKING);
}

/* An entry that is not sent now is tried again a little later. */
static void send_it(struct lk__watchdog *dog, struct lk__outboxentry *entry, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__inflight *inflight = lk__window_slot(dog, entry->manner);
    struct lk__sent sent = lk__outboxentry_sent(entry);
    inflight->entry = entry;
    entry->inflight = lk__window_send(dog, node_of(dog, entry), inflight, &entry->command, &sent) == 0;
    entry->manner = LK__BY_SHA1;
    if (entry->inflight)
        lk__heap_remove(&dog->outbox.heap, &entry->timer);
    else
        lk__heap_set(&dog->outbox.heap, &entry->timer, lk__window_retryat(dog, now_us));
}

bool lk__outbox_isheldup(struct lk__watchdog *dog)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__timer *timer = lk__heap_first(&dog->outbox.heap);
    return timer == NULL || lk__window_isfull(dog, node_of(dog, LK__CONTAINER(timer, struct lk__outboxentry, timer)));
}

void lk__outbox_serve(struct lk__watchdog *dog, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__timer *timer;
    while ((timer = lk__heap_first(&dog->outbox.heap)) != NULL && timer->due_us <= now_us) {
        struct lk__outboxentry *entry = LK__CONTAINER(timer, struct lk__outboxentry, timer);
        if (now_us >= entry->end_us)
            give_up(dog, entry);
        else if (!lk__window_isfull(dog, node_of(dog, entry)))
            send_it(dog, entry, now_us);
        else if (dog->node->cluster == NULL)
            break;
        else /* its node of several has too much to answer; others are not to wait for that */
            lk__heap_set(&dog->outbox.heap, &entry->timer, lk__window_retryat(dog, now_us));
    }
}

/*
 * It was answered, and by the server's clock a copy of what it undoes may still come. By ours none can, unless that clock
 * went back: it is sent again, and nobody waits for it any more.
 */
static int64_t past_copies(struct lk__watchdog *dog, struct lk__outboxentry *entry, struct lk__date date, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    int64_t left_us = lk__until_left(&entry->past, date, now_us), here_us = entry->past.here_us - now_us;
    int64_t command_us = dog->options->command_timeout_ms * 1000;
    if (here_us <= 0)
        unawait(dog, entry);
    if (here_us > 0 && here_us < left_us)
        left_us = here_us;
    if (here_us > 0 && command_us < left_us)
        left_us = command_us;
    return now_us + left_us + 1000;
}

/* When to send the entry again; LK__NEVER: its answer counts. */
static int64_t again_at(struct lk__watchdog *dog, const struct lk__inflight *inflight, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__outboxentry *entry = inflight->entry;
    struct lk__date date = { inflight->request.answer.server_us, inflight->request.epoch };
    if (inflight->request.judged.ruling != LK__ANSWER) {
        entry->manner = inflight->request.manner;
        return lk__inflight_againat(dog, inflight, now_us);
    }
    if (lk__until_isover(&entry->past, date, now_us))
        return LK__NEVER;
    return past_copies(dog, entry, date, now_us);
}

void lk__outbox_over(struct lk__watchdog *dog, const struct lk__inflight *inflight, int64_t now_us)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__outboxentry *entry = inflight->entry;
    int64_t again_us = again_at(dog, inflight, now_us);
    entry->inflight = false;
    if (again_us == LK__NEVER)
        end(dog, entry);
    else
        lk__heap_set(&dog->outbox.heap, &entry->timer, again_us);
}

bool lk__outbox_stop(struct lk__watchdog *dog)
{
    assert(lk__mu_held(&dog->mu));
    struct lk__timer *timer = lk__heap_first(&dog->outbox.heap);
    bool clean = dog->outbox.pending == 0;
    while (timer != NULL) {
        end(dog, LK__CONTAINER(timer, struct lk__outboxentry, timer));
        timer = lk__heap_first(&dog->outbox.heap);
    }
    return clean;
}
