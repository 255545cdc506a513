/* SPDX-License-Identifier: MIT */
/*
 * url_test.c - what a URL says is understood exactly, or refused in words that help and keep secrets
 *
 * labels: memory
 */
#include "assert_lk.h"
#include "config/options.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Stands for a password in the tables; no words may hold it. */
#define SECRET "s3cr3t"

/* As assert_lk(), and names the URL. */
static void read_as(int code, struct lk__options *options, const char *url)
{
    errno = ERRNO_MARK;
    int rc = lk__options_url(options, url);
    if (rc != code || errno != ERRNO_MARK)
        fail_msg("%s: %s, not %s (errno %d): %s", url, code_name(rc), code_name(code), errno, lk_errortext());
}

/* --- what URLs mean ------------------------------------------------------------------------------------ */

/* One field as text, "-" for an absent string. */
static const char *field(const struct lk__options *o, const char *name, char *text, size_t size)
{
    const struct lk__address nowhere = { 0 };
    const struct lk__address *first = o->servers != NULL ? &o->servers[0] : &nowhere;
    const struct lk__address *last = o->servers != NULL ? &o->servers[o->server_count - 1] : &nowhere;
    const struct {
        const char *name, *text;
    } texts[] = { { "path", o->path },
                  { "host", first->host },
                  { "last_host", last->host },
                  { "service", o->service },
                  { "sentinel_user", o->sentinel_user },
                  { "sentinel_password", o->sentinel_password },
                  { "user", o->user },
                  { "password", o->password },
                  { "prefix", o->prefix },
                  { "client_name", o->client_name },
                  { "program", o->program },
                  { "arguments", o->arguments },
                  { "why", o->why },
                  { "cacert", o->tls.cacert },
                  { "capath", o->tls.capath },
                  { "cert", o->tls.certificate },
                  { "key", o->tls.key },
                  { "sni", o->tls.sni } };
    const struct {
        const char *name;
        long long number;
    } numbers[] = { { "port", first->port },
                    { "last_port", last->port },
                    { "servers", o->server_count },
                    { "clock_skew", o->clock_skew_ms },
                    { "db", o->db },
                    { "warn_wait", o->warn_wait_ms },
                    { "warn_hold", o->warn_hold_ms },
                    { "wait_replicas", o->wait_replicas },
                    { "lease", o->lease_ms },
                    { "command", o->command_timeout_ms },
                    { "connect", o->connect_timeout_ms },
                    { "poll", o->poll_ms },
                    { "retry_min", o->retry_min_ms },
                    { "retry_max", o->retry_max_ms },
                    { "keepalive", o->keepalive_ms },
                    { "no_pubsub", o->no_pubsub },
                    { "redisson", o->redisson },
                    { "strict", o->strict },
                    { "undescribed", o->undescribed },
                    { "tls", o->tls.on },
                    { "unverified", o->tls.unverified } };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(name, texts[i].name) == 0)
            return texts[i].text != NULL ? texts[i].text : "-";
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(name, numbers[i].name) == 0)
            snprintf(text, size, "%lld", numbers[i].number);
    return text;
}

