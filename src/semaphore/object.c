/* SPDX-License-Identifier: MIT */
/* object.c - the keys and the channel of a semaphore, and its handle */
#include "semaphore/semaphore.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(lk_sem_t) == 8 * sizeof(void *), "ABI");

enum { VALUE = 2 }; /* which spare word of a handle has the value to begin with */

static void sem_stop(struct lk__object *object)
{
    lk__redissonwake_stop(&LK__CONTAINER(object, struct lk__sem, object)->redisson);
}

static void sem_free(struct lk__object *object)
{
    struct lk__sem *sem = LK__CONTAINER(object, struct lk__sem, object);
    lk__redissonwake_destroy(&sem->redisson);
    lk__slots_destroy(&sem->slots);
    lk__block_unref(&sem->block->block);
    lk__free(sem);
}

static const struct lk__kind kind = { .stop = sem_stop, .free = sem_free };

/* "<prefix>:{<full>}" at `*at`, which is moved behind it. */
static const char *add_key(char **at, const char *prefix, const char *full)
{
    const char *key = *at;
    *at += lk__key_ours(*at, prefix, full) + 1;
    return key;
}

/* The keys and channels, one after the other. */
static void write_keys(struct lk__sem *sem, const char *full, const char *end)
{
    struct lk__semaphore_keys *keys = &sem->block->keys;
    char *at = sem->block->strings;
    if (sem->leased) {
        keys->permits = add_key(&at, "latchkey:permits", full);
        keys->total = add_key(&at, "latchkey:total", full);
    } else {
        keys->name = at;
        at += sprintf(at, "%s", full) + 1;
        keys->claims = add_key(&at, "latchkey:claims", full);
    }
    keys->queue = add_key(&at, sem->leased ? "latchkey:queue:permits" : "latchkey:queue:sem", full);
    keys->seen = add_key(&at, sem->leased ? "latchkey:seen:permits" : "latchkey:seen:sem", full);
    keys->once = add_key(&at, "latchkey:once", full);
    sem->block->channel = at;
    at += lk__key_redisson(at, "redisson_sc", full) + 1;
    sem->beside = at;
    at += sprintf(at, LK__BESIDE "%s", sem->block->channel) + 1;
    assert(at <= end);
    (void)end;
}

static int make_block(struct lk__sem *sem, const struct lk__options *options, const char *full)
{
    size_t room = 7 * (strlen(full) + 64);
    struct lk__semblock *block = sem->block = lk__alloc(sizeof *block + room);
    if (block == NULL)
        return ENOMEM;
    block->block.refs = 1;
    write_keys(sem, full, block->strings + room);
    lk__handover_init(&sem->terms, options, sem->leased);
    sem->flags = options->redisson ? LK__SEMAPHORE_SHARED : 0;
    block->release.claim_ms = block->leave.claim_ms = block->undrain.claim_ms = sem->terms.claim_ms;
    block->leave.channel = block->undrain.channel = block->channel;
    block->leave.flags = block->undrain.flags = sem->flags;
    return 0;
}

static struct lk__object *make(lk_client_t *client, const char *full, bool leased)
{
    struct lk__sem *sem = lk__alloc(sizeof *sem);
    if (sem != NULL)
        sem->leased = leased;
    if (sem == NULL || make_block(sem, client->options, full) != 0) {
        lk__free(sem);
        return NULL;
    }
    sem->slots.letter = leased ? 'p' : 's';
    sem->object.block = &sem->block->block;
    sem->object.kind = &kind;
    /* one asks, its script serves all */
    lk__redissonwake_init(&sem->redisson, client, sem->block->channel, sem->beside, false);
    return &sem->object;
}

static struct lk__object *make_counted(lk_client_t *client, const char *full, int fair, bool robust)
{
    (void)fair, (void)robust;
    return make(client, full, false);
}

static struct lk__object *make_leased(lk_client_t *client, const char *full, int fair, bool robust)
{
    (void)fair, (void)robust;
    return make(client, full, true);
}

static void traits(const void *checked, int *fair, bool *robust)
{
    (void)checked;
    *fair = 0;
    *robust = false;
}

static const struct lk__handletype leased_type = {
    .kind = LK_KIND_PERMITS,
    .attr_size = sizeof(lk_semattr_t),
    .commands = lk__lua_semaphore_commands,
    .make = make_leased,
    .check = lk__semattr_check,
    .traits = traits,
};

static const struct lk__handletype *variant(const void *checked);

static const struct lk__handletype counted_type = {
    .kind = LK_KIND_SEM,
    .attr_size = sizeof(lk_semattr_t),
    .commands = lk__lua_semaphore_commands,
    .make = make_counted,
    .check = lk__semattr_check,
    .traits = traits,
    .variant = variant,
};

static const struct lk__handletype *variant(const void *checked)
{
    const lk_semattr_t *attr = checked;
    return attr->leased ? &leased_type : &counted_type;
}

static struct lk__handle shell_of(lk_sem_t *s)
{
    return (struct lk__handle){ &s->lk_name, (const void **)&s->lk_attr, &s->lk_impl, &s->lk_process, s->lk_spare };
}

int lk__sem_enter(lk_sem_t *s, struct lk__semcall *call)
{
    return lk__sem_enterby(s, LK__NEVER, call);
}

int lk__sem_enterby(lk_sem_t *s, int64_t limit_us, struct lk__semcall *call)
{
    if (s == NULL)
        return lk__fail(EINVAL, "no semaphore was given");
    int rc = lk__op_enterby(&call->op, shell_of(s), &counted_type, limit_us);
    if (rc != 0)
        return rc;
    call->sem = LK__CONTAINER(call->op.object, struct lk__sem, object);
    call->what = call->op.object->what;
    call->attr = call->op.attr;
    call->value = (int64_t)s->lk_spare[VALUE];
    rc = lk__sem_valuecheck(call->attr, s->lk_spare[VALUE]);
    return rc == 0 ? 0 : lk__sem_leave(call, rc);
}

int lk__sem_leave(const struct lk__semcall *call, int code)
{
    return lk__op_leave(&call->op, code);
}

bool lk__sem_isinherited(lk_sem_t *s)
{
    return s != NULL && lk__handle_isinherited(shell_of(s)) && lk__handle_isreadable(shell_of(s)) &&
           s->lk_attr != NULL && s->lk_attr->leased;
}

int lk__sem_once(const struct lk__semcall *call, struct lk__idempotent *once, enum lk__verdict *verdict)
{
    once->block = &call->sem->block->block;
    once->command.keys = once->undone.keys = &call->sem->block->keys;
    return lk__idempotent(&call->op, &call->sem->slots, once, verdict);
}

int lk_sem_init(lk_sem_t *s, lk_client_t *client, const char *name, unsigned value, const lk_semattr_t *attr)
{
    lk_semattr_t checked = { 0 };
    if (s == NULL)
        return lk__fail(EINVAL, "lk_sem_init: no semaphore was given");
    struct lk__apistate api = lk__api_enter();
    int rc = lk__semattr_check(&checked, attr);
    if (rc == 0)
        rc = lk__sem_valuecheck(&checked, value);
    if (rc == 0)
        rc = lk__handle_init(shell_of(s), &counted_type, client, name, attr);
    if (rc == 0)
        s->lk_spare[VALUE] = value;
    return lk__api_leave(&api, rc);
}

int lk_sem_destroy(lk_sem_t *s)
{
    if (s == NULL)
        return lk__fail(EINVAL, "lk_sem_destroy: no semaphore was given");
    struct lk__apistate api = lk__api_enter();
    return lk__api_leave(&api, lk__handle_destroy(shell_of(s)));
}
