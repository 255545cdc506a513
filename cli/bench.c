/* SPDX-License-Identifier: MIT */
/*
 * bench.c - `latchkey bench`: what locks cost at one's own server
 *
 * One figure after another, each for its share of the time. The names are always the same, so that many benches leave
 * no more than one does, and the first name is held meanwhile: two at once would measure each other.
 */
#include "client.h"
#include "command.h"
#include "found.h"
#include "words.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME "latchkey.bench"

enum { SECONDS = 60, THREADS = 8, SAMPLES = 1 << 18, WAIT_MS = 1000, RUNS = 200, SHARES = 10, WORDS = 256 };

extern char **environ;

struct figure {
    const char *name, *what;
    uint32_t *us;  /* of `kept` of them, up to SAMPLES */
    uint64_t kept;
    uint64_t count; /* of all */
    int64_t lasted_us;
};

/* What two processes share who hand a mutex to each other; reached with atomic builtins. */
struct court {
    int64_t until_us;    /* of boot_us() */
    int64_t released_us; /* by whom it was last */
    int last;
    char words[WORDS]; /* of the other process's failure */
    uint64_t count;
    uint32_t us[SAMPLES];
};

struct bench {
    const struct settings *settings;
    lk_client_t *client;
    int64_t share_us;
    struct court *court;
    pid_t other;
    int gate; /* a byte into it lets the other process begin, its end lets it end */
    char words[WORDS]; /* of a failure elsewhere; "": it was this thread's */
};

static const int endings[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };

static volatile sig_atomic_t stopped; /* by that signal */

static void stop(int signal)
{
    stopped = signal;
}

/* Words of the library are those of the thread that failed. */
static void keep_words(char words[WORDS], const char *text)
{
    snprintf(words, WORDS, "%s", text);
}

static void add(struct figure *f, int64_t us)
{
    if (f->kept < SAMPLES)
        f->us[f->kept++] = us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
    f->count++;
}

/* What another one measured, `count` in all. */
static void append(struct figure *f, const uint32_t *us, uint64_t kept, uint64_t count)
{
    for (uint64_t i = 0; i < kept && f->kept < SAMPLES; i++)
        f->us[f->kept++] = us[i];
    f->count += count;
}

static bool goes_on(int64_t until_us, int rc)
{
    return rc == 0 && stopped == 0 && boot_us() < until_us;
}

/* --- figures ----------------------------------------------------------------------------------------------- */

static int ask(lk_mutex_t *mutex)
{
    lk_mutexinfo_t info = LK_MUTEXINFO_INIT;
    return lk_mutex_info(mutex, &info);
}

static int lock_and_unlock(lk_mutex_t *mutex)
{
    int rc = lk_mutex_lockfor(mutex, WAIT_MS);
    return rc == 0 ? lk_mutex_unlock(mutex) : rc;
}

/* Again and again, each one measured, but for the first, which brings the script. */
static int repeat(struct bench *b, struct figure *f, const char *name, int (*work)(lk_mutex_t *mutex))
{
    lk_mutex_t mutex;
    int rc = lk_mutex_init(&mutex, b->client, name, NULL);
    if (rc != 0)
        return rc;
    rc = work(&mutex);
    int64_t began_us = boot_us(), until_us = began_us + b->share_us;
    while (goes_on(until_us, rc)) {
        int64_t at_us = boot_us();
        rc = work(&mutex);
        add(f, boot_us() - at_us);
    }
    f->lasted_us = boot_us() - began_us;
    lk_mutex_destroy(&mutex);
    return rc;
}

static int questions(struct bench *b, struct figure *f)
{
    return repeat(b, f, NAME ".0", ask);
}

static int pairs(struct bench *b, struct figure *f)
{
    return repeat(b, f, NAME ".0", lock_and_unlock);
}