static const struct {
    const char *url, *field, *value;
} meanings[] = {
    /* the server */
    { "redis://cache.example", "host", "cache.example" },
    { "redis://cache.example", "port", "6379" },
    { "redis://cache.example", "path", "-" },
    { "redis://cache_1.example:6380", "port", "6380" },
    { "redis://cache:1", "port", "1" },
    { "redis://cache:65535/", "port", "65535" },
    { "REDIS://cache", "host", "cache" },
    { "valkey://cache", "host", "cache" },
    { "ValKey://cache", "host", "cache" },
    { "redis://", "host", "127.0.0.1" },
    { "redis://cache", "tls", "0" },
    { "unix:///run/redis.sock", "tls", "0" },
    { "rediss://cache", "tls", "1" },
    { "RedisS://app:p@cache:6380/2?lease=2s", "tls", "1" },
    { "valkeys://cache", "tls", "1" },
    { "valkeys://cache", "host", "cache" },
    { "rediss://cache", "port", "6379" },
    { "rediss://cache", "unverified", "0" },
    { "rediss://cache?verify=yes", "unverified", "0" },
    { "rediss://cache?verify=no", "unverified", "1" },
    { "rediss://cache?cacert=/etc/ca%20one.pem", "cacert", "/etc/ca one.pem" },
    { "rediss://cache", "cacert", "-" },
    { "rediss://cache?capath=/etc/trusted", "capath", "/etc/trusted" },
    { "rediss://cache?cert=/etc/c.pem&key=/etc/k.pem", "cert", "/etc/c.pem" },
    { "rediss://cache?cert=/etc/c.pem&key=/etc/k.pem", "key", "/etc/k.pem" },
    { "rediss://10.0.0.7?sni=cache.example", "sni", "cache.example" },
    { "redis:///3", "host", "127.0.0.1" },
    { "redis://:6380", "host", "127.0.0.1" },
    { "redis://:6380", "port", "6380" },
    { "redis://10.1.2.3:99", "host", "10.1.2.3" },
    { "redis://[::1]", "host", "::1" },
    { "redis://[::1]:6380/2", "port", "6380" },
    { "redis://[2001:db8::7]/2", "db", "2" },
    { "redis://[fe80::1%25eth0]:7", "host", "fe80::1%eth0" },
    { "redis://c%61che", "host", "cache" },
    { "redis://cache", "servers", "1" },
    { "redis://cache", "service", "-" },
    /* several, of which the master has one */
    { "redis://a:1,b:2", "servers", "2" },
    { "redis://a:1,b:2", "host", "a" },
    { "redis://a:1,b:2", "last_host", "b" },
    { "redis://a:1,b:2/3?lease=10s", "last_port", "2" },
    { "redis://a:1,b:2/3", "db", "3" },
    { "redis://app:" SECRET "@a,[::1]:7,c", "last_port", "6379" },
    { "redis://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", "servers", "16" },
    { "unix:///run/a,b", "servers", "0" },
    /* Sentinels */
    { "redis-sentinel://a,b:1,c/orders", "service", "orders" },
    { "redis+sentinel://a,b:1,c/orders", "servers", "3" },
    { "Valkey-Sentinel://a,b:1/orders", "port", "26379" },
    { "valkey+SENTINEL://a,b:1/orders", "last_port", "1" },
    { "rediss-sentinel://a,b/orders?sni=c", "service", "orders" },
    { "valkeys+sentinel://a,b/orders?verify=no", "servers", "2" },
    { "redis-sentinel:///orders", "host", "127.0.0.1" },
    { "redis-sentinel://a/0", "service", "0" },
    { "redis-sentinel://a/orders/", "db", "0" },
    { "redis-sentinel://a/orders/2", "db", "2" },
    { "redis-sentinel://a/orders?db=2", "db", "2" },
    { "redis-sentinel://a/o%2Fr%64er%20s", "service", "o/rder s" },
    { "redis-sentinel://app:" SECRET "@a/orders", "password", SECRET },
    { "redis-sentinel://app:" SECRET "@a/orders", "sentinel_password", "-" },
    { "redis-sentinel://a/orders?sentinel_password=" SECRET, "sentinel_password", SECRET },
    { "redis-sentinel://a/orders?sentinel_password=$%7BHOME%7D", "sentinel_password", "${HOME}" },
    { "redis-sentinel://a/orders?sentinel_user=watch&sentinel_password=" SECRET, "sentinel_user", "watch" },
    { "redis-sentinel://a/orders?sentinel_user=watch&sentinel_password=" SECRET, "password", "-" },
    /* replicas that acknowledge */
    { "redis://cache", "warn_wait", "3000" },
    { "redis://cache", "warn_hold", "-1" },
    { "redis://cache?warn_wait=250ms&warn_hold=1m", "warn_wait", "250" },
    { "redis://cache?warn_wait=250ms&warn_hold=1m", "warn_hold", "60000" },
    { "redis://cache?warn_wait=no", "warn_wait", "-1" },
    { "redis://cache", "wait_replicas", "0" },
    { "redis://cache?wait_replicas=0", "wait_replicas", "0" },
    { "redis-sentinel://a/orders?wait_replicas=100", "wait_replicas", "100" },
    /* clocks of servers that replace each other */
    { "redis://cache", "clock_skew", "0" },
    { "redis://cache?clock_skew=1s", "clock_skew", "1000" },
    { "redis://a,b", "clock_skew", "500" },
    { "redis-sentinel://a/orders", "clock_skew", "500" },
    { "redis-sentinel://a/orders?clock_skew=25ms&lease=100ms", "clock_skew", "25" },
    { "redis://a,b?lease=2s", "command", "400" },
    /* unix sockets */
    { "unix:///run/redis.sock", "path", "/run/redis.sock" },
    { "unix:///run/redis.sock", "host", "-" },
    { "unix://run/redis.sock", "path", "run/redis.sock" },
    { "unix://redis.sock", "path", "redis.sock" },
    { "unix:///a%20b%25%3Fc", "path", "/a b%?c" },
    { "unix:///run/a:b,c", "path", "/run/a:b,c" },
    { "Redis+Unix:///run/redis.sock?db=4", "db", "4" },
    { "redis-socket:///run/redis.sock", "path", "/run/redis.sock" },
    { "unix://app:" SECRET "@/run/redis.sock", "path", "/run/redis.sock" },
    { "unix://app:" SECRET "@/run/redis.sock", "user", "app" },
    { "unix://:" SECRET "@run/redis.sock", "path", "run/redis.sock" },
    { "unix://:" SECRET "@run/redis.sock", "password", SECRET },
    /* credentials */
    { "redis://cache", "user", "-" },
    { "redis://cache", "password", "-" },
    { "redis://app:" SECRET "@cache", "user", "app" },
    { "redis://app:" SECRET "@cache", "password", SECRET },
    { "redis://:" SECRET "@cache", "user", "-" },
    { "redis://:" SECRET "@cache", "password", SECRET },
    { "redis://app:@cache", "password", "" },
    { "redis://:@cache", "user", "-" },
    { "redis://:@cache", "password", "-" },
    { "redis://a%3ab:p%40%2F%3f%23%25:x@cache", "user", "a:b" },
    { "redis://a%3ab:p%40%2F%3f%23%25:x@cache", "password", "p@/?#%:x" },
    { "redis://app:p+q@cache", "password", "p+q" },
    /* database */
    { "redis://cache", "db", "0" },
    { "redis://cache/", "db", "0" },
    { "redis://cache/15", "db", "15" },
    { "redis://cache?db=15", "db", "15" },
    { "redis://cache/?db=15", "db", "15" },
    { "redis://cache/2147483647", "db", "2147483647" },
    /* other parameters */
    { "redis://cache?prefix=app:", "prefix", "app:" },
    { "redis://cache?prefix=%7Bapp%7D:", "prefix", "{app}:" },
    { "redis://cache?prefix=a=b?c/d", "prefix", "a=b?c/d" },
    { "redis://cache", "prefix", "-" },
    { "redis://cache?client_name=worker-7", "client_name", "worker-7" },
    { "redis://cache", "client_name", "-" },
    { "redis://cache?protocol=2&db=1", "db", "1" },
    { "redis://cache", "no_pubsub", "0" },
    { "redis://cache?pubsub=no", "no_pubsub", "1" },
    { "redis://cache?pubsub=yes", "no_pubsub", "0" },
    { "redis://cache?redisson=yes", "redisson", "1" },
    { "redis://cache?redisson=no", "redisson", "0" },
    { "redis://cache?strict=yes", "strict", "1" },
    { "redis://cache", "undescribed", "0" },
    { "redis://cache?describe=yes", "undescribed", "0" },
    { "redis://cache?describe=no", "undescribed", "1" },
    { "redis://cache", "why", "-" },
    { "redis://cache?why=nightly%20export&describe=yes", "why", "nightly export" },
    { "redis://cache?program=export", "program", "export" },
    { "redis://cache?arguments=--all%20--quiet", "arguments", "--all --quiet" },
    { "redis://cache", "strict", "0" },
    /* durations */
    { "redis://cache?lease=1500ms", "lease", "1500" },
    { "redis://cache?lease=1.5s", "lease", "1500" },
    { "redis://cache?lease=00.25m", "lease", "15000" },
    { "redis://cache?lease=0.001h", "lease", "3600" },
    { "redis://cache?lease=24h", "lease", "86400000" },
    { "redis://cache?lease=100ms", "lease", "100" },
    { "redis://cache?lease=%31s", "lease", "1000" },
    { "redis://cache?keepalive=no", "keepalive", "-1" },
    { "redis://cache?keepalive=1m", "keepalive", "60000" },
    { "redis://cache?poll=1ms", "poll", "1" },
    { "redis://cache?retry_min=1.000ms", "retry_min", "1" },
    /* what is not said follows the lease */
    { "redis://cache", "lease", "30000" },
    { "redis://cache", "command", "1000" },
    { "redis://cache", "connect", "2000" },
    { "redis://cache", "poll", "1000" },
    { "redis://cache", "retry_min", "20" },
    { "redis://cache", "retry_max", "3000" },
    { "redis://cache", "keepalive", "15000" },
    { "redis://cache?lease=1s", "command", "200" },
    { "redis://cache?lease=1s", "connect", "333" },
    { "redis://cache?lease=1s", "poll", "500" },
    { "redis://cache?lease=1s", "retry_max", "100" },
    { "redis://cache?lease=100ms", "command", "20" },
    { "redis://cache?lease=100ms", "retry_min", "10" },
    { "redis://cache?lease=100ms", "retry_max", "10" },
    { "redis://cache?retry_min=10s", "retry_max", "10000" },
    { "redis://cache?retry_max=5ms", "retry_min", "5" },
    { "redis://cache?retry_min=7ms&retry_max=7ms", "retry_max", "7" },
    /* the largest that fit */
    { "redis://cache?command_timeout=9848ms", "command", "9848" },
    { "redis://cache?lease=100ms&command_timeout=31ms", "command", "31" },
    { "redis://cache?poll=30s", "poll", "30000" },
    { "redis://cache?connect_timeout=30s", "connect", "30000" },
};

