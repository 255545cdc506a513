/* SPDX-License-Identifier: MIT */
/*
 * main.c - run a program in a simulated world: see README.md
 */
#include "sim.h"

#include <errno.h>
#include <ftw.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HANGS_AFTER_S 60

static void make_world(char path[64])
{
    int fd = memfd_create("world", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)WORLD_BYTES) != 0 ||
        mmap(WORLD_AT, WORLD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_NORESERVE, fd, 0) !=
            WORLD_AT) {
        perror("sim: no memory for a world");
        exit(125);
    }
    char number[32]; /* slashes make it as long as any other */
    int length = snprintf(number, sizeof number, "%d/fd/%d", (int)getpid(), fd);
    snprintf(path, 64, "/proc%.*s%s", 20 - length, "////////////////////", number);
}

static void begin_diary(const char *path)
{
    unlink(path);
    snprintf(world->diary, sizeof world->diary, "%s%s%s", path[0] != '/' ? getcwd(NULL, 0) : "",
             path[0] != '/' ? "/" : "", path);
}

/* Each seed has troubles of its own, and some that never come. */
static void draw_troubles(struct settings *set)
{
    static const uint32_t every[TROUBLES][4] = { [PAUSE] = { 0, 1000, 5000, 30000 },
                                                 [CUT] = { 0, 100, 500, 3000 },
                                                 [HOLD] = { 0, 50, 300, 2000 },
                                                 [ISOLATE] = { 0, 300, 1000, 5000 } };
    static const uint64_t longest_ms[] = { 5, 50, 500, 5000 };
    for (enum trouble trouble = 0; trouble < TROUBLES; trouble++)
        set->every[trouble] = every[trouble][sim_drawbelow(FAULTS, 4)];
    set->longest_ns = longest_ms[sim_drawbelow(FAULTS, 4)] * NS_PER_MS;
}

/* "3,7": faults that do not happen. */
static void leave_out(const char *numbers)
{
    for (char *end; numbers != NULL && *numbers != 0; numbers = *end == ',' ? end + 1 : "") {
        unsigned long number = strtoul(numbers, &end, 10);
        if (number < FAULTS_MAX)
            world->left_out[number] = true;
    }
}

static void begin_world(uint64_t seed)
{
    struct settings *set = &world->set;
    static const uint32_t stays[] = { 1, 4, 16, 64, 256 };
    static const uint64_t delays_ns[] = { 20 * NS_PER_US, 100 * NS_PER_US, 500 * NS_PER_US, 3 * NS_PER_MS };
    world->launcher = getpid();
    world->next_ns = NEVER;
    world->now_ns = BEGIN_NS;
    world->lowest_priority = 1ULL << 62;
    sim_begin_randomness(seed);
    set->seed = seed;
    set->limit_ns = world->now_ns + 4 * 3600 * NS_PER_S;
    set->schedule = (uint8_t)(sim_drawbelow(TURNS, 2) == 0 ? PRIORITIES : WALK);
    set->stay = stays[sim_drawbelow(TURNS, 5)];
    set->delay_ns = delays_ns[sim_drawbelow(NETWORK, 4)];
    set->delay_min_ns = 10 * NS_PER_US;
    set->short_reads = 32;
    draw_troubles(set);
    world->change_at = sim_drawabout(TURNS, 20000);
}

/* And in no hurry: time does not pass while it waits for a processor. */
static void use_cpu(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    setpriority(PRIO_PROCESS, 0, 10);
    sched_setscheduler(0, SCHED_BATCH,
                       &(struct sched_param){ 0 }); /* who gives its turn sleeps before the other one runs */
}

extern char **environ;

/*
 * Each run has the same environment, because a server's use of memory depends on its size: a folder of its own, and the
 * variables that are meant for tests.
 */
static void begin_environment(const char *folder)
{
    char **before = environ;
    static const char *const kept[] = { "LATCHKEY_", "SOAK_", "SIM_", "CMOCKA_", "ASAN_", "TSAN_", "UBSAN_" };
    clearenv();
    setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
    setenv("HOME", "/", 1);
    setenv("LC_ALL", "C", 1);
    setenv("TMPDIR", folder, 1);
    for (char **one = before; one != NULL && *one != NULL; one++)
        for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
            if (strncmp(*one, kept[i], strlen(kept[i])) == 0)
                putenv(*one);
}