struct worker {
    struct bench *bench;
    struct figure figure;
    char name[32], words[WORDS];
    int rc;
    pthread_t thread;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    w->rc = w->figure.us != NULL ? repeat(w->bench, &w->figure, w->name, lock_and_unlock) : ENOMEM;
    if (w->rc != 0)
        keep_words(w->words, w->figure.us != NULL ? lk_errortext() : lk_strerror(ENOMEM));
    return NULL;
}

/* What all of them measured: of each one no more than its share of what fits. */
static void gather(struct figure *f, const struct worker *w)
{
    const struct figure *theirs = &w->figure;
    append(f, theirs->us, theirs->kept < SAMPLES / THREADS ? theirs->kept : SAMPLES / THREADS, theirs->count);
    if (w->figure.lasted_us > f->lasted_us)
        f->lasted_us = w->figure.lasted_us;
}

static int crowd(struct bench *b, struct figure *f)
{
    struct worker workers[THREADS] = { 0 };
    int rc = 0, started = 0;
    for (; started < THREADS; started++) {
        struct worker *w = &workers[started];
        w->bench = b;
        w->figure.us = malloc(SAMPLES * sizeof *f->us);
        snprintf(w->name, sizeof w->name, "%s.%d", NAME, started + 1);
        if (pthread_create(&w->thread, NULL, work, w) != 0)
            break;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(workers[i].thread, NULL);
        if (rc == 0 && (rc = workers[i].rc) != 0)
            keep_words(b->words, workers[i].words);
        if (rc == 0)
            gather(f, &workers[i]);
    }
    for (int i = 0; i < THREADS; i++)
        free(workers[i].figure.us);
    return rc == 0 && started < THREADS ? ENOMEM : rc;
}

/* To and fro between two processes: the time from the one's unlock to the other's lock. */
static int play(lk_client_t *client, struct court *court, int me, struct figure *f)
{
    lk_mutex_t mutex;
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    attr.fair = 1;
    int rc = lk_mutex_init(&mutex, client, NAME ".to-and-fro", &attr);
    if (rc != 0)
        return rc;
    while (goes_on(__atomic_load_n(&court->until_us, __ATOMIC_ACQUIRE), rc)) {
        rc = lk_mutex_lockfor(&mutex, WAIT_MS);
        if (rc != 0)
            continue;
        if (__atomic_load_n(&court->last, __ATOMIC_ACQUIRE) == !me)
            add(f, boot_us() - __atomic_load_n(&court->released_us, __ATOMIC_ACQUIRE));
        __atomic_store_n(&court->last, me, __ATOMIC_RELEASE);
        __atomic_store_n(&court->released_us, boot_us(), __ATOMIC_RELEASE);
        rc = lk_mutex_unlock(&mutex);
    }
    lk_mutex_destroy(&mutex);
    return rc;
}

static _Noreturn void be_the_other(struct bench *b, pid_t parent)
{
    char byte;
    struct figure f = { .us = b->court->us };
    struct settings silent = *b->settings;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent || read(b->gate, &byte, 1) != 1)
        _exit(0);
    silent.quiet = true;
    silent.verbose = false; /* the first process names the server */
    int code = open_client(&silent, &b->client);
    if (code == 0) {
        code = exit_code_of(play(b->client, b->court, 1, &f));
        keep_words(b->court->words, code != 0 ? lk_errortext() : "");
        close_client(b->client);
    } else {
        keep_words(b->court->words, lk_errortext());
    }
    __atomic_store_n(&b->court->count, f.count, __ATOMIC_RELEASE);
    _exit(code);
}