static void a_url_means_this(void)
{
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
        struct lk__options options;
        char text[32] = "no such field";
        read_as(0, &options, meanings[i].url);
        const char *value = field(&options, meanings[i].field, text, sizeof text);
        if (strcmp(value, meanings[i].value) != 0)
            fail_msg("%s: %s is %s, not %s", meanings[i].url, meanings[i].field, value, meanings[i].value);
        lk__options_clear(&options);
    }
}

/* --- what is refused, and how ---------------------------------------------------------------------------- */

static const struct {
    const char *url;
    int code;
    const char *errmsg;
} refusals[] = {
    /* scheme */
    { "", EINVAL, "scheme" },
    { "cache:6379", EINVAL, "scheme" },
    { "/run/redis.sock", EINVAL, "scheme" },
    { "app:" SECRET "@cache", EINVAL, "scheme" },
    { "://cache", EINVAL, "unknown scheme" },
    { "http://cache", EINVAL, "unknown scheme" },
    { " redis://cache", EINVAL, "unknown scheme" },
    { SECRET "://cache", EINVAL, "unknown scheme" },
    /* a cluster */
    { "valkey-cluster://a,b/1", EINVAL, "db: a cluster has database 0 alone" },
    { "redis+cluster://a,b?db=2", EINVAL, "db: a cluster has database 0 alone" },
    { "-cluster://a", EINVAL, "unknown scheme" },
    { "unix-cluster://a", EINVAL, "unknown scheme" },
    { "redis-cluster-sentinel://a/m", EINVAL, "unknown scheme" },
    /* TLS */
    { "redis://cache?cacert=/etc/ca.pem", EINVAL, "cacert: is for TLS: the scheme must be rediss or valkeys" },
    { "redis://cache?capath=/etc/certs", EINVAL, "capath: is for TLS" },
    { "redis://cache?cert=/etc/c.pem", EINVAL, "cert: is for TLS" },
    { "redis://cache?key=/etc/k.pem", EINVAL, "key: is for TLS" },
    { "redis://cache?sni=cache", EINVAL, "sni: is for TLS" },
    { "redis://cache?verify=no", EINVAL, "verify: is for TLS" },
    { "unix:///run/redis.sock?verify=yes", EINVAL, "verify: is for TLS" },
    { "rediss://cache?verify=full", EINVAL, "verify: must be yes or no" },
    { "rediss://cache?verify=none", EINVAL, "verify: must be yes or no" },
    { "rediss://cache?cacert=", EINVAL, "cacert: must not be empty" },
    { "rediss://cache?sni=a&sni=b", EINVAL, "sni: is given twice" },
    { "rediss://cache?cert=/etc/c.pem", EINVAL, "cert: needs key" },
    { "rediss://cache?key=/etc/k.pem", EINVAL, "key: needs cert" },
    { "unixs:///run/redis.sock", EINVAL, "unknown scheme" },
    /* credentials */
    { "redis://" SECRET "@cache", EINVAL, "user:password@" },
    { "redis://@cache", EINVAL, "user:password@" },
    { "redis://app:" SECRET "@home@cache", EINVAL, "%40" },
    { "redis://app:" SECRET "/x@cache", EINVAL, "%2F" },
    { "redis://app:x?" SECRET "@cache", EINVAL, "%3F" },
    { "redis://app:x?" SECRET "=1@cache", EINVAL, "%3F" },
    { "redis://app:x#" SECRET "@cache", EINVAL, "%23" },
    { "redis://app:" SECRET "%@cache", EINVAL, "password: has a %" },
    { "redis://app:" SECRET "%0@cache", EINVAL, "%25" },
    { "redis://app:" SECRET "%g0@cache", EINVAL, "%25" },
    { "redis://app:" SECRET "%00@cache", EINVAL, "%00" },
    { "redis://a%zz:" SECRET "@cache", EINVAL, "user: has a %" },
    { "redis://app:" SECRET " x@cache", EINVAL, "blank" },
    { "redis://app:" SECRET "\n@cache", EINVAL, "control character" },
    { "redis://app:" SECRET, EINVAL, "port" },
    { "redis://:" SECRET, EINVAL, "port" },
    /* host and port */
    { "redis://cache:", EINVAL, "1 to 65535" },
    { "redis://cache:0", EINVAL, "1 to 65535" },
    { "redis://cache:65536", EINVAL, "1 to 65535" },
    { "redis://cache:-1", EINVAL, "1 to 65535" },
    { "redis://cache:+1", EINVAL, "1 to 65535" },
    { "redis://cache:99999999999999999999", EINVAL, "1 to 65535" },
    { "redis://::1", EINVAL, "[ ]" },
    { "redis://2001:db8::7/2", EINVAL, "[ ]" },
    { "redis://[::1", EINVAL, "IPv6" },
    { "redis://[cache]", EINVAL, "IPv6" },
    { "redis://[10.1.2.3]", EINVAL, "IPv6" },
    { "redis://[]", EINVAL, "IPv6" },
    { "redis://[fe80::1%25]", EINVAL, "IPv6" },
    { "redis://[fe80::1%eth0]", EINVAL, "host: has a %" },
    { "redis://[::1]6379", EINVAL, "port" },
    { "redis://ca$che", EINVAL, "letters" },
    { "redis://ca%00che", EINVAL, "%00" },
    { "redis://cache%2F1", EINVAL, "letters" },
    /* several */
    { "redis://a,,b", EINVAL, "missing beside a comma" },
    { "redis://,a", EINVAL, "missing beside a comma" },
    { "redis://a,", EINVAL, "missing beside a comma" },
    { "redis://a,b:0", EINVAL, "1 to 65535" },
    { "redis://a:" SECRET ",b", EINVAL, "port" },
    { "redis://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", EINVAL, "16 addresses at most" },
    /* Sentinels */
    { "redis-sentinel://a,b", EINVAL, "must name the master" },
    { "redis-sentinel://a,b/", EINVAL, "must name the master" },
    { "redis-sentinel://a,b//0", EINVAL, "must name the master" },
    { "redis-sentinel://a/or%00ders", EINVAL, "master: has a %00" },
    { "redis-sentinel://a/orders/first", EINVAL, "db: must" },
    { "redis-sentinel://a/orders/1?db=1", EINVAL, "db: is given twice" },
    { "unix-sentinel:///a/orders", EINVAL, "unknown scheme" },
    { "-sentinel://a/orders", EINVAL, "unknown scheme" },
    { "redis-sentinel-sentinel://a/orders", EINVAL, "unknown scheme" },
    { "redis-sentinel://a/orders?sentinel_user=watch", EINVAL, "sentinel_user: needs a sentinel_password" },
    { "redis://a,b?sentinel_password=" SECRET, EINVAL, "sentinel_password: is for Sentinels" },
    { "redis://a,b?master=orders", EINVAL, "master: no such parameter" },
    /* path */
    { "redis://cache/first", EINVAL, "db: must" },
    { "redis://cache/-1", EINVAL, "db: must" },
    { "redis://cache/2147483648", EINVAL, "db: must" },
    { "redis://cache/1/2", EINVAL, "db: must" },
    { "redis://cache//1", EINVAL, "db: must" },
    { "redis://cache/0x1", EINVAL, "db: must" },
    { "redis://cache/1?db=1", EINVAL, "db: is given twice" },
    { "unix://", EINVAL, "path" },
    { "unix://?db=1", EINVAL, "path" },
    { "unix:///run/a%00b", EINVAL, "path: has a %00" },
    { "unix:///run/a%b", EINVAL, "path: has a %" },
    { "unix:///run/a@b", EINVAL, "user" },
    { "unix:///1234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890"
      "1234567",
      EINVAL, "107 bytes" },
    /* parameters */
    { "redis://cache#x", EINVAL, "fragment" },
    { "redis://cache?", EINVAL, "empty parameter" },
    { "redis://cache?db=1&", EINVAL, "empty parameter" },
    { "redis://cache?db=1&&poll=1s", EINVAL, "empty parameter" },
    { "redis://cache?=1", EINVAL, "empty parameter" },
    { "redis://cache?leese=30s", EINVAL, "leese: no such parameter; did you mean lease?" },
    { "redis://cache?Lease=30s", EINVAL, "Lease: no such parameter; did you mean lease?" },
    { "redis://cache?leas=30s", EINVAL, "leas: no such parameter; did you mean lease?" },
    { "redis://cache?timeouts.connect=1s", EINVAL,
      "timeouts.connect: no such parameter; did you mean connect_timeout?" },
    { "redis://cache?password=" SECRET, EINVAL, "password: no such parameter" },
    { "redis://cache?username=app", EINVAL, "username: no such parameter" },
    { "redis://cache?l\xff\xc3=1", EINVAL, "l??: no such parameter" },
    { "redis://cache?lease=1s&lease=1s", EINVAL, "lease: is given twice" },
    { "redis://cache?strict", EINVAL, "strict: has no value" },
    { "redis://cache?strict=", EINVAL, "strict: must be yes or no" },
    { "redis://cache?describe=none", EINVAL, "describe: must be yes or no" },
    { "redis://cache?describe=no&why=export", EINVAL, "why: is for describe=yes" },
    { "redis://cache?program=export&describe=no", EINVAL, "program: is for describe=yes" },
    { "redis://cache?arguments=--all&describe=no", EINVAL, "arguments: is for describe=yes" },
    { "redis://cache?why=", EINVAL, "why: must not be empty" },
    { "redis://cache?strict=true", EINVAL, "strict: must be yes or no" },
    { "redis://cache?pubsub=0", EINVAL, "pubsub: must be yes or no" },
    { "redis://cache?redisson=YES", EINVAL, "redisson: must be yes or no" },
    { "redis://cache?protocol=3", EINVAL, "protocol: must be 2" },
    { "redis://cache?prefix=", EINVAL, "prefix: it is empty" },
    { "redis://cache?prefix={", EINVAL, "prefix: it may have braces only" },
    { "redis://cache?prefix=latchkey:", EINVAL, "prefix: it begins with latchkey:" },
    { "redis://cache?prefix=%00", EINVAL, "prefix: has a %00" },
    { "redis://cache?prefix=%4", EINVAL, "prefix: has a %" },
    { "redis://cache?client_name=", EINVAL, "client_name: must not be empty" },
    { "redis://cache?client_name=a%20b", EINVAL, "client_name: must be printable" },
    { "redis://cache?client_name=%c3%a9", EINVAL, "client_name: must be printable" },
    /* durations */
    { "redis://cache?lease=30", EINVAL, "lease: must be whole milliseconds up to 24h with their unit" },
    { "redis://cache?lease=", EINVAL, "unit" },
    { "redis://cache?lease=s", EINVAL, "unit" },
    { "redis://cache?lease=30us", EINVAL, "unit" },
    { "redis://cache?lease=30S", EINVAL, "unit" },
    { "redis://cache?lease=30%20s", EINVAL, "unit" },
    { "redis://cache?lease=-30s", EINVAL, "unit" },
    { "redis://cache?lease=+30s", EINVAL, "unit" },
    { "redis://cache?lease=.5s", EINVAL, "unit" },
    { "redis://cache?lease=1.s", EINVAL, "unit" },
    { "redis://cache?lease=1e3s", EINVAL, "unit" },
    { "redis://cache?lease=1,5s", EINVAL, "unit" },
    { "redis://cache?lease=30sx", EINVAL, "unit" },
    { "redis://cache?lease=no", EINVAL, "unit" },
    { "redis://cache?lease=0s", EINVAL, "unit" },
    { "redis://cache?poll=0.5ms", EINVAL, "whole milliseconds" },
    { "redis://cache?lease=24.01h", EINVAL, "24h" },
    { "redis://cache?lease=999999999h", EINVAL, "24h" },
    { "redis://cache?lease=9999999999999999999s", EINVAL, "24h" },
    { "redis://cache?lease=1.0000000000s", EINVAL, "unit" },
    { "redis://cache?keepalive=off", EINVAL, "keepalive: must be a time" },
    { "redis://cache?keepalive=0s", EINVAL, "or no" },
    { "redis://cache?warn_wait=0", EINVAL, "warn_wait: must be a time up to 24h with its unit" },
    { "redis://cache?warn_hold=yes", EINVAL, "warn_hold: must be a time up to 24h with its unit" },
    { "redis://cache?wait_replicas=101", EINVAL, "wait_replicas: must be a number from 0 to 100" },
    { "redis://cache?wait_replicas=-1", EINVAL, "from 0 to 100" },
    { "redis://cache?wait_replicas=all", EINVAL, "from 0 to 100" },
    { "redis://cache?wait_replicas=", EINVAL, "from 0 to 100" },
    /* times that cannot work together */
    { "redis://cache?lease=99ms", EINVAL, "lease: must be at least 100ms" },
    { "redis://a,b?lease=1999ms", EINVAL, "lease: must be at least 4 x clock_skew=500ms" },
    { "redis://cache?lease=4s&clock_skew=1001ms", EINVAL, "4004ms" },
    { "redis://a,b?lease=2s&command_timeout=406ms", EINVAL, "at most 405ms" },
    { "redis://cache?command_timeout=20s", EINVAL,
      "command_timeout: 20s does not fit into lease=30s twice: at most 9848ms, or a longer lease" },
    { "redis://cache?command_timeout=9849ms", EINVAL, "at most 9848ms" },
    { "redis://cache?lease=100ms&command_timeout=32ms", EINVAL, "lease=100ms twice: at most 31ms" },
    { "redis://cache?lease=1s&poll=1001ms", EINVAL, "poll: 1001ms is longer than lease=1s" },
    { "redis://cache?connect_timeout=31s", EINVAL, "connect_timeout: 31s is longer than lease=30s" },
    { "redis://cache?retry_min=2s&retry_max=1s", EINVAL, "retry_min: 2s is longer than retry_max=1s" },
};

