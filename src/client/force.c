/* SPDX-License-Identifier: MIT */
/*
 * force.c - an operator takes something away from whoever holds it
 *
 * It names no hold, so a copy of the request would end the next one as well: it is sent once, and has a
 * deadline, behind which it does nothing.
 */
#include "client/client.h"

enum { LATE = -1 };

static int send_it(struct lk__object *object, struct lk__command *command, int64_t *verdict)
{
    struct lk__conn *conn = &object->client->conn;
    struct lk__request *request = NULL;
    int rc = lk__call(conn, object->what, command, 0, false, &request, NULL);
    if (rc == 0 && !lk__reply_integers(request->reply, 2))
        rc = lk__fail(EPROTO, "%s: the server's answer has the wrong shape", object->what);
    if (rc == 0) {
        lk__conn_clock(conn, request->sent_us, request->reply->values[1].number);
        *verdict = request->reply->values[0].number;
    }
    lk__request_free(request);
    return rc;
}

int lk__force(struct lk__object *object, struct lk__command *command)
{
    int64_t verdict = LATE;
    int rc = 0;
    for (int attempt = 0; attempt < 2 && rc == 0 && verdict == LATE; attempt++)
        rc = send_it(object, command, &verdict); /* again after a deadline: the clock moved, and is known now */
    if (rc == 0 && verdict == LATE)
        rc = lk__fail(ENOTCONN, "%s: the server's clock moves too fast to set a deadline; nothing was done",
                      object->what);
    return rc;
}
