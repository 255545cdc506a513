/* SPDX-License-Identifier: MIT */
/*
 * files.c - descriptors of this world: event counters, timers, epolls, and how one waits for them and for sockets
 *
 * Each has a place among the kernel's descriptors, so that numbers, limits and listings are as always. What is not
 * of this world, as a pipe, is looked at again each virtual millisecond.
 */
#include "sim.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

/* --- memory of the world ------------------------------------------------------------------------------------------ */

static unsigned class_of(size_t size)
{
    unsigned class = 6;
    while (((size_t)1 << class) < size)
        class ++;
    return class;
}

void *sim_alloc(size_t size)
{
    unsigned class = class_of(size);
    void **free = world->free_memory[class];
    if (free != NULL) {
        world->free_memory[class] = *free;
        return free;
    }
    void *memory = world->memory + world->memory_used;
    world->memory_used += (size_t)1 << class;
    if (world->memory + world->memory_used > (char *)WORLD_AT + WORLD_BYTES)
        sim_fail("the world's memory is full");
    return memory;
}

void sim_free(void *memory, size_t size)
{
    unsigned class = class_of(size);
    *(void **)memory = world->free_memory[class];
    world->free_memory[class] = memory;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

struct file *sim_file(int fd)
{
    if (!sim_on() || fd < 0 || fd >= FDS_MAX)
        return NULL;
    uint32_t number = world->procs[sim_proc()].fds[fd];
    return number != 0 ? &world->files[number] : NULL;
}

uint32_t sim_number(const struct file *file)
{
    return (uint32_t)(file - world->files);
}

uint32_t sim_newfile(enum file_type type)
{
    uint32_t number = world->free_file;
    if (number != 0)
        world->free_file = world->files[number].next_free;
    else
        number = ++world->file_count;
    if (number >= FILES_MAX)
        sim_fail("more than %d files", FILES_MAX);
    struct file *file = &world->files[number];
    uint32_t generation = file->generation;
    memset(file, 0, sizeof *file);
    file->generation = generation + 1;
    file->type = (uint8_t)type;
    file->proc = sim_proc();
    file->in_last = &file->in_first;
    file->way_last = &file->way_first;
    return number;
}

int sim_open(uint32_t number, int flags)
{
    int fd = (int)sim_kernel(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | (flags & O_CLOEXEC), 0);
    if (fd >= FDS_MAX) {
        sim_kernel(SYS_close, fd);
        errno = EMFILE;
        fd = -1;
    }
    if (fd < 0) {
        world->files[number].refs = 1;
        sim_unref(number);
        return -1;
    }
    world->files[number].refs++;
    world->files[number].nonblocking = (flags & O_NONBLOCK) != 0;
    if ((flags & O_NONBLOCK) != 0)
        sim_kernel(SYS_fcntl, fd, F_SETFL, O_NONBLOCK);
    world->procs[sim_proc()].fds[fd] = number;
    return fd;
}

static void drop_item(uint32_t number)
{
    struct item *item = &world->items[number];
    uint32_t *link = &world->files[item->owner].items;
    while (*link != number)
        link = &world->items[*link].next_of_owner;
    *link = item->next_of_owner;
    link = &world->files[item->file].watchers;
    while (*link != number)
        link = &world->items[*link].next_of_file;
    *link = item->next_of_file;
    item->next_of_owner = world->free_item;
    world->free_item = number;
}

void sim_unref(uint32_t number)
{
    struct file *file = &world->files[number];
    if (--file->refs > 0)
        return;
    while (file->watchers != 0)
        drop_item(file->watchers);
    while (file->items != 0)
        drop_item(file->items);
    sim_changed(file);
    if (file->type == SOCKET)
        sim_closesocket(file);
    file->type = NO_FILE;
    file->generation++;
    file->next_free = world->free_file;
    world->free_file = number;
}

void sim_closeall(uint32_t proc)
{
    for (int fd = 0; fd < FDS_MAX; fd++) {
        uint32_t number = world->procs[proc].fds[fd];
        world->procs[proc].fds[fd] = 0;
        if (number != 0)
            sim_unref(number);
    }
}

void sim_changed(struct file *file)
{
    while (file->waits != 0)
        sim_ready(world->waits[file->waits].thread);
    for (uint32_t item = file->watchers; item != 0; item = world->items[item].next_of_file)
        sim_changed(&world->files[world->items[item].owner]);
}

static bool any_item_ready(const struct file *epoll)
{
    for (uint32_t number = epoll->items; number != 0; number = world->items[number].next_of_owner) {
        const struct item *item = &world->items[number];
        if (item->file != 0 &&
            ((uint32_t)sim_readiness(&world->files[item->file]) & (item->events | EPOLLERR | EPOLLHUP)) != 0)
            return true;
    }
    return false;
}

static bool has_room(const struct file *file)
{
    const struct file *peer = &world->files[file->peer];
    return file->broken || file->no_more_out || file->peer == 0 || peer->in_bytes + peer->way_bytes < FULL;
}

/* `out`: is it to be known whether there is room? That looks at the other end, too. */
static short socket_readiness(const struct file *file, bool out)
{
    int events = 0;
    switch ((enum socket_state)file->state) {
    case FRESH:
        return POLLOUT | POLLHUP;
    case LISTENING:
        return file->backlog_count > 0 ? POLLIN : 0;
    case CONNECTING:
        return 0;
    case FAILED:
        return POLLIN | POLLOUT | POLLERR | POLLHUP;
    case CONNECTED:
        break;
    }
    if (file->in_first != NULL || file->eof || file->broken)
        events |= POLLIN;
    if (out && has_room(file))
        events |= POLLOUT;
    if (file->eof || file->broken)
        events |= POLLRDHUP;
    if (file->broken || (file->eof && file->no_more_out))
        events |= POLLHUP;
    if (file->error != 0)
        events |= POLLERR;
    return (short)events;
}

short sim_readiness(struct file *file)
{
    switch ((enum file_type)file->type) {
    case EVENTFD:
        return file->count > 0 ? POLLIN | POLLOUT : POLLOUT;
    case TIMERFD:
        return file->count > 0 ? POLLIN : 0;
    case EPOLL:
        return any_item_ready(file) ? POLLIN : 0;
    case SOCKET:
        return socket_readiness(file, true);
    case NO_FILE:
        break;
    }
    return POLLNVAL;
}

/* --- to wait ------------------------------------------------------------------------------------------------------ */

void sim_enterfile(struct file *file)
{
    uint32_t number = world->free_wait;
    if (number != 0)
        world->free_wait = world->waits[number].next_of_thread;
    else
        number = ++world->wait_count;
    if (number >= WAITS_MAX)
        sim_fail("more than %d waits", WAITS_MAX);
    struct wait *wait = &world->waits[number];
    *wait = (struct wait){
        .thread = sim_me, .file = sim_number(file), .next_of_thread = sim_self()->waits, .next_of_file = file->waits
    };
    if (file->waits != 0)
        world->waits[file->waits].previous_of_file = number;
    file->waits = number;
    sim_self()->waits = number;
}

/* A wait that a signal ended is EINTR, one whose time is over EAGAIN. */
static bool after_wait(bool in_time)
{
    pthread_testcancel();
    if (sim_self()->interrupted) {
        errno = EINTR;
        return false;
    }
    if (!in_time)
        errno = EAGAIN;
    return in_time;
}

bool sim_waitfile(const char *call, struct file *file, uint64_t deadline_ns)
{
    sim_enterfile(file);
    bool in_time = sim_block(call, deadline_ns, true);
    return after_wait(in_time);
}

static short kernel_readiness(int fd, short events)
{
    struct pollfd one = { fd, events, 0 };
    struct timespec none = { 0, 0 };
    return sim_kernel(SYS_ppoll, &one, 1, &none, NULL, 8) > 0 ? one.revents : 0;
}

static uint64_t look_again_ns(void)
{
    return world->now_ns + NS_PER_MS;
}

bool sim_waitkernel(int fd, short events)
{
    int flags = (int)sim_kernel(SYS_fcntl, fd, F_GETFL);
    while (flags >= 0 && (flags & O_NONBLOCK) == 0 && kernel_readiness(fd, events) == 0) {
        if (!after_wait(sim_block("the kernel", look_again_ns(), true)) && errno == EINTR)
            return false;
    }
    return true;
}

/* --- poll --------------------------------------------------------------------------------------------------------- */

static int look(struct pollfd *fds, nfds_t count, bool *kernel)
{
    int found = 0;
    *kernel = false;
    for (nfds_t i = 0; i < count; i++) {
        struct file *file = sim_file(fds[i].fd);
        short wanted = (short)(fds[i].events | POLLERR | POLLHUP | POLLNVAL);
        fds[i].revents = 0;
        if (fds[i].fd < 0)
            continue;
        if (file != NULL) {
            fds[i].revents = sim_readiness(file) & wanted;
        } else {
            fds[i].revents = kernel_readiness(fds[i].fd, fds[i].events);
            *kernel = true;
        }
        found += fds[i].revents != 0;
    }
    return found;
}

static int poll_until(struct pollfd *fds, nfds_t count, uint64_t deadline_ns)
{
    int found;
    bool kernel;
    sim_point("poll", count);
    pthread_testcancel();
    while ((found = look(fds, count, &kernel)) == 0 && deadline_ns > world->now_ns) {
        uint64_t until_ns = kernel && look_again_ns() < deadline_ns ? look_again_ns() : deadline_ns;
        for (nfds_t i = 0; i < count; i++)
            if (sim_file(fds[i].fd) != NULL)
                sim_enterfile(sim_file(fds[i].fd));
        sim_block("poll", until_ns, true);
        pthread_testcancel();
        if (sim_self()->interrupted) {
            errno = EINTR;
            return -1;
        }
    }
    return found;
}

static uint64_t after_ms(int ms)
{
    struct timespec time = { ms / 1000, ms % 1000 * 1000000L };
    return ms < 0 ? NEVER : sim_after(&time);
}

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
    if (!sim_on())
        return (int)sim_kernel(SYS_poll, fds, count, timeout);
    return poll_until(fds, count, after_ms(timeout));
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
    sigset_t before;
    if (!sim_on())
        return (int)sim_kernel(SYS_ppoll, fds, count, timeout, mask, 8);
    if (mask != NULL)
        pthread_sigmask(SIG_SETMASK, mask, &before);
    int found = poll_until(fds, count, sim_after(timeout));
    int error = errno;
    if (mask != NULL)
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return found;
}