/* A guess that is far-fetched is worse than none. */
static void an_unknown_parameter_has_the_nearest_name(void)
{
    static const char *const names[][2] = {
        { "leese", "lease" },
        { "laese", "lease" },
        { "lese", "lease" },
        { "LEASE", "lease" },
        { "commandTimeout", "command_timeout" },
        { "client-name", "client_name" },
        { "keep_alive", "keepalive" },
        { "pol", "poll" },
        { "retry.min", "retry_min" },
        { "retry-max", "retry_max" },
        { "timeouts.command", "command_timeout" },
        { "port", NULL },
        { "d", NULL },
        { "dv", NULL },
        { "timeout", NULL },
        { "lee", NULL },
        { "username", NULL },
        { "cacerts", "cacert" },
        { "ssl_ca_certs", NULL },
        { "a_parameter_that_is_much_longer_than_any_of_them_is", NULL },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct lk__options options;
        char url[96], words[160];
        snprintf(url, sizeof url, "redis://cache?%s=1", names[i][0]);
        assert_lk(EINVAL, lk__options_url(&options, url));
        snprintf(words, sizeof words, "URL: %.47s: no such parameter%s%s%s", names[i][0],
                 names[i][1] != NULL ? "; did you mean " : "", names[i][1] != NULL ? names[i][1] : "",
                 names[i][1] != NULL ? "?" : "");
        assert_string_equal(lk_errortext(), words);
    }
}

