/* SPDX-License-Identifier: MIT */
/* plan.c - which call is to fail, and whose calls count */
#include "failing/failing.h"

#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANGES_MAX = 32, FRAMES_MAX = 24 };

static struct failure plan;
static atomic_bool armed;
static atomic_int counted, failures;
static _Thread_local int spares;

/* What is told of a run that ends badly; of a child's the parent tells it. */
struct told {
    char run[96]; /* its name; "": none */
    const char *call;
    void *frames[FRAMES_MAX];
    int count;
};

static struct told own, *told = &own;

/* --- whose call ------------------------------------------------------------------------------------------ */

static struct {
    uintptr_t begin, end;
    int code;
} ranges[RANGES_MAX];
static int range_count;

static int note_object(struct dl_phdr_info *object, size_t size, void *arg)
{
    int code = object->dlpi_name[0] == 0 ? CODE_HERE
               : strstr(object->dlpi_name, "libhiredis") != NULL || strstr(object->dlpi_name, "libjansson") != NULL
                   ? CODE_BELOW
                   : CODE_ELSEWHERE;
    (void)size;
    (void)arg;
    for (int i = 0; i < object->dlpi_phnum && code != CODE_ELSEWHERE && range_count < RANGES_MAX; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X))
            continue;
        ranges[range_count].begin = object->dlpi_addr + part->p_vaddr;
        ranges[range_count].end = ranges[range_count].begin + part->p_memsz;
        ranges[range_count++].code = code;
    }
    return 0;
}

#ifdef BELOW_A_SANITIZER
void __lsan_disable(void);
void __lsan_enable(void);
#pragma weak __lsan_disable
#pragma weak __lsan_enable
#endif

/* What it loads is kept by the loader, which a search for leaks does not see behind our malloc(). */
static void load_backtrace(void)
{
    void *frame;
#ifdef BELOW_A_SANITIZER
    if (__lsan_disable != NULL)
        __lsan_disable();
#endif
    backtrace(&frame, 1);
#ifdef BELOW_A_SANITIZER
    if (__lsan_enable != NULL)
        __lsan_enable();
#endif
}

__attribute__((constructor)) static void look_around(void)
{
    load_backtrace();
    dl_iterate_phdr(note_object, NULL);
}

int failing_code(const void *caller)
{
    for (int i = 0; i < range_count; i++)
        if ((uintptr_t)caller >= ranges[i].begin && (uintptr_t)caller < ranges[i].end)
            return ranges[i].code;
    return CODE_ELSEWHERE;
}

/* --- which call ------------------------------------------------------------------------------------------ */

void failing_plan(const struct failure *failure)
{
    plan = *failure;
}

void failing_begin(void)
{
    atomic_store(&counted, 0);
    atomic_store(&failures, 0);
    atomic_store(&armed, true);
}

void failing_end(void)
{
    atomic_store(&armed, false);
}

bool failing_happened(void)
{
    return atomic_load(&failures) > 0;
}

void failing_tell(bool happened)
{
    atomic_store(&failures, happened);
}

int failing_way(void)
{
    return plan.way;
}

bool failing_lasts(void)
{
    return plan.lasting;
}

void failing_spare(int more)
{
    spares += more;
}

int64_t failing_spare_end(int64_t value)
{
    spares--;
    return value;
}

bool failing_now(enum failing kind, const char *name)
{
    if (!atomic_load(&armed) || plan.kind != kind || spares > 0)
        return false;
    int mine = atomic_fetch_add(&counted, 1) + 1;
    if (plan.lasting ? mine < plan.nth : mine != plan.nth)
        return false;
    if (atomic_fetch_add(&failures, 1) == 0) {
        told->call = name;
#ifndef BELOW_THREAD_SANITIZER /* which sees this, but not the atomics that order it */
        told->count = backtrace(told->frames, FRAMES_MAX);
#endif
    }
    return true;
}

/* --- every call ------------------------------------------------------------------------------------------- */

enum { WAYS_MAX = 5, NTH_MAX = 4000, HANGS_AFTER_S = 40 };

static const struct failure *only; /* way and lasting; NULL: all */
static int runs;                   /* so far */
static bool uncertain;             /* something may be left for as long as a lease */

/* Only what a signal handler may call. */
static void say_what_failed(void)
{
    char text[160];
    if (told->run[0] == 0)
        return;
    int length = snprintf(text, sizeof text, "in LATCHKEY_FAILING=%s: failed: %s\n", told->run,
                          told->call != NULL ? told->call : "nothing");
    ssize_t written = write(STDERR_FILENO, text, (size_t)length);
    (void)written;
    if (told->call != NULL)
        backtrace_symbols_fd(told->frames, told->count, STDERR_FILENO);
}

static void hangs(int signal)
{
    static const char words[] = "a call does not return\n";
    ssize_t written = write(STDERR_FILENO, words, sizeof words - 1);
    (void)written;
    (void)signal;
    if (!in_child)
        say_what_failed();
    _exit(1);
}

int failing_teardown(void **state)
{
    failing_end();
    alarm(0);
    say_what_failed();
    told->run[0] = 0;
    return world_teardown(state);
}

static bool is_impatient(void)
{
    return plan.kind == FAIL_CALL && plan.lasting;
}

const char *failing_options(void)
{
    if (!is_impatient())
        return "lease=3s&connect_timeout=3s&command_timeout=950ms&poll=100ms";
    return SANITIZED ? "lease=3s&connect_timeout=3s&poll=100ms" : "lease=1500ms&connect_timeout=1500ms&poll=100ms";
}

int64_t failing_patience_ms(void)
{
    return is_impatient() ? 60 : 5000;
}

static _Thread_local int64_t called_ms;

