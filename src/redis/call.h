/* SPDX-License-Identifier: MIT */
/*
 * call.h - a command that waits for nobody, and what access rules keep from us
 */
#ifndef LK__CALL_H
#define LK__CALL_H

#include "redis/judge.h"

/* --- call.c ---------------------------------------------------------------------------------------------- */

struct lk__call {
    struct lk__node *node; /* the server, or the way to it */
    const char *what;      /* words begin with it */
    const struct lk__command *command;
    struct lk__sent sent;    /* but for the deadline, which is filled in at each sending */
    int64_t lasts_us;        /* how far ahead that is; 0: until the end of the call */
    int64_t end_us;          /* of the call; 0: one command timeout from now */
    bool confirms;           /* it goes where replicas acknowledge what it writes; only with wait_replicas */
    bool only_once;          /* a copy would do harm: after a lost connection it is not sent again */
    bool at_once;            /* it is one of several: a server that is away, or cannot now, is not waited for */
    enum lk__manner manner;  /* how it goes first */
    unsigned run;            /* 0, or it is sent to the run of a server that has this epoch, and else is ESTALE */
    /* NULL, or in place of lk__request_take(). */
    void (*take)(struct lk__request *request, const struct lk__reply *reply);
    bool by_steps;           /* where some of its keys are elsewhere, what stands for its script is sent instead of it ... */
    int64_t marked_until_us; /* ... not 0: with the step for a mark, which does nothing after that */
    struct lk__reply *reply; /* where to put the answer; NULL: its head is enough */
    struct lk__answer answer; /* told: how it begins; of a call that returned 0 */
    bool acknowledged;       /* told: enough of them did */
    bool repeated;           /* told: an earlier copy may have taken effect */
    bool stepped;            /* told: it went by steps */
    int64_t sent_us;         /* told: when the one was sent that is answered ... */
    unsigned epoch;          /* ... and the epoch of the server that answered */
    struct lk__until until;  /* told: by then no copy takes effect any more, if its script takes a deadline; or 0 */
};

/*
 * Send a command and await its answer until the end; that is one that its script gives. One that was late is sent once
 * more: the server's clock moved, and is known now. Returns 0: an answer that is no error, maybe that it was late again ·
 * ENOTCONN nothing was sent, or the server would not · EIO the outcome is unknown · what the server's refusal means ·
 * ECANCELED · ENOMEM. With an error text.
 */
int lk__call_run(struct lk__call *call);

/* A call that was begun; private to it. */
struct lk__ongoing {
    struct lk__call *told;
    struct lk__command command; /* told->command, or the step that stands for it ... */
    int step;                   /* ... 1 or 2; 0: none */
    struct lk__request request;
    struct lk__parker parker;
    enum lk__lane lane;
    struct lk__conn *conn; /* where it goes, or went */
    int64_t hard_us;
    int64_t spare_us; /* an eighth of its time */
    int64_t pause_ms, resume_us;
    int code;    /* EINPROGRESS: it is not over */
    bool waited; /* for a connection */
    bool unsure; /* a copy may have taken effect */
    bool late;   /* one came past its deadline, and did nothing */
    char says[LK__SAYS_MAX]; /* the words of an error */
    bool sent;   /* and not judged */
};

/*
 * lk__call_run() in two parts, of one thread: up to its first request, if that can leave at once, and the rest. So several
 * calls are under way together, and their time runs from here on.
 */
void lk__call_begin(struct lk__ongoing *call, struct lk__call *told);
/* In between, maybe several times: go on until then. False: it is not over; else end it at once, for its words. */
bool lk__call_await(struct lk__ongoing *call, int64_t until_us);
int lk__call_end(struct lk__ongoing *call);
/* Instead: nobody wants the answer any more. What is told, is told. */
void lk__call_abandon(struct lk__ongoing *call);

/* EPROTO, with an error text: this is no answer that the script gives. */
int lk__call_garbled(const char *what);

/* --- way.c: rights ----------------------------------------------------------------------------------------- */

/*
 * 0, or EACCES when the user of this node lacks one of `commands` ("del exists ..."), as far as it is
 * known since it came up. With an error text that begins with `what`.
 */
int lk__acl_check(struct lk__node *node, const char *what, const char *commands);

#endif
