/* SPDX-License-Identifier: MIT */
/*
 * server_test.c - a command uses the server that is configured, names it, and does nothing where none is configured
 *
 * A default of 127.0.0.1 would be another server on each host, so a cron job of several hosts would run on all of them.
 */
#include "command.h"

#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* In front of a line: the environment of a cron job. */
#define CRON "unset LATCHKEY_URL REDIS_URL; export HOME=$PWD/home; "

#define OURS "home/.config/latchkey.json"

/* A line for each command that has --url. */
static const char *const lines[] = {
    "run a touch ran", "hold a",     "status a",       "watch --for 1s a",   "ls",           "top --once",
    "sem status a",    "doctor",     "sem resize a 2", "latch create a 2",   "latch wait a", "latch count-down a",
    "latch status a",  "bench",      "force-release --yes a",
};

enum { LINES = sizeof lines / sizeof lines[0] };

static const char complaint[] = "no server is configured: give --url, set LATCHKEY_URL, or write "
                                "{\"url\": \"redis://HOST\"} into ~/.config/latchkey.json or /etc/latchkey.json\n";

/* The commands would use the server of this machine's own file. */
static bool machine_has_a_server(void)
{
    bool has = access("/etc/latchkey.json", F_OK) == 0;
    if (has)
        print_message("not tried: this machine has an /etc/latchkey.json\n");
    return has;
}

static void without_a_server_no_command_begins(struct world *w)
{
    if (machine_has_a_server())
        return;
    for (int i = 0; i < LINES; i++) {
        const struct ran *ran = command(w, CRON "latchkey %s", lines[i]);
        const char *words = strchr(ran->err + strlen("latchkey: "), ':');
        if (ran->code != 78 || ran->out[0] != 0 || words == NULL || strcmp(words + 2, complaint) != 0)
            fail_msg("latchkey %s: code %d, %s%s", lines[i], ran->code, ran->out, ran->err);
    }
    assert_false(command_left(w, "ran"));
    assert_exits(78, w, CRON "export REDIS_URL=; latchkey run a true");
    assert_exits(78, w, CRON "unset HOME; latchkey run a true");
    assert_exits(64, w, CRON "latchkey run");
    assert_exits(0, w, CRON "latchkey version && latchkey completion bash >words && latchkey run --help >words");
}

static void no_command_is_left_out(struct world *w)
{
    assert_exits(LINES, w, "n=0; for c in $(latchkey --help | sed -n '/^Commands:/,/^$/s/^  \\([a-z-]*\\( [a-z-]\\+\\)\\?\\)  "
                           ".*/\\1/p' | tr ' ' _); do ! latchkey $(echo $c | tr _ ' ') --help | grep -q -- --url || "
                           "n=$((n + 1)); done; exit $n");
}

/* A network of this process's own, with a listener at the port of Redis. -1: not to be had here. */
static int listen_alone(void)
{
    struct ifreq up = { .ifr_name = "lo", .ifr_flags = IFF_UP };
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(6379), .sin_addr = { htonl(INADDR_LOOPBACK) } };
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
        return -1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (ioctl(fd, SIOCSIFFLAGS, &up) != 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 9) != 0)
        return -1;
    return fd;
}

enum { SILENT, HEARD, DEAF, ABSENT };

/* The last line connects on purpose, because silence at a listener that hears nothing would prove nothing. */
static int try_beside_a_listener(struct world *w)
{
    int fd = listen_alone();
    if (fd < 0)
        return ABSENT;
    for (int i = 0; i < LINES; i++)
        (void)command(w, CRON "latchkey %s", lines[i]);
    if (accept(fd, NULL, NULL) >= 0)
        return HEARD;
    (void)command(w, CRON "latchkey status -u 'redis://127.0.0.1?connect_timeout=200ms' a");
    return accept(fd, NULL, NULL) >= 0 ? SILENT : DEAF;
}

