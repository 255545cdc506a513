/* SPDX-License-Identifier: MIT */
/*
 * child.c - until latchkey has told the keeper of the group, the child waits: a death in between leaves nothing running
 */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void become(const struct settings *s, char **operands, const struct grant_words *grant,
                             const sigset_t *mask, int go, int trouble)
{
    char byte;
    setpgid(0, 0);
    if (read(go, &byte, 1) != 1)
        _exit(EXIT_INTERNAL);
    if (s->no_stdin) {
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        dup2(null, STDIN_FILENO);
    }
    set_environment(s, grant);
    if (!s->ignores_pipe)
        signal(SIGPIPE, SIG_DFL);
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    if (s->shell_line != NULL)
        execl("/bin/sh", "sh", "-c", s->shell_line, (char *)NULL);
    else
        execvp(operands[0], operands);
    int code = errno;
    (void)!write(trouble, &code, sizeof code);
    _exit(EXIT_NOT_FOUND);
}

int child_prepare(struct child *child, const struct settings *s, char **operands, const struct grant_words *grant,
                  const sigset_t *mask)
{
    int go[2], trouble[2];
    if (pipe2(go, O_CLOEXEC) != 0)
        return errno;
    if (pipe2(trouble, O_CLOEXEC) != 0 || (child->pid = fork()) < 0)
        return errno;
    if (child->pid == 0) {
        close(go[1]);
        close(trouble[0]);
        become(s, operands, grant, mask, go[0], trouble[1]);
    }
    setpgid(child->pid, child->pid); /* whichever of the two comes first */
    close(go[0]);
    close(trouble[1]);
    child->go = go[1];
    child->trouble = trouble[0];
    return 0;
}

void child_drop(struct child *child)
{
    close(child->go);
    close(child->trouble);
    waitpid(child->pid, NULL, 0);
    child->pid = 0;
}

int child_go(struct child *child)
{
    int code = 0;
    (void)!write(child->go, "", 1);
    close(child->go);
    if (read(child->trouble, &code, sizeof code) != sizeof code)
        code = 0;
    close(child->trouble);
    return code;
}