/* In logs and terminals the text of an error is public. */
static void a_url_is_refused_in_words(void)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        struct lk__options options, before;
        memset(&options, 0x5a, sizeof options);
        before = options;
        read_as(refusals[i].code, &options, refusals[i].url);
        if (strstr(lk_errortext(), refusals[i].errmsg) == NULL)
            fail_msg("%s: \"%s\" does not say \"%s\"", refusals[i].url, lk_errortext(), refusals[i].errmsg);
        if (strstr(lk_errortext(), SECRET) != NULL)
            fail_msg("\"%s\" tells the password", lk_errortext());
        assert_memory_equal(&options, &before, sizeof options);
    }
}

/* --- printing -------------------------------------------------------------------------------------------- */

static const struct {
    const char *url, *printed;
} prints[] = {
    { "valkeys://app:" SECRET "@cache?cacert=a", "rediss://app:***@cache:6379/0" },
    { "redis://", "redis://127.0.0.1:6379/0" },
    { "valkey://cache/2?lease=1s", "redis://cache:6379/2" },
    { "redis://app:" SECRET "@cache:6380", "redis://app:***@cache:6380/0" },
    { "redis://:" SECRET "@cache", "redis://:***@cache:6379/0" },
    { "redis://app:@cache", "redis://app:***@cache:6379/0" },
    { "redis://a%3ab%2f%c3%a9~-:" SECRET "@cache", "redis://a%3Ab%2F%C3%A9~-:***@cache:6379/0" },
    { "redis://[::1]:7/3", "redis://[::1]:7/3" },
    { "redis://[fe80::1%25eth0]", "redis://[fe80::1%25eth0]:6379/0" },
    { "redis://:" SECRET "@a:1,[::1]/3", "redis://:***@a:1,[::1]:6379/3" },
    { "valkey+sentinel://app:" SECRET "@a,b:1/o%2Fs?sentinel_password=" SECRET,
      "redis-sentinel://app:***@a:26379,b:1/o%2Fs/0" },
    { "unix:///run/redis.sock?db=3", "unix:///run/redis.sock?db=3" },
    { "unix://run/a%20b%3f%40:c", "unix://run/a%20b%3F%40%3Ac?db=0" },
    { "unix://app:" SECRET "@/run/redis.sock", "unix://app:***@/run/redis.sock?db=0" },
};

