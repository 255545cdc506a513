/* SPDX-License-Identifier: MIT */
#include "command.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONGEST_MS = 40000 };

static char url_options[128] = COMMAND_PATIENT;
static struct ran ran;

void command_options(const char *options)
{
    snprintf(url_options, sizeof url_options, "%s", options);
}

static void redirect(int fd, const char *file, int flags)
{
    int opened = open(file, flags, 0600);
    if (opened < 0 || dup2(opened, fd) < 0)
        _exit(126);
}

static _Noreturn void become_shell(struct world *w, const char *line, const char *url)
{
    char path[4096], place[] = LK_COMMAND;
    *strrchr(place, '/') = 0;
    snprintf(path, sizeof path, "%s:%s", place, getenv("PATH"));
    setenv("PATH", path, 1);
    setenv("LATCHKEY_URL", url, 1);
    unsetenv("REDIS_URL");
    static const int endings[] = { SIGHUP, SIGINT, SIGQUIT };
    for (unsigned i = 0; i < sizeof endings / sizeof endings[0]; i++)
        signal(endings[i], SIG_DFL); /* whoever runs the tests may ignore them */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setsid();
    if (chdir(w->dir) != 0)
        _exit(126);
    redirect(0, "/dev/null", O_RDONLY);
    redirect(1, "out", O_WRONLY | O_CREAT | O_TRUNC);
    redirect(2, "err", O_WRONLY | O_CREAT | O_TRUNC);
    execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    _exit(127);
}

static pid_t begin(struct world *w, const char *format, va_list words)
{
    char line[4096];
    vsnprintf(line, sizeof line, format, words);
    const char *url = world_url(w, url_options);
    world_rest();
    pid_t pid = fork();
    if (pid == 0)
        become_shell(w, line, url);
    assert_that(pid > 0);
    return pid;
}

pid_t command_begin(struct world *w, const char *format, ...)
{
    va_list words;
    va_start(words, format);
    pid_t pid = begin(w, format, words);
    va_end(words);
    return pid;
}

static void read_file(struct world *w, const char *file, char *text, size_t size)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", w->dir, file);
    FILE *f = fopen(path, "r");
    size_t n = f != NULL ? fread(text, 1, size - 1, f) : 0;
    text[n] = 0;
    if (f != NULL)
        fclose(f);
}

const struct ran *command_end(struct world *w, pid_t pid)
{
    int status = 0;
    int64_t until_ms = now_ms() + LONGEST_MS;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (now_ms() > until_ms)
            kill(-pid, SIGKILL);
        sleep_ms(2);
    }
    ran.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    read_file(w, "out", ran.out, sizeof ran.out);
    read_file(w, "err", ran.err, sizeof ran.err);
    return &ran;
}

const struct ran *command(struct world *w, const char *format, ...)
{
    va_list words;
    va_start(words, format);
    pid_t pid = begin(w, format, words);
    va_end(words);
    return command_end(w, pid);
}

bool command_left(struct world *w, const char *file)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", w->dir, file);
    return access(path, F_OK) == 0;
}

int64_t command_number(struct world *w, const char *file)
{
    char text[64];
    read_file(w, file, text, sizeof text);
    return strchr(text, '\n') != NULL ? strtoll(text, NULL, 10) : -1;
}

bool is_running(int64_t pid)
{
    char path[64], state = 'Z';
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return false;
    if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
        state = 'Z';
    fclose(f);
    return state != 'Z' && state != 'X';
}
