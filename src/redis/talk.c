/* SPDX-License-Identifier: MIT */
/* talk.c - questions and answers on a connection that is nobody's yet */
#include "redis/talk.h"
#include "redis/server_clock.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int lk__talk_fail(const struct lk__talk *talk, int code, const char *what, const char *detail)
{
    char shown[LK__ERRMSG_MAX];
    lk__secret_hide(talk->login.password, detail, shown, sizeof shown);
    snprintf(talk->errmsg, talk->size, "%s%s%s", what, shown[0] != '\0' ? ": " : "", shown);
    return code;
}

int lk__talk_refused(const struct lk__talk *talk, const char *what)
{
    const struct lk__reply *reply = talk->stream->filling;
    const char *says = lk__reply_text(reply, 0);
    char word[24];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(says, " "), says);
    return lk__talk_fail(talk, lk__reply_error(reply), what, word);
}

int lk__talk_judge(const struct lk__talk *talk, const struct lk__reply *reply, const char *what)
{
    return reply->type == LK__ERROR ? lk__talk_fail(talk, lk__reply_error(reply), what, lk__reply_text(reply, 0)) : 0;
}

bool lk__talk_time(const struct lk__reply *reply, int64_t *server_us)
{
    long long s = strtoll(lk__reply_text(reply, 0), NULL, 10), us = strtoll(lk__reply_text(reply, 1), NULL, 10);
    bool plausible = s > 0 && s <= INT64_MAX / 2000000 && us >= 0 && us <= 999999;
    if (reply->type != LK__ARRAY || reply->count != 2 || !plausible || !lk__is_servertime(s * 1000000 + us))
        return false;
    *server_us = (int64_t)s * 1000000 + us;
    return true;
}

int lk__talk_say(const struct lk__talk *talk, int argc, const char *argv[])
{
    char *bytes = NULL;
    int length = redisFormatCommandArgv(&bytes, argc, argv, NULL);
    if (length < 0)
        return ENOMEM;
    int rc = lk__stream_append(talk->stream, bytes, (size_t)length);
    explicit_bzero(bytes, (size_t)length); /* a password may be in it */
    redisFreeCommand(bytes);
    return rc;
}

int lk__talk_auth(const struct lk__talk *talk)
{
    const struct lk__login *login = &talk->login;
    const char *with_user[3] = { "AUTH", login->user, login->password }, *alone[2] = { "AUTH", login->password };
    if (login->password == NULL)
        return 0;
    return login->user != NULL ? lk__talk_say(talk, 3, with_user) : lk__talk_say(talk, 2, alone);
}

/* The connection is gone; why, may be no accident. A server that wants TLS ends others without a word. */
static int complain_gone(const struct lk__talk *talk)
{
    int code = ENOTCONN;
    const char *why = lk__stream_why(talk->stream, &code);
    bool silent = talk->stream->filling->came_us == 0 && talk->options->path == NULL && !talk->options->tls.on;
    return lk__talk_fail(talk, code, why, silent ? "does it want TLS, by rediss://?" : "");
}

/* Get the parser something. A server that takes nothing any more may have said why before. */
static int fill(const struct lk__talk *talk)
{
    struct lk__stream *stream = talk->stream;
    bool takes = lk__stream_give(stream) == 0;
    int rc = 0;
    if (takes && !lk__stream_more(stream))
        rc = lk__socket_await(stream->socket.fd, lk__stream_wants(stream), talk->until_us, talk->cancel_fd);
    if (rc == ECANCELED)
        return lk__talk_fail(talk, ECANCELED, "the client was closed", "");
    if (rc == ETIMEDOUT)
        return lk__talk_fail(talk, ENOTCONN, "the server accepts connections but does not answer in time", "");
    if (rc == 0)
        rc = lk__stream_take(stream);
    if (rc == EIO || (rc == EAGAIN && !takes))
        return complain_gone(talk);
    return rc == EAGAIN ? 0 : rc;
}

int lk__talk_hear(const struct lk__talk *talk)
{
    int rc;
    while ((rc = lk__stream_next(talk->stream)) == EAGAIN) {
        rc = fill(talk);
        if (rc != 0)
            return rc;
    }
    return rc == EPROTO ? lk__talk_fail(talk, EPROTO, "what answers does not speak Redis' protocol", "") : rc;
}
