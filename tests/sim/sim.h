/* SPDX-License-Identifier: MIT */
/*
 * sim.h - the simulated world: what its parts share
 *
 * The world is one piece of memory, mapped at one address by every process in it: clients, servers, whoever
 * drives them. One thread of all of them has the turn, and only it reads and writes here. Each call that a
 * process makes to libc, as far as time or other threads matter to it, is a point: time passes, what is due
 * happens, and the seed says who goes on.
 */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define WORLD_AT ((void *)0x7e9000000000) /* where sanitizers have neither shadow nor heap */
#define WORLD_BYTES ((size_t)4 << 30)     /* of which only what is used is there */

#define THREADS_MAX 16384
#define PROCS_MAX 1024
#define FILES_MAX 32768
#define FDS_MAX 12288
#define EVENTS_MAX 262144
#define WAITS_MAX 131072
#define ITEMS_MAX 65536
#define BUCKETS 1024
#define ADDRESS_MAX 112

#define NEVER UINT64_MAX
#define BEGIN_NS (1000 * NS_PER_S) /* what true time says when a world begins */
#define NS_PER_US 1000ULL
#define NS_PER_MS 1000000ULL
#define NS_PER_S 1000000000ULL

/* --- random numbers: a stream for each use, so that a fault more changes no turn before it ------------------- */

enum stream { TURNS, NETWORK, FAULTS, IDENTITIES, WAKES, STREAMS };
uint64_t sim_draw(enum stream stream);
uint64_t sim_drawbelow(enum stream stream, uint64_t limit);
uint64_t sim_drawabout(enum stream stream, uint64_t mean); /* exponentially distributed, at most 16 times the mean */

/* --- events ------------------------------------------------------------------------------------------------------ */

enum event_kind { DEADLINE, DELIVERY, CONNECTION, TIMER, ALARM, END_PAUSE };

struct event {
    uint64_t at_ns, number; /* in order of time, then of their making */
    uint32_t what, detail;  /* a thread and its generation, a file and its, a fault */
    uint8_t kind;
};

void sim_event(enum event_kind kind, uint64_t at_ns, uint32_t what, uint32_t detail);

/* --- threads ------------------------------------------------------------------------------------------------------ */

enum thread_state { FREE, READY, BLOCKED, RUNS, ENDED };

struct thread {
    uint32_t turn; /* a futex; 1: it may go on */
    uint32_t proc;
    pid_t tid;
    uint8_t state;
    bool timed_out, interrupted; /* why a wait ended */
    bool interruptible;          /* by signals and cancellation */
    char call[24];               /* what it waits in */
    uint64_t deadline_ns;        /* true time */
    uint32_t generation;         /* of the deadline */
    const void *address;         /* what it waits for in its process */
    uint32_t bucket_next, bucket_previous;
    uint32_t waits; /* for files: the first of them */
    uint64_t signals;
    uint64_t priority;
    uint32_t ready_at; /* in the list of those that are ready */
    uint64_t pthread;  /* its handle */
    bool detached;
};

struct wait {
    uint32_t thread, file, next_of_thread, next_of_file, previous_of_file;
};

/* --- processes ---------------------------------------------------------------------------------------------------- */

enum proc_state { NO_PROC, LIVES, IS_OVER };

struct proc {
    uint8_t state;
    uint32_t attached; /* a futex; 1: its first thread waits for its turn, or has it */
    pid_t pid;         /* the kernel's; to all in the world it is SIM_PID + its number */
    uint32_t parent;
    uint32_t threads; /* that live */
    int status;       /* as waitpid() says */
    bool reaped, stopped, tells_stop;
    bool dies_with_parent;
    uint32_t pauses;                              /* reasons why it stands still */
    int64_t offset_ns, rate_ppb;                  /* of its clocks; CLOCK_REALTIME has no offset */
    uint64_t in_held_until_ns, out_held_until_ns; /* nothing arrives at it, or from it, before */
    uint64_t signals;
    uint64_t alarm_ns, alarm_interval_ns; /* 0: none */
    uint32_t alarm_generation;
    char name[32];
    uint32_t fds[FDS_MAX]; /* files; 0: not ours */
};

#define SIM_PID 1000
#define FULL 200000 /* bytes unread or on their way: then nobody may send more */

/* --- files -------------------------------------------------------------------------------------------------------- */

enum file_type { NO_FILE, SOCKET, EVENTFD, TIMERFD, EPOLL };
enum socket_state { FRESH, LISTENING, CONNECTING, CONNECTED, FAILED };

