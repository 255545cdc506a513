/* SPDX-License-Identifier: MIT */
/*
 * replies.c - what a server sends: in whatever pieces it comes the replies are the same, small and whole;
 * as a greeting it lets nobody in who is no server; as messages it makes no grant that is none
 *
 * The first byte says how it is cut into pieces, the second what the greeting asks.
 */
#include "fuzz.h"
#include "acquire/acquire.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BYTES_MAX = 16 * 1024, REPLIES_MAX = BYTES_MAX / 4, PATIENCE_US = 60000000 };

#define OWNER "0123456789abcdef0123456789abcdef:7:1"

/* --- a stream and the server's end of it ------------------------------------------------------------------- */

static int listener = -1;
static struct sockaddr_un name = { .sun_family = AF_UNIX };
static struct addrinfo address = { .ai_family = AF_UNIX, .ai_addr = (struct sockaddr *)&name };

/* A listening socket without a file: the kernel picks the name. */
static void listen_somewhere(void)
{
    address.ai_addrlen = sizeof name;
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    require(listener >= 0 && bind(listener, (struct sockaddr *)&name, sizeof name.sun_family) == 0);
    require(getsockname(listener, (struct sockaddr *)&name, &address.ai_addrlen) == 0 && listen(listener, 1) == 0);
}

static struct lk__stream *open_stream(int *peer)
{
    static const struct lk__options options;
    struct lk__stream *stream;
    if (listener < 0)
        listen_somewhere();
    require(lk__stream_connect(&stream, &options, &address, lk__now_us() + PATIENCE_US, -1) == 0);
    *peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    require(*peer >= 0);
    return stream;
}

/* --- replies -------------------------------------------------------------------------------------------------- */

/* What a reply was, in one number. */
static uint64_t mix(uint64_t sum, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ at[i]) * 0x100000001b3u;
    return sum;
}

static uint64_t drawn(const struct lk__reply *reply)
{
    uint64_t sum = mix(0xcbf29ce484222325u, &reply->type, sizeof reply->type);
    for (unsigned i = 0; i < reply->count; i++) {
        const struct lk__value *value = &reply->values[i];
        bool text = value->type == LK__TEXT || value->type == LK__ERROR;
        sum = mix(sum, &value->type, sizeof value->type);
        if (value->type == LK__INTEGER)
            sum = mix(sum, &value->number, sizeof value->number);
        if (text)
            sum = mix(sum, reply->text + value->at, value->length);
    }
    return sum;
}

static void check_reply(const struct lk__reply *reply)
{
    require(reply->type > LK__NONE && reply->type <= LK__ARRAY && reply->count <= LK__REPLY_MAX);
    require(reply->type == LK__ARRAY || (reply->count == 1 && reply->values[0].type == reply->type));
    require(reply->text_used <= LK__REPLY_BYTES_MAX && reply->text_used <= reply->text_capacity);
    unsigned integers = 0;
    for (unsigned i = 0; i < reply->count; i++) {
        const struct lk__value *value = &reply->values[i];
        require(value->type > LK__NONE && value->type <= LK__ARRAY);
        bool text = value->type == LK__TEXT || value->type == LK__ERROR;
        require(!text || value->at + value->length < reply->text_used);
        require(!text || reply->text[value->at + value->length] == '\0');
        require(text || lk__reply_text(reply, i)[0] == '\0');
        integers += integers == i && value->type == LK__INTEGER;
    }
    require(lk__reply_integers(reply, integers) == (reply->type == LK__ARRAY));
    require(!lk__reply_integers(reply, integers + 1));
    require(lk__reply_text(reply, reply->count)[0] == '\0');
    require(lk__reply_error(reply) != 0);
}

struct on_message {
    uint64_t replies[REPLIES_MAX];
    int count, end; /* EAGAIN or EPROTO */
};

typedef void (*use_t)(void *arg, const struct lk__reply *reply);

/* The replies in these bytes, which come in pieces; each goes to `use`. */
static void hear(struct on_message *on_message, const uint8_t *bytes, size_t size, size_t piece, use_t use, void *arg)
{
    int peer;
    struct lk__stream *stream = open_stream(&peer);
    on_message->count = 0;
    on_message->end = EAGAIN;
    for (size_t at = 0; at < size && on_message->end == EAGAIN; at += piece) {
        size_t length = size - at < piece ? size - at : piece;
        require(send(peer, bytes + at, length, MSG_NOSIGNAL) == (ssize_t)length);
        while (lk__stream_take(stream) == 0)
            continue;
        while ((on_message->end = lk__stream_next(stream)) == 0) {
            check_reply(stream->filling);
            require(on_message->count < REPLIES_MAX);
            on_message->replies[on_message->count++] = drawn(stream->filling);
            use(arg, stream->filling);
            lk__reply_spread(stream->filling);
            check_reply(stream->filling);
        }
        require(on_message->end == EAGAIN || on_message->end == EPROTO);
    }
    lk__stream_unref(stream);
    close(peer);
}

/* --- messages --------------------------------------------------------------------------------------------------- */

/* A hub that nobody runs, with a room and a waiter in it. */
struct subscriptions {
    struct lk__connector connector;
    struct lk__node node;
    struct lk__hub hub;
    struct lk__waiters room;
    struct lk__waiter waiter;
};