/*
 * Where a run begins, and what its processes carry in their environment, has one length wherever this was built,
 * because a server's use of memory follows from it.
 */
static void link_library(const char *folder, char library[4096])
{
    char name[64];
    snprintf(name, sizeof name, "%s/libsim.so", folder);
    if (symlink(library, name) == 0)
        strcpy(library, name);
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info;
    (void)type;
    (void)where;
    return remove(path);
}

static char run_folder[] = "/tmp/lk-sim-XXXXXX";

static void remove_folder(void)
{
    nftw(run_folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static pid_t start(char **argv, const char *path, const char *library)
{
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (chdir(run_folder) != 0)
        perror(run_folder);
    setenv("SIM_WORLD", path, 1);
    setenv("LD_PRELOAD", library, 1);
    execvp(argv[0], argv);
    perror(argv[0]);
    syscall(SYS_exit_group, 127);
    return 0;
}

static void wait_for_first(pid_t pid)
{
    for (int status; __atomic_load_n(&world->procs[1].attached, __ATOMIC_ACQUIRE) == 0;
         syscall(SYS_nanosleep, &(struct timespec){ 0, 100000 }, NULL))
        if (waitpid(pid, &status, WNOHANG) == pid) {
            fprintf(stderr, "sim: %s ended before it began\n", "the program");
            exit(WIFEXITED(status) ? WEXITSTATUS(status) : 125);
        }
}

/* Does the process that has the turn still live? */
static bool is_alive(uint32_t proc)
{
    char path[40], text[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)world->procs[proc].pid);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    const char *state = length > 0 ? strrchr(text, ')') : NULL;
    return state != NULL && state[2] != 'Z' && state[2] != 'X';
}

static void describe(FILE *out)
{
    for (uint32_t i = 1; i <= world->thread_count; i++) {
        const struct thread *thread = &world->threads[i];
        static const char *const states[] = { "free", "ready", "waits in", "runs", "ended" };
        if (thread->state == FREE || thread->state == ENDED)
            continue;
        fprintf(out, "  %s.%u t%u%s %s", world->procs[thread->proc].name, thread->proc, i, "", states[thread->state]);
        if (thread->state == BLOCKED)
            fprintf(out, " %s", thread->call);
        if (thread->state == BLOCKED && thread->deadline_ns != NEVER)
            fprintf(out, " until %.3f", (double)thread->deadline_ns / 1e9);
        if (world->procs[thread->proc].pauses > 0)
            fprintf(out, ", which stands still");
        fprintf(out, "\n");
    }
}

static volatile sig_atomic_t is_told_to_end;

static void end_early(int signal)
{
    (void)signal;
    is_told_to_end = true;
}

static void watch(void)
{
    uint64_t steps = 0;
    int still = 0;
    struct timespec look = { 0, 200000000 };
    while (__atomic_load_n(&world->over_futex, __ATOMIC_ACQUIRE) == 0) {
        if (is_told_to_end) {
            snprintf(world->why, sizeof world->why, "told to end");
            break;
        }
        syscall(SYS_futex, &world->over_futex, FUTEX_WAIT, 0, &look, NULL, 0);
        uint32_t current = world->current, proc = world->threads[current].proc;
        still = world->steps == steps ? still + 1 : 0;
        steps = world->steps;
        if (world->over || still < 2)
            continue;
        if (!is_alive(proc) && world->current == current && world->procs[proc].state == LIVES) {
            snprintf(world->why, sizeof world->why, "%s.%u died without a word, with its turn", world->procs[proc].name,
                     proc);
            break;
        }
        if (still > HANGS_AFTER_S * 5) {
            snprintf(world->why, sizeof world->why, "%s.%u t%u has its turn and makes no call", world->procs[proc].name,
                     proc, current);
            break;
        }
    }
}

/*
 * All but the first, which was waited for. One that was reaped is left alone: its number may be another program's by now, or
 * that of a thread of one. The others keep theirs, because those whose parent is gone are this process's children.
 */
static void end_all(void)
{
    for (uint32_t i = 2; i <= world->proc_count; i++)
        if (world->procs[i].state != NO_PROC && !world->procs[i].reaped)
            kill(world->procs[i].pid, SIGKILL);
}

static const struct option options[] = { { "seed", required_argument, NULL, 's' },
                                         { "trace", required_argument, NULL, 't' },
                                         { "cpu", required_argument, NULL, 'c' },
                                         { "verbose", no_argument, NULL, 'v' },
                                         { "delay-us", required_argument, NULL, 'D' },
                                         { "stay", required_argument, NULL, 'S' },
                                         { "far", no_argument, NULL, 'F' },
                                         { NULL, 0, NULL, 0 } };

static int say_usage(void)
{
    fprintf(stderr, "Usage: sim [--seed N] [--trace FILE] [--far] [--delay-us N] [--stay POINTS]\n"
                    "           [--cpu N] [--verbose] PROGRAM [ARGUMENTS]\n"
                    "Runs a program in a simulated world: see tests/sim/README.md\n");
    return 2;
}

int main(int argc, char **argv)
{
    char path[64], library[4096];
    const char *said = getenv("LATCHKEY_SIM_SEED");
    uint64_t seed = said != NULL ? strtoull(said, NULL, 10) : 1;
    bool verbose = false, far = false;
    const char *trace = NULL;
    int cpu = sched_getcpu(), delay_us = -1, stay = 0, status = 0;
    for (int option; (option = getopt_long(argc, argv, "+s:t:c:v", options, NULL)) != -1;)
        switch (option) {
        case 's':
            seed = strtoull(optarg, NULL, 10);
            break;
        case 't':
            trace = optarg;
            break;
        case 'c':
            cpu = atoi(optarg);
            break;
        case 'D':
            delay_us = atoi(optarg);
            break;
        case 'S':
            stay = atoi(optarg);
            break;
        case 'F':
            far = true;
            break;
        case 'v':
            verbose = true;
            break;
        default:
            return say_usage();
        }
    if (optind == argc)
        return say_usage();
    ssize_t length = readlink("/proc/self/exe", library, sizeof library - 16);
    library[length > 0 ? length : 0] = 0;
    strcpy(strrchr(library, '/') + 1, "libsim.so");
    if ((personality(0xffffffff) & ADDR_NO_RANDOMIZE) == 0 && personality(ADDR_NO_RANDOMIZE) != -1)
        execv("/proc/self/exe", argv);
    close_range(3, ~0U, 0); /* the numbers of descriptors are in the diary */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (cpu >= 0)
        use_cpu(cpu);
    make_world(path);
    begin_world(seed);
    if (delay_us >= 0)
        world->set.delay_ns = (uint64_t)delay_us * NS_PER_US;
    if (stay > 0)
        world->set.stay = (uint32_t)stay;
    world->set.far = far;
    world->set.trace = trace != NULL;
    leave_out(getenv("SIM_WITHOUT"));
    if (trace != NULL)
        begin_diary(trace);
    if (mkdtemp(run_folder) == NULL) {
        perror("sim: no folder");
        return 125;
    }
    atexit(remove_folder);
    begin_environment(run_folder);
    link_library(run_folder, library);
    char *program = strchr(argv[optind], '/') != NULL ? realpath(argv[optind], NULL) : NULL;
    if (program != NULL)
        argv[optind] = program;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t pid = start(argv + optind, path, library);
    signal(SIGTERM, end_early);
    signal(SIGINT, end_early);
    wait_for_first(pid);
    sim_choose_and_go();
    watch();
    if (world->why[0] == 0)
        waitpid(pid, &status, 0);
    if (world->why[0] != 0) {
        fprintf(stderr, "sim: seed %" PRIu64 ", at %.6f s: %s\n", seed, (double)world->now_ns / 1e9, world->why);
        describe(stderr);
        if (getenv("SIM_WAIT") != NULL)
            getchar();
        kill(pid, SIGKILL);
    }
    end_all();
    if (verbose)
        fprintf(stderr,
                "sim: seed %" PRIu64 ": %.3f s, %" PRIu64 " steps, %" PRIu64 " switches, %u faults, diary %016" PRIx64
                "\n",
                seed, (double)(world->now_ns - BEGIN_NS) / 1e9, world->steps, world->switches, world->fault_count,
                world->hash);
    if (world->why[0] != 0)
        return 70;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