struct segment {
    struct segment *next;
    uint32_t length, used;
    uint8_t kind; /* of what the other end hears */
    char bytes[];
};
enum { BYTES, END, RESET };

struct item { /* of an epoll */
    uint32_t owner, file, events;
    uint32_t next_of_owner, next_of_file;
    int fd;
    uint64_t data;
};

struct file {
    uint8_t type, state;
    bool nonblocking, packets, linger_resets;
    bool eof, broken, no_more_in, no_more_out;
    bool is_tcp, is_six, is_pair, is_deaf; /* deaf: the other end is gone, and this one will learn it */
    uint32_t refs, waits, generation, proc;
    uint32_t watchers; /* items of epolls that watch it */
    int error;
    uint32_t peer;
    struct segment *in_first, **in_last;   /* to be read */
    struct segment *way_first, **way_last; /* on their way here */
    uint32_t in_bytes, way_bytes;
    uint64_t last_arrival_ns;
    uint64_t held_until_ns; /* nothing arrives before */
    uint32_t backlog_first, backlog_last, backlog_count, backlog_max, backlog_next;
    uint64_t receive_ns, send_ns;                         /* limits of blocking calls; 0: none */
    char address[ADDRESS_MAX], peer_address[ADDRESS_MAX]; /* a path, or "HOST:PORT" */
    uint64_t count;                                       /* of an eventfd; of a timerfd: times it ran out */
    bool semaphore;
    uint64_t due_ns, interval_ns; /* of a timerfd */
    int clock;
    uint32_t items; /* of an epoll */
    uint32_t next_free;
};

/* --- faults ------------------------------------------------------------------------------------------------------- */

/* Of the process that has the turn; the others of the connection, or the machine, that sends just now. */
enum trouble { PAUSE, CUT, HOLD, ISOLATE, TROUBLES };

#define FAULTS_MAX 4096 /* that can be left out */
#define MACHINES_MAX 64

/* --- the world ---------------------------------------------------------------------------------------------------- */

enum schedule { WALK, PRIORITIES };

struct settings {
    uint64_t seed;
    uint32_t every[TROUBLES]; /* one in so many points, or of messages sent, on average; 0: never */
    uint64_t longest_ns;      /* of a fault */
    uint32_t stay;            /* points between two choices, on average */
    uint64_t delay_ns;        /* of the network, on average */
    uint64_t delay_min_ns;
    bool far;             /* ends of connections take their time as bytes do, and these come in parts */
    uint32_t short_reads; /* one call in so many; 0: none */
    uint64_t limit_ns;    /* the world ends */
    uint8_t schedule;
    bool trace;
};

struct world {
    struct settings set;
    pid_t launcher;
    uint64_t now_ns, next_ns; /* the first event's time */
    uint64_t steps, choose_at, switches;
    uint64_t hash;
    uint32_t current;   /* has the turn */
    uint32_t ended_tid; /* a thread that gave its last turn: gone for the kernel, too, before somebody goes on */
    uint32_t ended_pid;
    bool is_new_ready;
    bool over; /* somebody said why */
    uint32_t over_futex;
    char why[512];
    char diary[256]; /* a file; none: "" */
    uint64_t random[STREAMS][4];
    uint64_t lowest_priority, change_at;

    uint32_t ready_count;
    uint32_t ready[THREADS_MAX];
    uint32_t thread_count;
    struct thread threads[THREADS_MAX]; /* from 1 on */
    uint32_t proc_count;
    struct proc procs[PROCS_MAX]; /* from 1 on */
    uint32_t file_count, free_file;
    struct file files[FILES_MAX]; /* from 1 on */
    uint32_t event_count;
    uint64_t event_number;
    struct event events[EVENTS_MAX];
    uint32_t wait_count, free_wait;
    struct wait waits[WAITS_MAX];
    uint32_t item_count, free_item;
    struct item items[ITEMS_MAX];
    uint32_t buckets[BUCKETS];
    uint32_t next_port;
    bool is_storm;
    uint64_t until[TROUBLES]; /* so many more, then it happens */
    uint32_t fault_count;
    bool left_out[FAULTS_MAX]; /* faults that do not happen */
    int64_t drift_ppb;         /* clocks of machines are wrong by up to that */
    uint64_t machines[MACHINES_MAX];
    uint32_t machine_count;
    void *free_memory[24];
    size_t memory_used;
    char memory[];
};

#define world ((struct world *)WORLD_AT)

/* Is this thread in the world, and has it the turn? Not while a process begins or is over. */
extern __thread uint32_t sim_me;
extern bool sim_is_on;