/* Before there are threads. */
static int fork_the_other(struct bench *b)
{
    int gate[2];
    pid_t me = getpid();
    b->court = mmap(NULL, sizeof *b->court, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (b->court == MAP_FAILED || pipe2(gate, O_CLOEXEC) != 0 || (b->other = fork()) < 0)
        return errno;
    if (b->other == 0) {
        close(gate[1]);
        b->gate = gate[0];
        be_the_other(b, me);
    }
    close(gate[0]);
    b->gate = gate[1];
    return 0;
}

/* 0, or the exit code of the other process. */
static int end_the_other(struct bench *b)
{
    int status = 0;
    if (b->other <= 0)
        return 0;
    __atomic_store_n(&b->court->until_us, 0, __ATOMIC_RELEASE);
    close(b->gate);
    while (waitpid(b->other, &status, 0) < 0 && errno == EINTR)
        ;
    b->other = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_INTERNAL;
}

static int hand_over(struct bench *b, struct figure *f)
{
    struct court *court = b->court;
    int64_t began_us = boot_us();
    court->last = -1;
    __atomic_store_n(&court->until_us, began_us + b->share_us, __ATOMIC_RELEASE);
    if (write(b->gate, "", 1) != 1)
        return EIO;
    int rc = play(b->client, court, 0, f);
    f->lasted_us = boot_us() - began_us;
    if (end_the_other(b) != 0 && rc == 0 && stopped == 0) {
        rc = EIO;
        keep_words(b->words, court->words[0] != 0 ? court->words : "the other process failed");
    }
    uint64_t theirs = __atomic_load_n(&court->count, __ATOMIC_ACQUIRE);
    append(f, court->us, theirs < SAMPLES ? theirs : SAMPLES, theirs);
    return rc;
}

/* Begin a command and wait for its end. ENOENT: there is none; EIO: it failed. */
static int run_once(const char *const *words)
{
    pid_t pid;
    int status = 0, rc = posix_spawnp(&pid, words[0], NULL, NULL, (char *const *)words, environ);
    if (rc != 0)
        return rc;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : EIO;
}

static int run_often(struct bench *b, struct figure *f, const char *const *words)
{
    int64_t began_us = boot_us(), until_us = began_us + b->share_us;
    int rc = run_once(words); /* the first one reads files */
    for (int i = 0; i < RUNS && goes_on(until_us, rc); i++) {
        int64_t at_us = boot_us();
        rc = run_once(words);
        add(f, boot_us() - at_us);
    }
    f->lasted_us = boot_us() - began_us;
    return stopped != 0 || rc == ENOENT ? 0 : rc;
}

static int runs(struct bench *b, struct figure *f)
{
    const struct settings *s = b->settings;
    const char *words[16] = { "/proc/self/exe", "run", "-q", "--no-stdin", "-w", "1", "-E", "75" };
    int n = 8;
    if (s->url != NULL)
        words[n++] = "-u", words[n++] = s->url;
    if (s->config != NULL)
        words[n++] = "--config", words[n++] = s->config;
    words[n++] = NAME ".run";
    words[n] = "true";
    int rc = run_often(b, f, words);
    if (rc != 0)
        keep_words(b->words, "latchkey run failed, or somebody else has " NAME ".run");
    return rc;
}

/* The same by flock(1), on a file of this machine; nothing where there is none. */
static int flocks(struct bench *b, struct figure *f)
{
    char file[] = "/tmp/latchkey-bench-XXXXXX";
    int fd = mkstemp(file);
    if (fd < 0)
        return 0;
    int rc = run_often(b, f, (const char *const[]){ "flock", file, "true", NULL });
    close(fd);
    unlink(file);
    return rc == EIO ? 0 : rc;
}

/* --- what is told ------------------------------------------------------------------------------------------ */

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void tell(const struct settings *s, struct figure *f)
{
    uint64_t kept = f->kept;
    if (kept == 0 || f->lasted_us == 0)
        return;
    qsort(f->us, kept, sizeof *f->us, by_size);
    double rate = (double)f->count * 1e6 / (double)f->lasted_us;
    uint32_t half = f->us[kept / 2], most = f->us[kept * 99 / 100], longest = f->us[kept - 1];
    if (!s->json) {
        printf("%-10s %9.0f/s %9.3f ms %9.3f ms  %s\n", f->name, rate, half / 1e3, most / 1e3, f->what);
        return;
    }
    json_t *object = json_pack("{s:s, s:I, s:f, s:I, s:I, s:I}", "figure", f->name, "count", (json_int_t)f->count,
                               "per_second", rate, "p50_us", (json_int_t)half, "p99_us", (json_int_t)most, "max_us",
                               (json_int_t)longest);
    print_json(s, object);
}

/* On a terminal, until the figure is there. */
static void show_progress(const struct settings *s, const char *what, int64_t share_us)
{
    if (s->json || s->quiet || !isatty(STDERR_FILENO))
        return;
    if (what != NULL)
        fprintf(stderr, "%s, %.0f s ...", what, (double)share_us / 1e6);
    else
        fputs("\r\033[K", stderr);
}

static int measure(struct bench *b)
{
    static const struct {
        const char *name, *what;
        int (*run)(struct bench *b, struct figure *f);
        int shares;
    } all[] = {
        { "question", "asks who holds a mutex", questions, 1 },
        { "pair", "lock and unlock, one thread", pairs, 2 },
        { "pairs", "the same, 8 threads", crowd, 2 },
        { "hand-over", "to a process that waits", hand_over, 2 },
        { "run", "latchkey run NAME true", runs, 2 },
        { "flock", "flock(1) on a local file", flocks, 1 },
    };
    uint32_t *us = malloc(SAMPLES * sizeof *us);
    int rc = us != NULL ? 0 : ENOMEM;
    int64_t share_us = b->share_us;
    if (!b->settings->json && rc == 0)
        printf("%-10s %11s %12s %12s\n", "", "how many", "half within", "99 % within");
    for (unsigned i = 0; i < sizeof all / sizeof all[0] && rc == 0 && stopped == 0; i++) {
        struct figure f = { .name = all[i].name, .what = all[i].what, .us = us };
        b->share_us = share_us * all[i].shares;
        show_output();
        show_progress(b->settings, all[i].what, b->share_us);
        rc = all[i].run(b, &f);
        show_progress(b->settings, NULL, 0);
        if (rc == 0 && stopped == 0)
            tell(b->settings, &f);
    }
    free(us);
    return rc;
}

static int measure_with(struct bench *b, lk_mutex_t *mutex)
{
    int rc = lk_mutex_trylock(mutex);
    if (rc == EBUSY) {
        complain("bench: somebody else measures this server");
        return EXIT_CONFLICT;
    }
    if (rc != 0)
        return complain_of("bench", rc);
    rc = measure(b);
    if (rc != 0 && stopped == 0 && b->words[0] != 0)
        complain("bench: %s", b->words);
    else if (rc != 0 && stopped == 0)
        (void)complain_of("bench", rc);
    (void)lk_mutex_unlock(mutex);
    return exit_code_of(rc);
}

/* With the other process there, and a client. */
static int measure_alone(struct bench *b)
{
    lk_mutex_t mutex;
    int rc = lk_mutex_init(&mutex, b->client, NAME, NULL);
    int code = rc == 0 ? measure_with(b, &mutex) : complain_of("bench", rc);
    if (rc == 0)
        lk_mutex_destroy(&mutex);
    return stopped != 0 ? EXIT_BY_SIGNAL + stopped : code;
}

int run_bench(struct settings *s, int count, char **operands)
{
    struct bench b = { .settings = s, .share_us = (s->seconds > 0 ? s->seconds : SECONDS) * INT64_C(1000000) / SHARES };
    struct sigaction action = { .sa_handler = stop };
    (void)count, (void)operands;
    signal(SIGCHLD, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    for (unsigned i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (!is_ignored(endings[i]))
            sigaction(endings[i], &action, NULL);
    int rc = fork_the_other(&b);
    if (rc != 0) {
        complain("bench: no process: %s", strerror(rc));
        return EXIT_INTERNAL;
    }
    int code = open_client(s, &b.client);
    if (code == 0) {
        code = measure_alone(&b);
        close_client(b.client);
    }
    (void)end_the_other(&b);
    int written = flush_output();
    return code != 0 ? code : written;
}