/* --- epoll -------------------------------------------------------------------------------------------------------- */

int epoll_create1(int flags)
{
    sim_point("epoll_create", 0);
    return sim_on() ? sim_open(sim_newfile(EPOLL), (flags & EPOLL_CLOEXEC) != 0 ? O_CLOEXEC : 0)
                    : (int)sim_kernel(SYS_epoll_create1, flags);
}

int epoll_create(int size)
{
    (void)size;
    return epoll_create1(0);
}

static uint32_t find_item(const struct file *epoll, int fd)
{
    uint32_t number = epoll->items;
    while (number != 0 && world->items[number].fd != fd)
        number = world->items[number].next_of_owner;
    return number;
}

static uint32_t new_item(struct file *epoll, int fd)
{
    uint32_t number = world->free_item;
    if (number != 0)
        world->free_item = world->items[number].next_of_owner;
    else
        number = ++world->item_count;
    if (number >= ITEMS_MAX)
        sim_fail("more than %d items of epolls", ITEMS_MAX);
    struct file *file = sim_file(fd);
    struct item *item = &world->items[number];
    *item = (struct item){ .owner = sim_number(epoll),
                           .file = file != NULL ? sim_number(file) : 0,
                           .fd = fd,
                           .next_of_owner = epoll->items,
                           .next_of_file = file != NULL ? file->watchers : world->files[0].watchers };
    epoll->items = number;
    world->files[item->file].watchers = number; /* file 0 stands for all that are the kernel's */
    return number;
}