static inline bool sim_on(void)
{
    return __builtin_expect(sim_is_on, 1) && sim_me != 0;
}

static inline struct thread *sim_self(void)
{
    return &world->threads[sim_me];
}

static inline uint32_t sim_proc(void)
{
    return sim_self()->proc;
}

/* A system call that nobody is in front of; as syscall(), which the world has its own of. */
long sim_kernel(long number, ...);

/* --- turns.c ------------------------------------------------------------------------------------------------------ */

void sim_point(const char *call, uint64_t detail);
uint32_t sim_newthread(uint32_t proc);
void sim_ready(uint32_t thread);
/* The caller waits until somebody makes it ready, or that true time. False: time is over. */
bool sim_block(const char *call, uint64_t deadline_ns, bool interruptible);
void sim_park(void);  /* a new thread: until it is chosen */
void sim_leave(void); /* the last turn of a thread */
void sim_wakeall(uint32_t proc, const void *address);
bool sim_wakeone(const void *address);
bool sim_waitfor(const char *call, const void *address, uint64_t deadline_ns, bool interruptible);
void sim_endthread(uint32_t thread);
void sim_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void sim_begin_randomness(uint64_t seed);
void sim_choose_and_go(void); /* for the launcher: somebody goes on */

/* A clock of this thread's process at true time, and back. */
uint64_t sim_clock(int clock, uint64_t true_ns);
uint64_t sim_clockback(int clock, uint64_t ns);
uint64_t sim_deadline(int clock, const struct timespec *time); /* NULL: never */
uint64_t sim_after(const struct timespec *time);               /* from now on */
struct timespec sim_timespec(uint64_t ns);

static inline uint64_t sim_ns(const struct timeval *time)
{
    return (uint64_t)time->tv_sec * NS_PER_S + (uint64_t)time->tv_usec * NS_PER_US;
}

/* --- files.c, net.c ----------------------------------------------------------------------------------------------- */

struct file *sim_file(int fd);
uint32_t sim_number(const struct file *file);
int sim_open(uint32_t file, int flags); /* a descriptor; -1: none, and errno */
uint32_t sim_newfile(enum file_type type);
void sim_unref(uint32_t file);
void sim_changed(struct file *file); /* whoever waits for it looks again */
short sim_readiness(struct file *file);
void sim_closeall(uint32_t proc);
void sim_closesocket(struct file *file);
void sim_timerdue(uint32_t file, uint32_t generation);
void sim_deliver(uint32_t file, uint32_t generation);
void sim_connected(uint32_t file, uint32_t generation);
ssize_t sim_receive(struct file *file, void *bytes, size_t length, int flags);
ssize_t sim_send(struct file *file, const void *bytes, size_t length, int flags);
void sim_cut(struct file *file);
void sim_cutlate(struct file *file, uint64_t late_ns);
/* Until the file changes. False: time is over, or (errno EINTR) a signal came. */
bool sim_waitfile(const char *call, struct file *file, uint64_t deadline_ns);
void sim_enterfile(struct file *file);
bool sim_waitkernel(int fd, short events); /* for a pipe, a terminal */
void *sim_alloc(size_t size);
void sim_free(void *memory, size_t size);

/* --- procs.c, signals.c, calls.c, faults.c ------------------------------------------------------------------------ */

void sim_endproc(uint32_t proc, int status); /* it is gone, or will be when it has given its turn */
void sim_pausehere(void);                    /* points, and messages sent, while there is a storm */
void sim_trouble(struct file *file);
uint64_t sim_drawtrouble(enum trouble trouble); /* until the next one */
void sim_beginmachine(uint64_t name);
void sim_isolateproc(struct proc *proc, uint64_t length_ns);
void sim_takesignals(void);
void sim_alarmdue(uint32_t proc, uint32_t generation);
int64_t sim_servershift_us(void); /* of CLOCK_REALTIME, as a test says */
void *sim_real(const char *name);
pid_t sim_kernelpid(void);
uint32_t sim_procof(pid_t pid); /* what a pid means here; 0: none of this world */
void sim_beginshift(void);
void sim_beginthreads(void);
void sim_acquired(const volatile void *object); /* for ThreadSanitizer, see pthreads.c */
void sim_released(const volatile void *object);
void sim_watchend(void);

/* --- what a program in the world may ask for: workloads/workload.h ------------------------------------------------ */

void sim_storm(bool on);
bool sim_fault(const char *what);
void sim_clocks(int64_t ppb);
void sim_machine(uint64_t name);
void sim_isolate(pid_t pid, int64_t ms);

#define REAL(name) ((__typeof__(&name))sim_real(#name))

#endif