static void a_print_reads_as_the_same_server(void)
{
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
        struct lk__options options, again;
        char text[512], text_again[512];
        read_as(0, &options, meanings[i].url);
        lk__options_print(&options, text, sizeof text);
        assert_null(strstr(text, SECRET));
        read_as(0, &again, text);
        lk__options_print(&again, text_again, sizeof text_again);
        assert_string_equal(text, text_again);
        lk__options_clear(&options);
        lk__options_clear(&again);
    }
}

static void a_print_hides_the_password_and_fits(void)
{
    for (size_t i = 0; i < sizeof prints / sizeof *prints; i++) {
        struct lk__options options;
        char text[128];
        read_as(0, &options, prints[i].url);
        lk__options_print(&options, text, sizeof text);
        assert_string_equal(text, prints[i].printed);
        for (size_t size = 0; size < sizeof text; size++) {
            memset(text, '+', sizeof text);
            lk__options_print(&options, text, size);
            size_t length = size == 0 ? 0 : strlen(text);
            assert_true(size == 0 || length < size);
            assert_memory_equal(text, prints[i].printed, length);
            assert_true(text[size] == '+');
        }
        lk__options_clear(&options);
    }
}

/* --- hostile and tight ------------------------------------------------------------------------------------- */

/* Pieces that a parser could trip over, put together at random: an answer, never a crash, print stable. */
static void no_url_is_too_odd(void)
{
    static const char *const pieces[] = { "redis://",  "redis-sentinel://",
                                          "valkey://", "@",
                                          ":",         "/",
                                          "?",         "#",
                                          "%",         "%4",
                                          "%41",       "%00",
                                          "&",         "=",
                                          "[",         "]",
                                          "::1",       "db",
                                          "lease=1s",  "db=1",
                                          ",",         "keepalive",
                                          "no",        "6379",
                                          "h",         "1.5s",
                                          "\xff",      " ",
                                          "{t}",       "prefix=",
                                          "a:b@" };
    unsigned seed = 20; /* a fixed one, so that a failure comes back */
    for (int i = 0; i < 20000; i++) {
        struct lk__options options, again;
        char url[256], text[1024], text_again[1024];
        seed = seed * 1103515245U + 12345U;
        int used = snprintf(url, sizeof url, "%s", pieces[seed >> 16 & 1]);
        for (unsigned n = (seed >> 20) % 10; n > 0; n--) {
            seed = seed * 1103515245U + 12345U;
            used += snprintf(url + used, sizeof url - (size_t)used, "%s",
                             pieces[(seed >> 16) % (sizeof pieces / sizeof *pieces)]);
        }
        if (lk__options_url(&options, url) != 0)
            continue;
        lk__options_print(&options, text, sizeof text);
        read_as(0, &again, text);
        lk__options_print(&again, text_again, sizeof text_again);
        assert_string_equal(text, text_again);
        lk__options_clear(&options);
        lk__options_clear(&again);
    }
}