int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
    struct file *epoll = sim_file(epfd);
    if (epoll == NULL)
        return (int)sim_kernel(SYS_epoll_ctl, epfd, op, fd, event);
    sim_point("epoll_ctl", (uint64_t)fd);
    uint32_t number = find_item(epoll, fd);
    if ((op == EPOLL_CTL_ADD) == (number != 0)) {
        errno = number != 0 ? EEXIST : ENOENT;
        return -1;
    }
    if (op == EPOLL_CTL_DEL) {
        drop_item(number);
        return 0;
    }
    if (op == EPOLL_CTL_ADD)
        number = new_item(epoll, fd);
    world->items[number].events = event->events;
    world->items[number].data = event->data.u64;
    sim_changed(epoll);
    return 0;
}

static short item_readiness(const struct item *item)
{
    struct file *file = &world->files[item->file];
    return file->type == SOCKET ? socket_readiness(file, (item->events & EPOLLOUT) != 0) : sim_readiness(file);
}

static int look_epoll(const struct file *epoll, struct epoll_event *events, int most, bool *kernel)
{
    int found = 0;
    *kernel = false;
    for (uint32_t number = epoll->items; number != 0 && found < most; number = world->items[number].next_of_owner) {
        const struct item *item = &world->items[number];
        short ready = item->file != 0 ? item_readiness(item) : kernel_readiness(item->fd, (short)(item->events & 0xff));
        uint32_t told = (uint32_t)ready & (item->events | EPOLLERR | EPOLLHUP);
        *kernel |= item->file == 0;
        if (told != 0)
            events[found++] = (struct epoll_event){ .events = told, .data.u64 = item->data };
    }
    return found;
}