void failing_clock(void)
{
    called_ms = now_ms();
}

/* Was an answer waited for as long as a command may take? */
static bool came_late(int code)
{
    enum { COMMAND_MS = 900 };
    return (code == EIO || code == ENOTCONN) && now_ms() - called_ms >= COMMAND_MS;
}

int failing_judge(int code, const int allowed[], const char *call, const char *file, int line)
{
    int errno_after = errno;
    bool good = code == allowed[0], failed = failing_happened() || is_impatient(), late = came_late(code);
    for (int i = 1; allowed[i] != -1 && !good; i++)
        good = code == allowed[i] && (late || (failed && (plan.kind == FAIL_CALL || code == ENOMEM)));
    failing_spare(1);
    assert_lk_result(good ? code : allowed[0], code, errno_after, call, file, line);
    uncertain |= code == EIO || code == ENOTCONN;
    return (int)failing_spare_end(code);
}

int failing_runs(void)
{
    return runs;
}

bool failing_uncertain(void)
{
    return uncertain;
}

static void run_once(const struct failure *failure, const char *name, void (*scenario)(void *arg), void *arg)
{
    told->call = NULL;
    snprintf(told->run, sizeof told->run, "%s/%s/%s/%d/%d", name, failure->kind == FAIL_CALL ? "call" : "allocation",
             failure->lasting ? "lasting" : "once", failure->way, failure->nth);
    uncertain = false;
    failing_plan(failure);
    signal(SIGALRM, hangs);
    alarm(HANGS_AFTER_S);
    scenario(arg);
    alarm(0);
    failing_end();
    told->run[0] = 0;
}

enum { PARTS = 16 };

static int sparse = 1;

void failing_sparsely(int every)
{
    sparse = every;
}

/* One failure of so many is tried, and the first of them is `begin`. */
static int step_of_all(int *begin)
{
    const char *part = getenv("LATCHKEY_TEST_PART");
    if (getenv("LATCHKEY_TEST_FULL") != NULL)
        return 1;
    if (part == NULL)
        return sparse;
    *begin += sparse * atoi(part);
    return sparse * PARTS;
}

/* Every nth of one way. */
static void each_nth(struct failure failure, const char *name, void (*scenario)(void *arg), void *arg)
{
    const char *wanted = getenv("LATCHKEY_FAILING");
    char way[80];
    int begin = 2 * failure.way + failure.lasting, step = step_of_all(&begin);
    size_t length =
        (size_t)snprintf(way, sizeof way, "%s/%s/%s/%d/", name, failure.kind == FAIL_CALL ? "call" : "allocation",
                         failure.lasting ? "lasting" : "once", failure.way);
    failure.nth = 1 + begin % step;
    if (wanted != NULL && strncmp(wanted, way, length) != 0)
        return;
    if (wanted != NULL)
        failure.nth = atoi(wanted + length);
    do {
        run_once(&failure, name, scenario, arg);
        runs++;
        failure.nth += step;
        assert_that(failure.nth < NTH_MAX);
    } while (failing_happened() && wanted == NULL);
}

static int ways_of(enum failing kind)
{
    return kind == FAIL_CALL ? WAYS_MAX : 1;
}

void each_failure_of(const char *name, enum failing kind, void (*scenario)(void *arg), void *arg)
{
    for (int way = 0; way < ways_of(kind); way++)
        for (int lasting = 0; lasting < 2; lasting++)
            if (only == NULL || (only->way == way && only->lasting == lasting))
                each_nth((struct failure){ .kind = kind, .way = way, .lasting = lasting }, name, scenario, arg);
}

/* --- every way in a process of its own -------------------------------------------------------------------- */

struct child {
    pid_t pid;
    struct told *told; /* shared with it */
};

static void run_child(const struct failure *failure, void (*scenarios)(struct world *w, enum failing kind))
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGSEGV, SIG_DFL);
    in_child = true;
    only = failure;
    struct world *w = world_begin(NULL);
    scenarios(w, failure->kind);
    world_end(w);
    fflush(NULL);
    _exit(0);
}

static struct child start_child(const struct failure *failure, void (*scenarios)(struct world *w, enum failing kind))
{
    struct child child = { .told = mmap(NULL, sizeof own, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) };
    assert_that(child.told != MAP_FAILED);
    fflush(NULL);
    child.pid = fork();
    assert_that(child.pid >= 0);
    if (child.pid == 0) {
        told = child.told;
        run_child(failure, scenarios);
    }
    return child;
}

static bool ends_well(const struct child *child)
{
    int status;
    waitpid(child->pid, &status, 0); /* it has an alarm of its own */
    bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!well) {
        told = child->told;
        say_what_failed();
        told = &own;
    }
    munmap(child->told, sizeof own);
    return well;
}

void each_way(enum failing kind, void (*scenarios)(struct world *w, enum failing kind))
{
    struct child children[2 * WAYS_MAX];
    int count = 0, failed = 0;
    for (int way = 0; way < ways_of(kind); way++)
        for (int lasting = 0; lasting < 2; lasting++)
            children[count++] =
                start_child(&(struct failure){ .kind = kind, .way = way, .lasting = lasting }, scenarios);
    for (int i = 0; i < count; i++)
        failed += !ends_well(&children[i]);
    assert_int_equal(0, failed);
}

static void (*all_scenarios)(struct world *w, enum failing kind);

static void allocations_fail(void)
{
    each_way(FAIL_ALLOCATION, all_scenarios);
}

static void calls_fail(void)
{
    each_way(FAIL_CALL, all_scenarios);
}

int all_failures(void (*scenarios)(struct world *w, enum failing kind))
{
    all_scenarios = scenarios;
    return plain_run(allocations_fail, calls_fail);
}