static struct subscriptions *begin_ears(void)
{
    static struct subscriptions subscriptions;
    subscriptions = (struct subscriptions){ .waiter.entry = { .key = OWNER, .length = sizeof OWNER - 1 } };
    require(lk__node_init(&subscriptions.node, &subscriptions.connector, &(struct lk__options){ 0 }) == 0);
    require(lk__hub_init(&subscriptions.hub, &subscriptions.node) == 0);
    lk__waiters_init(&subscriptions.room, "c", &subscriptions.node, &subscriptions.hub,
                     &subscriptions.node.server.options);
    lk__parker_init(&subscriptions.waiter.parker);
    lk__map_insert(&subscriptions.room.by_id, &subscriptions.waiter.entry);
    lk__map_insert(&subscriptions.hub.subscriptions, &subscriptions.room.ear.subscription.entry);
    subscriptions.room.ear.subscription.state = LK__SUBSCRIPTION_ASKED;
    lk__list_append(&subscriptions.hub.asked, &subscriptions.room.ear.subscription.order);
    return &subscriptions;
}

static void end_ears(struct subscriptions *subscriptions)
{
    lk__parker_destroy(&subscriptions->waiter.parker);
    lk__mu_destroy(&subscriptions->room.mu);
    lk__hub_destroy(&subscriptions->hub);
    lk__node_destroy(&subscriptions->node);
}

/* The message that is a grant, once more, by scanning: "G <owner> <us> <ms> <token> <died>". */
static bool is_grant(const struct lk__reply *reply, const struct lk__grant *grant)
{
    long long server_us, lease_ms, token, died;
    const char *errmsg = lk__reply_text(reply, 2);
    if (strcmp(lk__reply_text(reply, 0), "message") != 0 || strcmp(lk__reply_text(reply, 1), "latchkey:client:c") != 0)
        return false;
    if (strncmp(errmsg, "G " OWNER " ", sizeof OWNER + 2) != 0)
        return false;
    return sscanf(errmsg + sizeof OWNER + 2, "%lld %lld %lld %lld", &server_us, &lease_ms, &token, &died) == 4 &&
           server_us == grant->server_us && lease_ms == grant->lease_ms && (uint64_t)token == grant->token &&
           (died != 0) == grant->owner_died;
}

static void hear_message(void *arg, const struct lk__reply *reply)
{
    struct subscriptions *subscriptions = arg;
    const struct lk__grant *grant = &subscriptions->waiter.granted;
    subscriptions->waiter.granted.server_us = 0;
    const struct lk__conn *lane = &subscriptions->node.lanes[LK__LANE_MESSAGES];
    lane->message(lane->arg, subscriptions->hub.only.connects, 0, reply);
    if (grant->server_us == 0)
        return;
    require(is_grant(reply, grant));
    require(lk__is_servertime(grant->server_us) && grant->token > 0 && grant->token <= INT64_MAX);
    require(grant->lease_ms > 0 && grant->lease_ms <= LK__LEASE_MAX_MS);
}

/* --- the greeting ------------------------------------------------------------------------------------------------- */

static void greet(const uint8_t *bytes, size_t size, uint8_t how)
{
    struct lk__server server = { .options = { .strict = (how & 1) != 0, .db = how >> 1 & 1 } };
    struct lk__serverinfo info = { 0 };
    char errmsg[192] = "";
    int peer;
    struct lk__stream *stream = open_stream(&peer);
    char password[] = "secret";
    if (how & 4)
        server.options.password = password;
    require(send(peer, bytes, size, MSG_NOSIGNAL) == (ssize_t)size && shutdown(peer, SHUT_WR) == 0);
    int64_t until_us = lk__now_us() + PATIENCE_US;
    int rc = lk__handshake(stream, &server, (how & 8) != 0, until_us, -1, &info, errmsg, sizeof errmsg);
    require(rc == 0 || rc == EPROTO || rc == ENOTCONN || rc == EACCES || rc == EINVAL || rc == ENOTSUP || rc == ENOSPC);
    require(rc == 0 || errmsg[0] != '\0');
    require(rc != 0 || lk__is_servertime(info.server_us));
    /* A master, or a server that does not let this user ask. */
    require(rc != 0 || memmem(bytes, size, "master", 6) != NULL || memmem(bytes, size, "NOPERM", 6) != NULL);
    lk__fail(rc, "%s", errmsg);
    require(is_one_line(lk_errortext()));
    lk__stream_unref(stream);
    close(peer);
}

static void use_nothing(void *arg, const struct lk__reply *reply)
{
    (void)arg, (void)reply;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct on_message whole, pieces;
    struct input input = { bytes, size };
    size_t piece = 1 + take_byte(&input) % 32;
    uint8_t how = take_byte(&input);
    if (input.left == 0 || input.left > BYTES_MAX)
        return 0;
    struct subscriptions *subscriptions = begin_ears();
    hear(&whole, input.at, input.left, input.left, hear_message, subscriptions);
    end_ears(subscriptions);
    hear(&pieces, input.at, input.left, piece, use_nothing, NULL);
    require(whole.count == pieces.count && whole.end == pieces.end);
    require(memcmp(whole.replies, pieces.replies, (size_t)whole.count * sizeof *whole.replies) == 0);
    greet(input.at, input.left, how);
    return 0;
}