int epoll_wait(int epfd, struct epoll_event *events, int most, int timeout)
{
    struct file *epoll = sim_file(epfd);
    if (epoll == NULL)
        return (int)sim_kernel(SYS_epoll_wait, epfd, events, most, timeout);
    uint64_t deadline_ns = after_ms(timeout);
    int found;
    bool kernel;
    sim_point("epoll_wait", (uint64_t)timeout);
    while ((found = look_epoll(epoll, events, most, &kernel)) == 0 && deadline_ns > world->now_ns) {
        uint64_t until_ns = kernel && look_again_ns() < deadline_ns ? look_again_ns() : deadline_ns;
        sim_enterfile(epoll);
        sim_block("epoll_wait", until_ns, true);
        if (sim_self()->interrupted) {
            errno = EINTR;
            return -1;
        }
    }
    return found;
}

int epoll_pwait(int epfd, struct epoll_event *events, int most, int timeout, const sigset_t *mask)
{
    (void)mask;
    return epoll_wait(epfd, events, most, timeout);
}

/* --- event counters and timers ------------------------------------------------------------------------------------ */

int eventfd(unsigned count, int flags)
{
    if (!sim_on())
        return (int)sim_kernel(SYS_eventfd2, count, flags);
    sim_point("eventfd", 0);
    uint32_t number = sim_newfile(EVENTFD);
    world->files[number].count = count;
    world->files[number].semaphore = (flags & EFD_SEMAPHORE) != 0;
    return sim_open(number, flags);
}

int timerfd_create(clockid_t clock, int flags)
{
    if (!sim_on())
        return (int)sim_kernel(SYS_timerfd_create, clock, flags);
    sim_point("timerfd", 0);
    uint32_t number = sim_newfile(TIMERFD);
    world->files[number].clock = (int)clock;
    return sim_open(number, flags);
}

static uint64_t ns_of(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * NS_PER_S + (uint64_t)time->tv_nsec;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *old)
{
    struct file *file = sim_file(fd);
    if (file == NULL)
        return (int)sim_kernel(SYS_timerfd_settime, fd, flags, value, old);
    sim_point("timerfd_settime", (uint64_t)fd);
    if (old != NULL)
        *old = (struct itimerspec){ .it_value =
                                        sim_timespec(file->due_ns > world->now_ns ? file->due_ns - world->now_ns : 0),
                                    .it_interval = sim_timespec(file->interval_ns) };
    file->count = 0;
    file->interval_ns = ns_of(&value->it_interval);
    file->backlog_max++;
    file->due_ns = 0;
    if (ns_of(&value->it_value) == 0)
        return 0;
    file->due_ns =
        (flags & TFD_TIMER_ABSTIME) != 0 ? sim_deadline(file->clock, &value->it_value) : sim_after(&value->it_value);
    if (file->due_ns < NEVER)
        sim_event(TIMER, file->due_ns, sim_number(file), file->generation << 12 | (file->backlog_max & 0xfff));
    return 0;
}

void sim_timerdue(uint32_t number, uint32_t generation)
{
    struct file *file = &world->files[number];
    if (file->type != TIMERFD || generation != (file->generation << 12 | (file->backlog_max & 0xfff)))
        return;
    file->count++;
    if (file->interval_ns != 0) {
        file->due_ns = world->now_ns + file->interval_ns;
        sim_event(TIMER, file->due_ns, number, generation);
    }
    sim_changed(file);
}

static ssize_t read_count(struct file *file, void *bytes, size_t length)
{
    if (length < 8) {
        errno = EINVAL;
        return -1;
    }
    while (file->count == 0) {
        if (file->nonblocking) {
            errno = EAGAIN;
            return -1;
        }
        if (!sim_waitfile("read", file, NEVER) && errno == EINTR)
            return -1;
    }
    uint64_t count = file->type == EVENTFD && file->semaphore ? 1 : file->count;
    file->count -= count;
    memcpy(bytes, &count, 8);
    sim_acquired(file);
    sim_changed(file);
    return 8;
}

static ssize_t write_count(struct file *file, const void *bytes, size_t length)
{
    uint64_t count;
    if (file->type != EVENTFD || length < 8) {
        errno = EINVAL;
        return -1;
    }
    memcpy(&count, bytes, 8);
    file->count += count;
    sim_released(file);
    sim_changed(file);
    return 8;
}