/* Each URL of the tables, cut short anywhere, is answered. */
static void no_url_is_too_short(void)
{
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        for (size_t length = strlen(meanings[i].url); length-- > 0;) {
            struct lk__options options;
            char *url = strndup(meanings[i].url, length); /* of its own size, for sanitizers */
            int rc = lk__options_url(&options, url);
            assert_true(rc == 0 || rc == EINVAL || rc == ENOTSUP);
            if (rc == 0)
                lk__options_clear(&options);
            free(url);
        }
}

static void no_url_is_too_long(void)
{
    const size_t size = 1 << 20;
    struct lk__options options;
    char text[64], *url = malloc(size + 1);
    assert_non_null(url);
    memset(url, 'a', size);
    url[size] = '\0';
    memcpy(url, "redis://", 8);
    read_as(EINVAL, &options, url);
    memcpy(url + size - 4, ":x@h", 4);
    read_as(0, &options, url);
    lk__options_print(&options, text, sizeof text);
    assert_int_equal(strlen(text), sizeof text - 1);
    lk__options_clear(&options);
    memcpy(url, "redis://h?", 10);
    read_as(EINVAL, &options, url);
    memcpy(url, "redis://h?prefix=", 17);
    url[17 + LK_NAME_MAX] = '\0'; /* leaves no room for a name */
    read_as(EINVAL, &options, url);
    url[17 + LK_NAME_MAX - 1] = '\0';
    read_as(0, &options, url);
    lk__options_clear(&options);
    free(url);
}

