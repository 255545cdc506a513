/* SPDX-License-Identifier: MIT */
/*
 * common.c - arguments, worker processes, progress, verdict
 */
#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long *done;                     /* shared by all workers */
static volatile sig_atomic_t stop_now; /* a signal asked this process to end */

static void give_up(const char *what)
{
    perror(what);
    exit(1);
}

/* --- arguments ----------------------------------------------------------------------------- */

static void usage(FILE *out, const char *program, const struct options *options, const char *about)
{
    fprintf(out,
            "%s\n"
            "\n"
            "usage: %s [--workers N] [--rounds N]%s%s [--unsafe]\n"
            "  --workers N  processes that run at the same time (%d)\n"
            "  --rounds N   rounds of each (%d)\n",
            about, program, options->stripes > 0 ? " [--stripes N]" : "",
            options->order != NULL ? " [--order NAME]" : "", options->workers, options->rounds);
    if (options->stripes > 0)
        fprintf(out, "  --stripes N  how many locks share the load (%d)\n", options->stripes);
    if (options->order != NULL)
        fprintf(out, "  --order NAME how those who wait come in, see above (%s)\n", options->order);
    fprintf(out,
            "  --unsafe     %s\n"
            "\n"
            "The server is $LATCHKEY_URL, else $REDIS_URL, else redis://127.0.0.1:6379.\n"
            "Exit status: 0 if the invariant in the last line held, 1 if not.\n",
            options->unsafe_means == NULL ? "leave the lock out" : options->unsafe_means);
}

static int positive(const char *text)
{
    char *end;
    long number = text == NULL ? 0 : strtol(text, &end, 10);
    return number < 1 || number > 1000000 || *end != '\0' ? 0 : (int)number;
}

void options_read(struct options *options, int argc, char *argv[], const char *about)
{
    const struct options defaults = *options;
    for (int i = 1; i < argc; i++) {
        int *number = NULL;
        if (strcmp(argv[i], "--help") == 0) {
            usage(stdout, argv[0], &defaults, about);
            exit(0);
        } else if (strcmp(argv[i], "--unsafe") == 0) {
            options->unsafe = true;
            continue;
        } else if (defaults.order != NULL && strcmp(argv[i], "--order") == 0 && i + 1 < argc) {
            options->order = argv[++i];
            continue;
        } else if (strcmp(argv[i], "--workers") == 0) {
            number = &options->workers;
        } else if (strcmp(argv[i], "--rounds") == 0) {
            number = &options->rounds;
        } else if (defaults.stripes > 0 && strcmp(argv[i], "--stripes") == 0) {
            number = &options->stripes;
        }
        if (number == NULL || (*number = positive(argv[++i])) == 0) {
            usage(stderr, argv[0], &defaults, about);
            exit(2);
        }
    }
}

/* --- what the workers share ------------------------------------------------------------------ */

void *shared_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        give_up("shared memory");
    return memory;
}

int shared_file(void)
{
    FILE *file = tmpfile(); /* stays open until the program ends */
    if (file == NULL)
        give_up("temporary file");
    return fileno(file);
}

long number_read(int fd)
{
    long number = 0;
    if (pread(fd, &number, sizeof number, 0) < 0)
        give_up("reading the shared file");
    return number;
}

void number_write(int fd, long number)
{
    if (pwrite(fd, &number, sizeof number, 0) != (ssize_t)sizeof number)
        give_up("writing the shared file");
}

void work_a_little(void)
{
    nanosleep(&(struct timespec){ 0, 100 * 1000 }, NULL);
}

void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000 * 1000 }, NULL);
}

long long now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

int random_below(int limit)
{
    return rand() % limit;
}

void round_done(void)
{
    __atomic_fetch_add(done, 1, __ATOMIC_RELAXED);
}

long rounds_done(void)
{
    return done == NULL ? 0 : __atomic_load_n(done, __ATOMIC_RELAXED);
}

/* --- workers --------------------------------------------------------------------------------- */

static void on_signal(int number)
{
    stop_now = number;
}

static double seconds(void)
{
    return (double)now_us() / 1e6;
}

/* A line for each new tenth, and for each second in which none was reached. */
static void progress(long total, double began)
{
    static long tenth;
    static double last;
    double now = seconds();
    long so_far = rounds_done(), reached = so_far * 10 / total;
    if (reached == tenth && now - (last > began ? last : began) < 1)
        return;
    tenth = reached;
    last = now;
    printf("  %3ld %%  %ld of %ld rounds, %.1f s\n", so_far * 100 / total, so_far, total, now - began);
    fflush(stdout);
}

pid_t child_start(void)
{
    pid_t parent = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1); /* the parent was gone before it could be watched */
    srand((unsigned)getpid());
    return 0;
}

/* Workers begin when all are there: `start` is a pipe, whose end says so. */
static pid_t worker_start(const struct options *options, int number, const int start[2],
                          int (*work)(const struct options *options))
{
    char nothing;
    pid_t pid = child_start();
    if (pid != 0)
        return pid;
    close(start[1]);
    while (read(start[0], &nothing, 1) < 0 && errno == EINTR)
        continue;
    close(start[0]);
    struct options own = *options;
    own.worker = number;
    _exit(work(&own) == 0 ? 0 : 1);
}

int workers_run(const struct options *options, long total, int (*work)(const struct options *options))
{
    int start[2];
    pid_t *pids = calloc((size_t)options->workers, sizeof *pids);
    if (pids == NULL || pipe(start) != 0)
        give_up("memory, or a pipe");
    done = shared_memory(sizeof *done);
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    fflush(stdout);

    int left = 0, failed = 0, status;
    double began = seconds();
    for (int i = 0; i < options->workers && stop_now == 0; i++) {
        pids[i] = worker_start(options, i, start, work);
        if (pids[i] < 0) {
            perror("fork");
            failed++;
        } else {
            left++;
        }
    }
    close(start[0]);
    close(start[1]);
    while (left > 0) {
        nanosleep(&(struct timespec){ 0, 20 * 1000 * 1000 }, NULL);
        progress(total, began);
        for (int i = 0; i < options->workers; i++) {
            if (pids[i] > 0 && stop_now != 0)
                kill(pids[i], SIGKILL);
            if (pids[i] > 0 && waitpid(pids[i], &status, WNOHANG) == pids[i]) {
                pids[i] = 0;
                left--;
                failed += status != 0;
            }
        }
    }
    free(pids);
    if (stop_now != 0) {
        fprintf(stderr, "stopped by signal %d\n", (int)stop_now);
        exit(128 + stop_now);
    }
    return failed;
}

int verdict(const char *words, bool held, const char *figures, ...)
{
    va_list args;
    printf("invariant: %s: %s (", words, held ? "held" : "BROKEN");
    va_start(args, figures);
    vprintf(figures, args);
    va_end(args);
    puts(")");
    return fflush(stdout) == 0 && held ? 0 : 1;
}
