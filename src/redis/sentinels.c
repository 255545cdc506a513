/* SPDX-License-Identifier: MIT */
/*
 * sentinels.c - what Redis Sentinels say of where the master is
 *
 * A Sentinel that was asked stays connected, as a subscriber of its channels +switch-master and +monitor: it costs nothing
 * while nothing happens, and tells of a failover at the moment at which the Sentinels agree on it. A stopped master, or
 * one that is cut off from them and still serves us, says nothing itself. A message is a hint only: who sent it is asked
 * anew.
 *
 * One that says nothing for long is pinged, as it may be gone.
 *
 * The hard case: where the master is said to be nobody answers, and meanwhile a Sentinel has news. So each attempt to
 * connect ends when one of them says something (`news_fd`).
 */
#include "redis/sentinels.h"
#include "redis/reach.h"
#include "redis/master.h"
#include "redis/talk.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <stdlib.h>

enum { PING_US = 10000000, PAUSE_MAX_US = 5000000, ANEW_US = 2000000, HOST_MAX = 255 };

/* Where somebody says that the master is. */
struct word {
    char host[HOST_MAX + 1];
    int port;      /* 0: nowhere */
    int64_t epoch; /* the number of the failover that brought it there */
};

struct sentinel {
    struct lk__stream *stream; /* subscribed; NULL: to be asked */
    int64_t due_us, pause_us;  /* when it is asked anew after it was out of reach, and the pause before that */
    int64_t asked_us, heard_us, pinged_us;
    bool news;    /* it said that the master is elsewhere, and is to be asked */
    bool asked;   /* in this search */
    bool refuted; /* no master is where it says, and most Sentinels say another place */
    struct word says;
};

struct lk__sentinels {
    struct lk__connector *connector;
    struct lk__server *server;
    unsigned count;
    int wake_fd, news_fd;
    bool found;           /* the master, in this search */
    struct word told; /* last in this search */
    struct word at;   /* where the connections are */
    struct lk__address place;
    struct sentinel each[];
};

/* --- what they said ------------------------------------------------------------------------------------------- */

static bool is_known(const struct word *word)
{
    return word->port != 0;
}