/* --- to read and to write ----------------------------------------------------------------------------------------- */

ssize_t read(int fd, void *bytes, size_t length)
{
    struct file *file = sim_file(fd);
    if (file == NULL && sim_on()) {
        sim_point("read", (uint64_t)fd);
        if (!sim_waitkernel(fd, POLLIN))
            return -1;
    }
    if (file == NULL)
        return sim_kernel(SYS_read, fd, bytes, length);
    sim_point("read", (uint64_t)fd);
    pthread_testcancel();
    return file->type == SOCKET ? sim_receive(file, bytes, length, 0) : read_count(file, bytes, length);
}

ssize_t write(int fd, const void *bytes, size_t length)
{
    struct file *file = sim_file(fd);
    if (file == NULL && sim_on()) {
        sim_point("write", (uint64_t)fd);
        if (!sim_waitkernel(fd, POLLOUT))
            return -1;
    }
    if (file == NULL)
        return sim_kernel(SYS_write, fd, bytes, length);
    sim_point("write", (uint64_t)fd);
    return file->type == SOCKET ? sim_send(file, bytes, length, 0) : write_count(file, bytes, length);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    if (sim_file(fd) == NULL)
        return sim_kernel(SYS_writev, fd, parts, count);
    ssize_t all = 0;
    for (int i = 0; i < count; i++) {
        ssize_t written = parts[i].iov_len > 0 ? write(fd, parts[i].iov_base, parts[i].iov_len) : 0;
        if (written < 0)
            return all > 0 ? all : -1;
        all += written;
        if ((size_t)written < parts[i].iov_len)
            break;
    }
    return all;
}

ssize_t readv(int fd, const struct iovec *parts, int count)
{
    if (sim_file(fd) == NULL)
        return sim_kernel(SYS_readv, fd, parts, count);
    return count > 0 ? read(fd, parts[0].iov_base, parts[0].iov_len) : 0;
}

/* --- descriptors -------------------------------------------------------------------------------------------------- */

int close(int fd)
{
    struct file *file = sim_file(fd);
    sim_point("close", (uint64_t)fd);
    if (file != NULL) {
        world->procs[sim_proc()].fds[fd] = 0;
        sim_unref(sim_number(file));
    }
    return (int)sim_kernel(SYS_close, fd);
}

static int duplicated(int from, int to)
{
    if (!sim_on() || to < 0)
        return to;
    struct file *file = sim_file(from), *before = sim_file(to);
    if (from == to)
        return to;
    if (file != NULL)
        file->refs++;
    if (to < FDS_MAX)
        world->procs[sim_proc()].fds[to] = file != NULL ? sim_number(file) : 0;
    if (before != NULL)
        sim_unref(sim_number(before));
    return to;
}

int dup(int fd)
{
    return duplicated(fd, (int)sim_kernel(SYS_dup, fd));
}

int dup2(int from, int to)
{
    return duplicated(from, (int)sim_kernel(SYS_dup2, from, to));
}

int dup3(int from, int to, int flags)
{
    return duplicated(from, (int)sim_kernel(SYS_dup3, from, to, flags));
}

int fcntl64(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    void *arg = va_arg(args, void *);
    va_end(args);
    struct file *file = sim_file(fd);
    sim_point("fcntl", (uint64_t)command);
    int result = (int)sim_kernel(SYS_fcntl, fd, command, arg);
    if (result >= 0 && (command == F_DUPFD || command == F_DUPFD_CLOEXEC))
        return duplicated(fd, result);
    if (file != NULL && command == F_SETFL)
        file->nonblocking = ((uintptr_t)arg & O_NONBLOCK) != 0;
    return result;
}

int fcntl(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    void *arg = va_arg(args, void *);
    va_end(args);
    return fcntl64(fd, command, arg);
}

int ioctl(int fd, unsigned long request, ...)
{
    va_list args;
    va_start(args, request);
    void *arg = va_arg(args, void *);
    va_end(args);
    struct file *file = sim_file(fd);
    if (file == NULL)
        return (int)sim_kernel(SYS_ioctl, fd, request, arg);
    if (request == FIONBIO) {
        file->nonblocking = *(int *)arg != 0;
        return 0;
    }
    if (request == FIONREAD) {
        *(int *)arg = (int)file->in_bytes;
        return 0;
    }
    errno = ENOTTY;
    return -1;
}