static void cleared_options_hold_nothing(void)
{
    struct lk__options options, zero;
    memset(&zero, 0, sizeof zero);
    read_as(0, &options, "redis://app:" SECRET "@cache?prefix=p&client_name=c");
    lk__options_clear(&options);
    assert_memory_equal(&options, &zero, sizeof options);
    lk__options_clear(&options);
}

/* --- a URL that other libraries read, too ------------------------------------------------------------------ */

static const struct {
    const char *url, *field, *value;
} shared[] = {
    { "redis://cache?timeout=5", "host", "cache" }, /* redis-py, ioredis and others */
    { "redis://cache?ssl_cert_reqs=none&ssl_ca_certs=/etc/ca.pem&lease=2s", "lease", "2000" },
    { "redis://cache/3?decode_responses=True&max_connections=10&protocol=3&health_check_interval=30", "db", "3" },
    { "redis://cache?cacert=/etc/ca.pem&verify=no&sni=cache", "unverified", "0" },
    { "rediss://cache?ssl_cert_reqs=none", "unverified", "0" }, /* what others call so does not make us less careful */
    { "rediss://cache?verify=none&sni=a", "unverified", "0" },
    { "redis://user@cache", "user", "-" },
    { "redis://user@cache:7", "port", "7" },
    { "redis://app:" SECRET "@cache?family=4&tls", "password", SECRET },
    { "redis://cache?", "host", "cache" },
    { "redis://cache?timeout=5&", "host", "cache" },
    { "redis://cache?&&lease=3s", "lease", "3000" },
    { "redis://cache?lease=5", "lease", "30000" }, /* whatever it was meant to be */
    { "redis://cache?lease=100h&keepalive=1", "keepalive", "15000" },
    { "redis://cache?client_name=a%20b", "client_name", "-" },
    { "redis://cache?client_name=%ZZ", "client_name", "-" },
    { "redis://cache?strict=1&prefix=app:", "prefix", "app:" },
    { "redis://cache?poll=1s&poll=2s", "poll", "1000" },
};

/* Still refused: it would be another server, or the same one with the objects elsewhere. */
static const char *const never[] = {
    "cache",
    "http://cache",
    "rediss://cache?cert=/etc/c.pem",
    "redis+sentinel://cache",
    "redis://a,,b",
    "redis://cache:port",
    "redis://cache/zero",
    "redis://cache?db=zero",
    "redis://cache/1?db=2",
    "redis://cache?db=1&db=2",
    "redis://cache?DB",
    "redis://cache?prefix=a{b",
    "redis://cache?prefix=a:&prefix=b:",
    "redis://cache?prefix",
    "redis://app:" SECRET "@x@cache",
    "redis://cache#0",
    "redis://cache\n",
    "redis://cache?lease=10ms&lease=1s", /* read well, and of no use */
};

static void a_shared_url_is_read_as_far_as_it_is_ours(void)
{
    char text[32];
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        struct lk__options options;
        if (lk__options_url(&options, shared[i].url) == 0 && strchr(shared[i].url, '?')[1] != '\0')
            fail_msg("%s is no mistake", shared[i].url);
        assert_lk(0, lk__options_sharedurl(&options, shared[i].url));
        if (strcmp(field(&options, shared[i].field, text, sizeof text), shared[i].value) != 0)
            fail_msg("%s: %s is %s", shared[i].url, shared[i].field,
                     field(&options, shared[i].field, text, sizeof text));
        lk__options_clear(&options);
    }
    for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
        struct lk__options options;
        if (lk__options_sharedurl(&options, never[i]) == 0)
            fail_msg("%s was read", never[i]);
        assert_null(strstr(lk_errortext(), SECRET));
    }
}

/* And everything that is a URL of ours means the same. */
static void a_shared_url_of_ours_means_the_same(void)
{
    char text[32];
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
        struct lk__options options;
        assert_lk(0, lk__options_sharedurl(&options, meanings[i].url));
        assert_string_equal(meanings[i].value, field(&options, meanings[i].field, text, sizeof text));
        lk__options_clear(&options);
    }
}

static int read_all(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
        struct lk__options options;
        if (lk__options_url(&options, meanings[i].url) != 0)
            return 1;
        lk__options_clear(&options);
    }
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        struct lk__options options;
        if (lk__options_url(&options, refusals[i].url) != refusals[i].code)
            return 1;
    }
    return 0;
}

static void *read_all_run(void *arg)
{
    *(int *)arg = read_all(NULL);
    return NULL;
}

/* Threads of callers may have the smallest stack there is. */
static void a_small_stack_is_enough(void)
{
    pthread_attr_t attr;
    pthread_t thread;
    int rc = -1;
    if (SANITIZED)
        skip();
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, (size_t)PTHREAD_STACK_MIN), 0);
    assert_int_equal(pthread_create(&thread, &attr, read_all_run, &rc), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    assert_int_equal(rc, 0);
}

int main(void)
{
    return plain_run(a_url_means_this, an_unknown_parameter_has_the_nearest_name, a_url_is_refused_in_words,
                     a_print_reads_as_the_same_server, a_print_hides_the_password_and_fits, no_url_is_too_odd,
                     no_url_is_too_short, no_url_is_too_long, cleared_options_hold_nothing,
                     a_shared_url_is_read_as_far_as_it_is_ours, a_shared_url_of_ours_means_the_same,
                     a_small_stack_is_enough);
}