static void localhost_is_not_connected_to(struct world *w)
{
    int status = 0;
    if (machine_has_a_server())
        return;
    pid_t pid = fork();
    if (pid == 0)
        _exit(try_beside_a_listener(w));
    assert_that(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    if (WEXITSTATUS(status) == ABSENT)
        print_message("not tried: no network namespace is to be had here\n");
    else
        assert_int_equal(SILENT, WEXITSTATUS(status));
}

static void the_words_name_what_helps(struct world *w)
{
    if (machine_has_a_server())
        return;
    assert_exits(0, w, CRON "mkdir -p home/.config; ! latchkey run a true 2>said && grep -o '{.*}' said | "
                       "sed 's|redis://HOST|unix://%s?command_timeout=9s|' >" OURS " && latchkey run a true", w->socket);
}

/*
 * Each source names a database of its own, and is added after those that it goes before. The file in /etc is written
 * in a mount namespace, whose /etc has only the linker's cache.
 */
static void each_source_has_its_place(struct world *w)
{
    char url[256];
    snprintf(url, sizeof url, "unix://%s?" COMMAND_PATIENT "&db=", w->socket);
    command(w, "mkdir -p home/.config && cat >sources <<'END'\n" CRON
               "url='%s'\n"
               "file() { echo \"{\\\"url\\\": \\\"$url$2\\\"}\" >$1; }\n"
               "used() { db=$1 from=$2; shift 2; latchkey run -v \"$@\" a true 2>said; grep -qx \"latchkey: server "
               "unix://$PWD/redis.sock?db=$db (from $from)\" said || { cat said; exit $db; }; }\n"
               "if [ $1 = etc ]; then file /etc/latchkey.json 1; used 1 /etc/latchkey.json; (unset HOME; used 1 "
               "/etc/latchkey.json) || exit; (HOME=; used 1 /etc/latchkey.json) || exit; fi\n"
               "file " OURS " 2; used 2 $HOME/.config/latchkey.json\n"
               "export REDIS_URL=; used 2 $HOME/.config/latchkey.json\n"
               "export REDIS_URL=\"${url}3\"; used 3 REDIS_URL\n"
               "export LATCHKEY_URL=\"${url}4\"; used 4 LATCHKEY_URL\n"
               "file file 5; used 5 file --config file\n"
               "used 6 --url -u \"${url}6\"\n"
               "END", url);
    assert_exits(0, w, "sh sources here");
    if (command(w, "unshare -rm mount -t tmpfs none /etc")->code != 0)
        print_message("/etc/latchkey.json was not tried: no mount namespace is to be had here\n");
    else
        assert_exits(0, w, "rm " OURS "; cp /etc/ld.so.cache cache; unshare -rm sh -c 'mount -t tmpfs none /etc && "
                           "cp cache /etc/ld.so.cache && sh sources etc'");
    world_redis(w, "FLUSHALL");
}

/* The next source may name another server. A missing folder is a missing file, and no error. */
static void a_source_that_is_wrong_ends_the_search(struct world *w)
{
    static const struct {
        const char *file, *words;
    } wrong[] = {
        { "echo nonsense >" OURS, "latchkey.json:1: no JSON" },
        { "echo '{\"leese\": \"1s\"}' >" OURS, "did you mean lease?" },
        { ": >" OURS, OURS },
        { "mkdir " OURS, "is a directory" },
        { "ln -s /nowhere " OURS, "no such file" },
        { "ln -s latchkey.json " OURS, "cannot be read" },
        { "echo '{}' >" OURS "; export LATCHKEY_URL=", "URL: begins with no scheme" },
        { "echo '{}' >" OURS "; export REDIS_URL=nonsense", "URL: begins with no scheme" },
    };
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const struct ran *ran = command(w, CRON "rm -rf home; mkdir -p home/.config; %s; latchkey run a touch ran",
                                        wrong[i].file);
        if (ran->code != 78 || strstr(ran->err, wrong[i].words) == NULL)
            fail_msg("%s: code %d, %s", wrong[i].file, ran->code, ran->err);
    }
    if (geteuid() != 0)
        assert_exits(78, w, CRON "rm -rf home; mkdir -p home/.config; echo '{}' >" OURS "; chmod 0 home/.config; "
                            "latchkey run a touch ran; code=$?; chmod 700 home/.config; grep -q 'no permission' err && "
                            "exit $code");
    assert_false(command_left(w, "ran"));
    if (machine_has_a_server())
        return;
    assert_that(strstr(command(w, CRON "rm -rf home; touch home; latchkey run a true")->err, complaint) != NULL);
}

/* The server is in each object of --json, and the password is nowhere. */
static void the_server_is_named_without_the_password(struct world *w)
{
    static const char *const printing[] = { "run --json a true",     "hold --json a",        "status --json a b",
                                            "watch --json --for 1ms a", "sem status --json p", "latch status --json l",
                                            "bench --json --seconds 1" };
    world_redis(w, "ACL SETUSER app on >opensesame ~* &* +@all");
    world_allow(w, "*");
    assert_exits(0, w, CRON "mkdir -p home/.config; echo '{\"path\": \"%s\", \"username\": \"app\", "
                       "\"password\": \"${WORD}\", \"timeouts\": {\"command\": \"9s\"}}' >" OURS "; export WORD=opensesame; "
                       "latchkey sem resize p 2 && latchkey latch create l 2 || exit; ! latchkey run a env | grep WORD || exit; "
                       "latchkey run -v a true 2>said && grep -qx \"latchkey: server unix://app:\\*\\*\\*@$PWD/redis.sock?db=0 "
                       "(from $HOME/.config/latchkey.json)\" said", w->socket);
    for (unsigned i = 0; i < sizeof printing / sizeof printing[0]; i++)
        assert_exits(0, w, CRON "export WORD=opensesame; latchkey %s >said 2>&1 && [ -s said ] && ! grep -v "
                           "',\"server\":\"unix://app:\\*\\*\\*@[^\"]*/redis.sock?db=0\"}$' said", printing[i]);
    assert_exits(0, w, CRON "export WORD=opensesame; latchkey run a sh -c 'WORD=opensesame latchkey "
                       "force-release --yes --json a' >said; grep -c "
                       "'\"server\":\"unix://app:\\*\\*\\*@.*\"}$' said | grep -qx 2 && ! grep -r opensesame .");
}

int main(void)
{
    return world_run(without_a_server_no_command_begins, no_command_is_left_out, localhost_is_not_connected_to,
                     the_words_name_what_helps, each_source_has_its_place, a_source_that_is_wrong_ends_the_search,
                     the_server_is_named_without_the_password);
}
