/* SPDX-License-Identifier: MIT */
#include "engine/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "engine/base/num.h"

#define HUGE_PAGE ((uint64_t)2 << 20)

void *
ply_mem_map(uint64_t bytes)
{
    const uint64_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : 0;
    uint64_t total;
    if (!ply_add_u64(bytes, align, &total) || total > SIZE_MAX)
        return NULL;
    uint8_t *p = mmap(NULL, total, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (!align)
        return p;

    /* Give back what lies before the first and after the last huge page's border. The tail
     * begins at a page: munmap rounds lengths up, but not addresses. */
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t head = (align - (uintptr_t)p % align) % align;
    const uint64_t end = (head + bytes + page - 1) & ~(page - 1);
    if (head)
        munmap(p, head);
    if (end < total)
        munmap(p + end, total - end);
    madvise(p + head, bytes, MADV_HUGEPAGE); /* a wish: without it only speed is lost */
    return p + head;
}

void
ply_mem_unmap(void *p, uint64_t bytes)
{
    if (p)
        munmap(p, bytes);
}

/* A small file as text; false when it cannot be read. No stdio: it would allocate. */
static bool
slurp(const char *path, char *buf, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n;
    do {
        n = read(fd, buf, size - 1);
    } while (n < 0 && errno == EINTR);
    close(fd);
    if (n <= 0)
        return false;
    buf[n] = '\0';
    return true;
}

/* The number after key, which stands at a line's beginning. */
static bool
field(const char *text, const char *key, uint64_t *out)
{
    const size_t n = strlen(key);
    for (const char *s = text; s; s = strchr(s, '\n')) {
        s += *s == '\n';
        if (strncmp(s, key, n) == 0) {
            *out = strtoull(s + n, NULL, 10);
            return true;
        }
        if (!*s)
            return false;
    }
    return false;
}

static uint64_t
machine_rest(void)
{
    char buf[4096];
    uint64_t kib;
    if (slurp("/proc/meminfo", buf, sizeof(buf)) && field(buf, "MemAvailable:", &kib))
        return kib * 1024;
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_MAX;
}

/* The limit of one cgroup folder less what is in use; file pages there can be reclaimed. */
static uint64_t
cgroup_rest_at(const char *dir)
{
    char path[600], buf[4096];
    uint64_t max, used, cache = 0;
    snprintf(path, sizeof(path), "%s/memory.max", dir);
    if (!slurp(path, buf, sizeof(buf)) || strncmp(buf, "max", 3) == 0)
        return UINT64_MAX;
    max = strtoull(buf, NULL, 10);
    snprintf(path, sizeof(path), "%s/memory.current", dir);
    if (!slurp(path, buf, sizeof(buf)))
        return max;
    used = strtoull(buf, NULL, 10);
    snprintf(path, sizeof(path), "%s/memory.stat", dir);
    if (slurp(path, buf, sizeof(buf)))
        field(buf, "file ", &cache);
    used -= PLY_MIN(cache, used);
    return max - PLY_MIN(used, max);
}

/* Limits of the process' own cgroup (v2) and of all above it, as far as they are visible. */
static uint64_t
cgroup_rest(void)
{
    static const char root[] = "/sys/fs/cgroup";
    char buf[512], dir[sizeof(root) + sizeof(buf)];
    uint64_t rest = cgroup_rest_at(root);
    if (!slurp("/proc/self/cgroup", buf, sizeof(buf)))
        return rest;
    const char *own = strstr(buf, "0::/");
    if (!own)
        return rest;
    snprintf(dir, sizeof(dir), "%s%.*s", root, (int)strcspn(own + 3, "\n"), own + 3);
    for (char *slash = strrchr(dir, '/'); strlen(dir) > sizeof(root); slash = strrchr(dir, '/')) {
        const uint64_t r = cgroup_rest_at(dir);
        rest = PLY_MIN(rest, r);
        *slash = '\0';
    }
    return rest;
}

static uint64_t
limit_rest(int which, uint64_t used)
{
    struct rlimit r;
    if (getrlimit(which, &r) != 0 || r.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    return r.rlim_cur - PLY_MIN((uint64_t)r.rlim_cur, used);
}

uint64_t
ply_mem_available(void)
{
    uint64_t rest = machine_rest();
    const uint64_t group = cgroup_rest();
    rest = PLY_MIN(rest, group);

    char buf[256];
    unsigned long long size = 0, data = 0;
    if (slurp("/proc/self/statm", buf, sizeof(buf)) &&
        sscanf(buf, "%llu %*u %*u %*u %*u %llu", &size, &data) == 2) {
        const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
        const uint64_t space = limit_rest(RLIMIT_AS, size * page);
        const uint64_t heap = limit_rest(RLIMIT_DATA, data * page);
        rest = PLY_MIN(rest, space);
        rest = PLY_MIN(rest, heap);
    }
    return rest;
}
