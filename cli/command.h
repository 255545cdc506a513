/* SPDX-License-Identifier: MIT */
/*
 * command.h - the table of what `latchkey` can do, and what its options say
 *
 * A command is a line of `commands`, with a function in a file of its own. --help, completion and the
 * reading of options are made from that table and from `options`; tests/cli compares the manual with them.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

/* Exit codes: those of sysexits(3), timeout(1) and the shell where they have one. */
enum {
    EXIT_OK = 0,
    EXIT_NO = 1,               /* what was asked is not so: `status --check`, `watch --alert`, no such latch or semaphore */
    EXIT_FAULT = 2,            /* `doctor`: something fails; 1: something is a warning */
    EXIT_USE = 64,             /* the command line is wrong; nothing was done */
    EXIT_UNREACHABLE = 69,     /* no server would serve it */
    EXIT_INTERNAL = 70,        /* of this machine: no memory, no process */
    EXIT_OUTPUT = 74,          /* standard output could not be written */
    EXIT_CONFLICT = 75,        /* not obtained within the time */
    EXIT_PERMISSION = 77,      /* credentials or access rules */
    EXIT_CONFIGURATION = 78,   /* the URL or configuration file is wrong, or there is neither */
    EXIT_LOST = 79,            /* the lease could not be kept */
    EXIT_TIME = 124,           /* --max-time */
    EXIT_NOT_EXECUTABLE = 126, /* CMD could not be executed */
    EXIT_NOT_FOUND = 127,      /* there is no CMD */
    EXIT_BY_SIGNAL = 128       /* and its number is added */
};

enum option_id {
    OPT_EXCLUSIVE,
    OPT_SHARED,
    OPT_FAIR,
    OPT_PERMITS,
    OPT_NONBLOCK,
    OPT_TIMEOUT,
    OPT_CONFLICT_EXIT_CODE,
    OPT_COMMAND,
    OPT_LEASE,
    OPT_HOLD_AT_LEAST,
    OPT_MAX_TIME,
    OPT_ON_LOST,
    OPT_KILL_AFTER,
    OPT_SIGNAL,
    OPT_KEEP_ENV,
    OPT_NO_STDIN,
    OPT_WHY,
    OPT_ALERT,
    OPT_FOR,
    OPT_CHECK,
    OPT_OWNER,
    OPT_YES,
    OPT_INTERVAL,
    OPT_ONCE,
    OPT_PORT,
    OPT_SECONDS,
    OPT_URL,
    OPT_CONFIG,
    OPT_JSON,
    OPT_QUIET,
    OPT_VERBOSE,
    OPT_HELP,
    OPT_COUNT
};

struct option_words {
    char letter;          /* 0: none */
    const char *name;     /* without its dashes */
    const char *synonym;  /* another name, or NULL */
    const char *argument; /* NULL: it takes none */
    const char *help;
};

extern const struct option_words options[OPT_COUNT];

enum mode { MODE_EXCLUSIVE, MODE_SHARED, MODE_PERMIT };
enum on_lost { ON_LOST_KILL, ON_LOST_WARN, ON_LOST_EXEC };

/* What the options of a command line said, or their defaults. */
struct settings {
    const struct command *command;
    uint64_t given; /* a bit for each option that was given */
    enum mode mode;
    bool fair;
    unsigned permits;
    int64_t wait_ms; /* LK_FOREVER */
    int conflict_code;
    const char *shell_line;
    int64_t lease_ms, hold_ms, max_ms, kill_ms; /* 0: not said */
    enum on_lost on_lost;
    const char *on_lost_command;
    int signal;
    bool keep_env, no_stdin, check;
    bool ignores_pipe; /* whoever began latchkey ignores SIGPIPE, and so is CMD to */
    int64_t alert_ms, for_ms; /* 0: not said */
    const char *owner;
    bool yes, once;
    int64_t interval_ms;
    int port;
    int64_t seconds; /* 0: not said */
    const char *url, *config;
    const char *source; /* what names the server: an option, a variable or a file */
    char server[1024];  /* the URL of the open client, without a password */
    const char *why, *program, *arguments; /* what is said of this client; NULL: not that */
    bool json, quiet, verbose;
};

struct command {
    const char *name;      /* may be two words: "latch create" */
    const char *arguments; /* of the synopsis */
    const char *summary;   /* a line of --help */
    const char *about;     /* paragraphs of its own --help */
    uint64_t options;      /* a bit for each that it takes */
    int least, most;       /* so many operands; -1: any number */
    bool runs;             /* options end at the first operand: what follows is somebody else's command line */
    int (*run)(struct settings *settings, int count, char **operands);
};

extern const struct command commands[]; /* ends with a name of NULL */

const struct command *command_of(const char *first, const char *second);

/*
 * Fill in `settings` from argv[0], which is the command's name, to argv[argc - 1]. Returns the first operand's index, or -1:
 * complained.
 */
int read_options(struct settings *settings, int argc, char **argv);

/* 0, or an exit code when the words could not be written. */
int print_help(void);
int print_command_help(const struct command *command);
int flush_output(void);
void show_output(void); /* in between; what fails is told by flush_output() */

int run_run(struct settings *settings, int count, char **operands);
int run_hold(struct settings *settings, int count, char **operands);
int run_status(struct settings *settings, int count, char **operands);
int run_watch(struct settings *settings, int count, char **operands);
int run_ls(struct settings *settings, int count, char **operands);
int run_top(struct settings *settings, int count, char **operands);
int run_force_release(struct settings *settings, int count, char **operands);
int run_sem_status(struct settings *settings, int count, char **operands);
int run_sem_resize(struct settings *settings, int count, char **operands);
int run_latch_create(struct settings *settings, int count, char **operands);
int run_latch_countdown(struct settings *settings, int count, char **operands);
int run_latch_wait(struct settings *settings, int count, char **operands);
int run_latch_status(struct settings *settings, int count, char **operands);
int run_doctor(struct settings *settings, int count, char **operands);
int run_bench(struct settings *settings, int count, char **operands);
int run_server(struct settings *settings, int count, char **operands);
int run_version(struct settings *settings, int count, char **operands);
int run_completion(struct settings *settings, int count, char **operands);

#endif