static bool is_same(const struct word *a, const struct word *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

/* That of the latest failover, or NULL. */
static const struct word *latest(const struct lk__sentinels *all)
{
    const struct word *latest = NULL;
    for (unsigned i = 0; i < all->count; i++) {
        const struct word *says = &all->each[i].says;
        if (is_known(says) && !all->each[i].refuted && (latest == NULL || says->epoch > latest->epoch))
            latest = says;
    }
    return latest;
}

/* How many say that place? */
static unsigned voices(const struct lk__sentinels *all, const struct word *word)
{
    unsigned count = 0;
    for (unsigned i = 0; i < all->count; i++)
        count += is_known(&all->each[i].says) && is_same(&all->each[i].says, word);
    return count;
}

/*
 * No master is where that was told. If most of all Sentinels say another place, the ones that said it are wrong, whatever
 * their number: until they say something else, or no master is at the other place either.
 */
static void refute(struct lk__sentinels *all)
{
    bool outvoted = false;
    for (unsigned i = 0; i < all->count; i++)
        outvoted |= !is_same(&all->each[i].says, &all->told) && 2 * voices(all, &all->each[i].says) > all->count;
    for (unsigned i = 0; i < all->count; i++)
        all->each[i].refuted |= outvoted && is_same(&all->each[i].says, &all->told);
}

/* --- each of them ------------------------------------------------------------------------------------------------ */

static const struct lk__address *address_of(const struct lk__sentinels *all, const struct sentinel *sentinel)
{
    return &all->server->options.servers[sentinel - all->each];
}

/* It is asked later and later while it is out of reach, and one that is silent, not at each attempt to connect. */
static void put_off(struct sentinel *sentinel, const struct lk__options *options, int64_t took_us)
{
    sentinel->pause_us = sentinel->pause_us == 0 ? options->retry_min_ms * 1000 : 2 * sentinel->pause_us;
    if (sentinel->pause_us < 4 * took_us)
        sentinel->pause_us = 4 * took_us;
    if (sentinel->pause_us > PAUSE_MAX_US)
        sentinel->pause_us = PAUSE_MAX_US;
    sentinel->due_us =
        lk__now_us() + sentinel->pause_us - (int64_t)lk__random_below((uint64_t)sentinel->pause_us / 4 + 1);
}

/* Nothing is heard of it until it is asked. */
static void hang_up(struct lk__sentinels *all, struct sentinel *sentinel)
{
    if (sentinel->stream == NULL)
        return;
    epoll_ctl(all->news_fd, EPOLL_CTL_DEL, sentinel->stream->socket.fd, NULL);
    lk__stream_unref(sentinel->stream);
    sentinel->stream = NULL;
    sentinel->due_us = lk__now_us();
    if (sentinel->due_us - sentinel->asked_us >= PAUSE_MAX_US)
        sentinel->pause_us = 0;
}

/* It is gone, and asked anew: at once if it stood for long, for one may answer and close each time. */
static void lost(struct lk__sentinels *all, struct sentinel *sentinel)
{
    hang_up(all, sentinel);
    if (sentinel->due_us - sentinel->asked_us < PAUSE_MAX_US)
        put_off(sentinel, &all->server->options, 0);
}

static int listen_to(struct lk__sentinels *all, struct sentinel *sentinel, struct lk__stream *stream)
{
    struct epoll_event event = { .events = EPOLLIN };
    if (epoll_ctl(all->news_fd, EPOLL_CTL_ADD, stream->socket.fd, &event) != 0)
        return ENOMEM;
    sentinel->stream = stream;
    sentinel->heard_us = lk__now_us();
    sentinel->pinged_us = 0;
    return 0;
}

static void on_message(struct lk__sentinels *all, struct sentinel *sentinel, const struct lk__reply *reply)
{
    const char *service = all->server->options.service, *says = lk__reply_text(reply, 2);
    size_t length = strlen(service);
    if (strcmp(lk__reply_text(reply, 1), "+monitor") == 0 && strncmp(says, "master ", 7) == 0)
        says += 7;
    sentinel->heard_us = lk__now_us();
    sentinel->pinged_us = 0;
    if (strcmp(lk__reply_text(reply, 0), "message") == 0 && strncmp(says, service, length) == 0 && says[length] == ' ')
        sentinel->news = true;
}

/* Take what it said, also what came along with its answers. One that is gone is asked anew. */
static void hear_what_came(struct lk__sentinels *all, struct sentinel *sentinel)
{
    int rc = 0;
    while (sentinel->stream != NULL && rc == 0) {
        while ((rc = lk__stream_next(sentinel->stream)) == 0)
            on_message(all, sentinel, sentinel->stream->filling);
        if (rc == EAGAIN)
            rc = lk__stream_take(sentinel->stream);
    }
    if (rc != EAGAIN)
        lost(all, sentinel);
}

static int ask_master(const struct lk__talk *talk, struct word *says, bool *refused);

/* With the password that is known. */
static int greet(struct lk__sentinels *all, struct sentinel *sentinel, int64_t until_us, int cancel_fd, bool *refused,
                 char *why, size_t size)
{
    struct lk__stream *stream = NULL;
    struct word says = { 0 };
    *refused = false;
    int rc = lk__reach(all->connector, all->server, address_of(all, sentinel), until_us, cancel_fd, &stream, why, size);
    if (rc != 0)
        return rc;
    const struct lk__talk talk = { .stream = stream,
                                   .options = &all->server->options,
                                   .login = lk__login_of(all->server, LK__PEER_SENTINEL),
                                   .until_us = until_us,
                                   .cancel_fd = cancel_fd,
                                   .errmsg = why,
                                   .size = size };
    rc = ask_master(&talk, &says, refused);
    if (rc == 0)
        rc = listen_to(all, sentinel, stream);
    if (rc == ENOMEM)
        snprintf(why, size, "out of memory while connecting");
    if (rc != 0) {
        lk__stream_unref(stream);
        return rc;
    }
    sentinel->refuted &= is_same(&sentinel->says, &says) && sentinel->says.epoch == says.epoch;
    sentinel->says = says;
    return 0;
}

/* A password that is refused may have been replaced meanwhile. */
static int connect_and_ask(struct lk__sentinels *all, struct sentinel *sentinel, int64_t until_us, int cancel_fd,
                           char *why, size_t size)
{
    bool refused;
    int rc = lk__login_ask(all->server, LK__PEER_SENTINEL, why, size);
    if (rc != 0)
        return rc;
    rc = greet(all, sentinel, until_us, cancel_fd, &refused, why, size);
    if (rc == 0 || !refused || !lk__login_renew(all->server, LK__PEER_SENTINEL))
        return rc;
    return greet(all, sentinel, until_us, cancel_fd, &refused, why, size);
}

/* ECANCELED: it is still to be asked. If the connector was stopped, nothing of the node may be touched. */
static int ask(struct lk__sentinels *all, struct sentinel *sentinel, int64_t until_us, int cancel_fd, char *errmsg,
               size_t size)
{
    char why[LK__ERRMSG_MAX];
    int64_t began_us = lk__now_us();
    hang_up(all, sentinel);
    int rc = connect_and_ask(all, sentinel, until_us, cancel_fd, why, sizeof why);
    if (rc == ECANCELED)
        return rc;
    sentinel->news = false;
    sentinel->asked = true;
    sentinel->asked_us = lk__now_us();
    if (rc == 0) {
        hear_what_came(all, sentinel);
        return 0;
    }
    const struct lk__address *address = address_of(all, sentinel);
    snprintf(errmsg, size, "Sentinel %.128s:%d: %s", address->host, address->port, why);
    if (sentinel->pause_us == 0)
        lk__log(LK_LOG_INFO, "%s", errmsg);
    put_off(sentinel, &all->server->options, lk__now_us() - began_us);
    return rc;
}

/* --- hearing ------------------------------------------------------------------------------------------------------ */

static void hear_all(struct lk__sentinels *all)
{
    for (unsigned i = 0; i < all->count; i++)
        if (all->each[i].stream != NULL)
            hear_what_came(all, &all->each[i]);
}

/* One that has been silent for long is pinged, and gone if it does not answer. Returns when to look again. */
static int64_t watch_silence(struct lk__sentinels *all, struct sentinel *sentinel, int64_t now_us)
{
    const struct lk__options *options = &all->server->options;
    const char *ping[1] = { "PING" };
    if (sentinel->pinged_us == 0 && now_us < sentinel->heard_us + PING_US)
        return sentinel->heard_us + PING_US;
    if (sentinel->pinged_us == 0) {
        const struct lk__talk talk = { .stream = sentinel->stream, .options = options };
        sentinel->pinged_us = now_us;
        if (lk__talk_say(&talk, 1, ping) != 0 || lk__stream_give(sentinel->stream) != 0)
            lost(all, sentinel);
    } else if (now_us >= sentinel->pinged_us + options->command_timeout_ms * 1000) {
        lost(all, sentinel);
    }
    return sentinel->stream != NULL ? sentinel->pinged_us + options->command_timeout_ms * 1000 : sentinel->due_us;
}

/* --- for connections -------------------------------------------------------------------------------------------------- */

int lk__sentinels_newsfd(const struct lk__sentinels *sentinels)
{
    return sentinels->news_fd;
}

int lk__sentinels_wakefd(const struct lk__sentinels *sentinels)
{
    return sentinels->wake_fd;
}

void lk__sentinels_search(struct lk__sentinels *sentinels)
{
    sentinels->told = (struct word){ 0 };
    for (unsigned i = 0; i < sentinels->count; i++) {
        sentinels->each[i].asked = false;
        sentinels->each[i].refuted &= sentinels->found;
    }
    sentinels->found = false;
    hear_all(sentinels);
}

/* Who may know more: it said so; nobody has heard of it for long enough, or at all; it was not asked for some time. */
enum whom { WITH_NEWS, DUE, DOWN, ANEW };

static bool is_one(const struct sentinel *sentinel, enum whom whom, int64_t now_us)
{
    bool down = sentinel->stream == NULL;
    switch (whom) {
    case WITH_NEWS:
        return sentinel->news;
    case DUE:
        return down && sentinel->due_us <= now_us;
    case DOWN:
        return down;
    default:
        return !down && sentinel->asked_us + ANEW_US <= now_us;
    }
}

/* The first of them that was not asked in this search, or NULL, and how many there are. */
static struct sentinel *next_to_ask(struct lk__sentinels *all, enum whom whom, unsigned *left)
{
    struct sentinel *first = NULL;
    int64_t now_us = lk__now_us();
    *left = 0;
    for (unsigned i = 0; i < all->count; i++) {
        struct sentinel *sentinel = &all->each[i];
        if (sentinel->asked || !is_one(sentinel, whom, now_us))
            continue;
        first = first != NULL ? first : sentinel;
        ++*left;
    }
    return first;
}

/* Where they say, unless that was told in this search. */
static bool tell(struct lk__sentinels *all, const struct lk__address **place)
{
    const struct word *says = latest(all);
    if (says == NULL || is_same(says, &all->told))
        return false;
    all->told = *says;
    all->place = (struct lk__address){ all->told.host, all->told.port };
    *place = &all->place;
    return true;
}

int lk__sentinels_next(struct lk__sentinels *sentinels, int64_t until_us, const struct lk__address **place,
                       char *errmsg, size_t size)
{
    int code = ENOTCONN;
    unsigned left;
    snprintf(errmsg, size, "no Sentinel answers yet");
    for (;;) {
        enum whom silent = latest(sentinels) == NULL ? DOWN : DUE;
        struct sentinel *sentinel = next_to_ask(sentinels, WITH_NEWS, &left);
        if (sentinel == NULL && sentinels->server->epoch != 0) /* who comes back hears all of them before */
            sentinel = next_to_ask(sentinels, silent, &left);
        if (sentinel == NULL && tell(sentinels, place))
            return 0;
        if (sentinel == NULL)
            sentinel = next_to_ask(sentinels, silent, &left);
        if (sentinel == NULL && is_known(&sentinels->told)) { /* there is no master */
            sentinel = next_to_ask(sentinels, ANEW, &left);
            if (sentinel == NULL)
                refute(sentinels);
            if (sentinel == NULL && tell(sentinels, place))
                return 0;
        }
        int64_t now_us = lk__now_us();
        if (sentinel == NULL || now_us >= until_us)
            return code;
        /* One share more is for the master. */
        int rc = ask(sentinels, sentinel, now_us + (until_us - now_us) / (left + 1), sentinels->news_fd, errmsg, size);
        if (rc == ECANCELED || rc == ENOMEM)
            return rc;
        if (rc != 0 && is_known(&sentinels->told))
            sentinel->says.port = 0; /* what it said before was wrong, or somebody else knows it, too */
        if (rc == EACCES)
            code = rc;
    }
}

void lk__sentinels_found(struct lk__sentinels *sentinels)
{
    sentinels->at = sentinels->told;
    sentinels->found = true;
}

bool lk__sentinels_agree(const struct lk__sentinels *sentinels)
{
    return voices(sentinels, &sentinels->told) == sentinels->count;
}

static void wait_for_news(struct lk__sentinels *all, int64_t until_us)
{
    int64_t now_us = lk__now_us();
    for (unsigned i = 0; i < all->count; i++) {
        struct sentinel *sentinel = &all->each[i];
        int64_t look_us = sentinel->stream != NULL ? watch_silence(all, sentinel, now_us) : sentinel->due_us;
        if (look_us < until_us)
            until_us = look_us;
    }
    struct pollfd polled[2] = { { all->news_fd, POLLIN, 0 }, { all->wake_fd, POLLIN, 0 } };
    if (poll(polled, 2, lk__ms_until(until_us, lk__now_us())) > 0 && polled[1].revents != 0)
        lk__eventfd_clear(all->wake_fd);
    if (polled[0].revents != 0)
        hear_all(all);
}

/* Ask one of them, if it is time, until a connection is wanted. 0: done; EAGAIN: there is none; or as ask(). */
static int ask_in_between(struct lk__sentinels *all, int64_t until_us)
{
    char errmsg[LK__ERRMSG_MAX];
    unsigned left;
    int64_t now_us = lk__now_us(), share_us = all->server->options.connect_timeout_ms * 1000 / (all->count + 1);
    struct sentinel *sentinel = next_to_ask(all, WITH_NEWS, &left);
    if (sentinel == NULL && until_us - now_us > share_us)
        sentinel = next_to_ask(all, DUE, &left);
    if (sentinel == NULL)
        return EAGAIN;
    return ask(all, sentinel, now_us + share_us, all->wake_fd, errmsg, sizeof errmsg);
}

/* Does the latest failover bring the master elsewhere than where the connections are? */
static bool has_moved(const struct lk__sentinels *all)
{
    const struct word *says = latest(all);
    return says != NULL && is_known(&all->at) && !is_same(says, &all->at);
}

/* All connections are to go there, at once. */
static void follow(struct lk__sentinels *all)
{
    const struct word *says = latest(all);
    lk__log(LK_LOG_INFO, "the master is at %s:%d now, and no longer at %s:%d", says->host, says->port, all->at.host,
            all->at.port);
    all->at.port = 0;
    all->server->pause_us = all->server->not_before_us = 0;
    all->server->move(all->server, 0);
}

void lk__sentinels_watch(struct lk__sentinels *sentinels, int64_t until_us)
{
    for (unsigned i = 0; i < sentinels->count; i++)
        sentinels->each[i].asked = false;
    int rc = ask_in_between(sentinels, until_us);
    if (rc == ECANCELED) { /* something is to be done; or the node may be gone */
        lk__eventfd_clear(sentinels->wake_fd);
        return;
    }
    if (rc == EAGAIN)
        wait_for_news(sentinels, until_us);
    if (has_moved(sentinels))
        follow(sentinels);
}

/* --- life ------------------------------------------------------------------------------------------------------------ */

int lk__sentinels_new(struct lk__sentinels **sentinels, struct lk__connector *connector, struct lk__server *server)
{
    unsigned count = server->options.server_count;
    struct lk__sentinels *fresh = lk__alloc(sizeof *fresh + count * sizeof fresh->each[0]);
    struct epoll_event event = { .events = EPOLLIN };
    if (fresh == NULL)
        return lk__fail(ENOMEM, "out of memory for a client");
    *fresh = (struct lk__sentinels){ .connector = connector, .server = server, .count = count };
    fresh->wake_fd = lk__eventfd_open();
    fresh->news_fd = lk__fd_ours(epoll_create1(EPOLL_CLOEXEC));
    if (fresh->wake_fd < 0 || fresh->news_fd < 0 ||
        epoll_ctl(fresh->news_fd, EPOLL_CTL_ADD, connector->cancel_fd, &event) != 0) {
        lk__sentinels_free(fresh);
        return lk__fail(ENOMEM, "no descriptor left for a client");
    }
    *sentinels = fresh;
    return 0;
}

void lk__sentinels_free(struct lk__sentinels *sentinels)
{
    for (unsigned i = 0; i < sentinels->count; i++)
        hang_up(sentinels, &sentinels->each[i]);
    if (sentinels->wake_fd >= 0)
        lk__fd_close(sentinels->wake_fd);
    if (sentinels->news_fd >= 0)
        lk__fd_close(sentinels->news_fd);
    lk__free(sentinels);
}

/* --- what one Sentinel is asked, and what it answers -------------------------------------------------------------- */

/*
 * The question and the subscription go in one write, so the Sentinel takes them in one turn of its loop, and nothing
 * happens between them.
 */

static int say_all(const struct lk__talk *talk)
{
    const struct lk__options *o = talk->options;
    const char *address[3] = { "SENTINEL", "GET-MASTER-ADDR-BY-NAME", o->service };
    const char *epoch[3] = { "SENTINEL", "MASTER", o->service };
    const char *moved[2] = { "SUBSCRIBE", "+switch-master" }, *replaced[2] = { "SUBSCRIBE", "+monitor" };
    int rc = lk__talk_auth(talk);
    if (rc == 0)
        rc = lk__talk_say(talk, 3, address);
    if (rc == 0)
        rc = lk__talk_say(talk, 3, epoch);
    if (rc == 0)
        rc = lk__talk_say(talk, 2, moved);
    return rc == 0 ? lk__talk_say(talk, 2, replaced) : rc;
}

/* The next answer, which is no error. */
static int hear(const struct lk__talk *talk, const char *refused)
{
    int rc = lk__talk_hear(talk);
    if (rc != 0 || talk->stream->filling->type != LK__ERROR)
        return rc;
    rc = lk__talk_refused(talk, refused);
    return rc == EACCES ? rc : ENOTCONN; /* it may be no Sentinel now, or know less than it will */
}

static int hear_address(const struct lk__talk *talk, struct word *says)
{
    int rc = hear(talk, "what is there does not tell where a master is");
    const struct lk__reply *reply = talk->stream->filling;
    if (rc != 0)
        return rc;
    if (reply->type == LK__NIL)
        return lk__talk_fail(talk, ENOTCONN, "the Sentinel knows no such master", talk->options->service);
    const char *host = lk__reply_text(reply, 0), *port = lk__reply_text(reply, 1);
    long number = strtol(port, NULL, 10);
    if (reply->type != LK__ARRAY || host[0] == '\0' || strlen(host) > HOST_MAX || number < 1 || number > UINT16_MAX)
        return lk__talk_fail(talk, EPROTO, "what answers is no Sentinel", "");
    strcpy(says->host, host);
    says->port = (int)number;
    return 0;
}

/* The number of the failover that made it master, a field among others. */
static int hear_epoch(const struct lk__talk *talk, struct word *says)
{
    int rc = hear(talk, "the Sentinel does not tell more of the master");
    const struct lk__reply *reply = talk->stream->filling;
    for (unsigned i = 0; rc == 0 && i + 1 < reply->count; i += 2)
        if (strcmp(lk__reply_text(reply, i), "config-epoch") == 0) {
            says->epoch = strtoll(lk__reply_text(reply, i + 1), NULL, 10);
            return 0;
        }
    return rc != 0 ? rc : lk__talk_fail(talk, EPROTO, "what answers is no Sentinel", "");
}

static int hear_welcome(const struct lk__talk *talk, bool *refused)
{
    int rc = hear(talk, "the Sentinel refuses the user or the password");
    *refused = rc == EACCES;
    return rc;
}

/*
 * On a new connection: where is the master of the options' service? From then on the Sentinel tells when any of its masters
 * moves. 0, ENOMEM, or with words ECANCELED, ENOTCONN, EPROTO, EACCES. `refused`: it knows no such user, or another password.
 */
static int ask_master(const struct lk__talk *talk, struct word *says, bool *refused)
{
    int rc = say_all(talk);
    *refused = false;
    if (rc == 0 && talk->login.password != NULL)
        rc = hear_welcome(talk, refused);
    if (rc == 0)
        rc = hear_address(talk, says);
    if (rc == 0)
        rc = hear_epoch(talk, says);
    if (rc == 0)
        rc = hear(talk, "the Sentinel refuses the channel +switch-master");
    return rc; /* the answer for +monitor is passed over as a message, as it may be refused */
}

/* --- where is the master now? At the one address, at one of several, or where Sentinels say ----------------------- */

/* The next of `left` things to try has its share of the time, so that those behind it have theirs. */
static int64_t share_of(const struct lk__search *search, unsigned left)
{
    int64_t now_us = lk__now_us();
    return search->until_us > now_us ? now_us + (search->until_us - now_us) / left : now_us;
}

void lk__search_begin(struct lk__search *search, struct lk__connector *connector, struct lk__server *server)
{
    *search = (struct lk__search){ .connector = connector,
                                   .server = server,
                                   .until_us = lk__now_us() + server->options.connect_timeout_ms * 1000,
                                   .cancel_fd = connector->cancel_fd };
    if (server->options.service != NULL) {
        lk__sentinels_search(connector->sentinels);
        search->cancel_fd = lk__sentinels_newsfd(connector->sentinels);
    }
}

/* All of the options, the one where it was last before the others. */
static int next_listed(struct lk__search *search)
{
    const struct lk__options *options = &search->server->options;
    unsigned count = options->path != NULL ? 1 : options->server_count;
    if (search->tried == count)
        return ENOENT;
    search->place_until_us = share_of(search, count - search->tried);
    if (options->path == NULL)
        search->place = &options->servers[(search->server->at + search->tried) % count];
    search->tried++;
    return 0;
}

/* What a Sentinel says, unless that was tried; then what the next one says. */
static int next_announced(struct lk__search *search, char *errmsg, size_t size)
{
    int rc = lk__sentinels_next(search->connector->sentinels, search->until_us, &search->place, errmsg, size);
    search->place_until_us = share_of(search, rc == 0 && !lk__sentinels_agree(search->connector->sentinels) ? 2 : 1);
    search->tried += rc == 0;
    return rc == ENOTCONN && search->tried > 0 ? ENOENT : rc;
}

int lk__search_next(struct lk__search *search, char *errmsg, size_t size)
{
    return search->server->options.service != NULL ? next_announced(search, errmsg, size) : next_listed(search);
}

void lk__search_found(const struct lk__search *search)
{
    const struct lk__options *options = &search->server->options;
    if (options->service != NULL)
        lk__sentinels_found(search->connector->sentinels);
    else if (search->place != NULL)
        search->server->at = (unsigned)(search->place - options->servers);
}
