/* SPDX-License-Identifier: MIT
 * Which kernels run here, how many cores there are, and the state of the floating-point unit. */
#include "engine/cpu.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/err.h"
#include "engine/base/log.h"
#include "engine/base/num.h"

#if defined(__x86_64__) || defined(__i386__)
#define CPU_X86 1
#include <cpuid.h>
#include <xmmintrin.h>
#else
#define CPU_X86 0
#endif

#define MXCSR_PLAIN 0x1F80u /* exceptions masked, nearest even, no flush to zero */

uint32_t
ply_cpu_fp_enter(void)
{
#if CPU_X86
    uint32_t saved = _mm_getcsr();
    _mm_setcsr(MXCSR_PLAIN);
    return saved;
#else
    return 0;
#endif
}

void
ply_cpu_fp_leave(uint32_t saved)
{
#if CPU_X86
    _mm_setcsr(saved);
#else
    (void)saved;
#endif
}

/* __builtin_cpu_supports also asks XGETBV whether the system saves the registers. It does not
 * know F16C with every compiler. */
static bool
cpu_runs_avx2(void)
{
#if CPU_X86
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) && __builtin_cpu_supports("avx2") &&
           __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

static bool
cpu_runs_avx512(void)
{
#if CPU_X86
    return cpu_runs_avx2() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
#else
    return false;
#endif
}

/* Every set, slowest first. */
static const struct isa {
    enum ply_isa isa;
    const char *name, *needs;
    bool (*runs)(void);
    const struct ply_kernels *(*table)(void);
} isas[] = {
    {PLY_ISA_AVX2, "avx2", "AVX2, FMA and F16C", cpu_runs_avx2, ply_kernels_avx2},
    {PLY_ISA_AVX512, "avx512", "AVX-512 F, BW, DQ, VL and VNNI", cpu_runs_avx512,
     ply_kernels_avx512},
};

/* What ply_kernels_check said: a table is checked when it is first wanted, once in a process. */
static struct {
    bool done;
    const char *differs;
} checked[PLY_COUNT(isas)];
static pthread_mutex_t check_lock = PTHREAD_MUTEX_INITIALIZER;

/* NULL, or the kernel of isas[i] that disagrees with ref. */
static const char *
isa_differs(size_t i)
{
    pthread_mutex_lock(&check_lock);
    if (!checked[i].done) {
        const uint32_t saved = ply_cpu_fp_enter();
        checked[i].differs = ply_kernels_check(isas[i].table());
        checked[i].done = true;
        ply_cpu_fp_leave(saved);
        if (checked[i].differs)
            ply_log(PLY_LOG_ERROR, "cpu", "the %s kernels are not used: %s differs from ref",
                    isas[i].name, checked[i].differs);
    }
    const char *differs = checked[i].differs;
    pthread_mutex_unlock(&check_lock);
    return differs;
}

/* NULL with the reason when isas[i] cannot be used. */
static const struct ply_kernels *
isa_kernels(size_t i, struct ply_err *err)
{
    const struct isa *want = &isas[i];
    if (!want->table()) {
        ply_fail(err, PLY_EUNSUPPORTED, "this build has no %s kernels; ref always runs",
                 want->name);
        return NULL;
    }
    if (!want->runs()) {
        ply_fail(err, PLY_EUNSUPPORTED, "the %s kernels need %s, which this processor lacks",
                 want->name, want->needs);
        return NULL;
    }
    const char *differs = isa_differs(i);
    if (differs) {
        ply_fail(err, PLY_EUNSUPPORTED, "the %s kernels are not used: %s differs from ref",
                 want->name, differs);
        return NULL;
    }
    return want->table();
}

const struct ply_kernels *
ply_cpu_kernels(enum ply_isa isa, struct ply_err *err)
{
    for (size_t i = PLY_COUNT(isas); i-- > 0;) {
        if (isa == isas[i].isa)
            return isa_kernels(i, err);
        const struct ply_kernels *k = isa == PLY_ISA_AUTO ? isa_kernels(i, NULL) : NULL;
        if (k)
            return k;
    }
    if (isa == PLY_ISA_REF || isa == PLY_ISA_AUTO)
        return ply_kernels_ref();
    ply_fail(err, PLY_EUNSUPPORTED,
             "there are no kernels for this instruction set yet; ref, avx2 and avx512 are built");
    return NULL;
}

static int
affinity_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

/* Cores' worth of time that a cpu.max file grants, rounded up; 0 when it grants all. */
static int
quota_in(const char *path)
{
    long long quota, period;
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    int n = fscanf(f, "%lld %lld", &quota, &period);
    fclose(f);
    if (n != 2 || quota <= 0 || period <= 0)
        return 0;
    return (int)PLY_MIN((quota + period - 1) / period, 1 << 20);
}

/* The smallest quota of the process' cgroup (version 2) and of those that hold it. */
static int
quota_count(void)
{
    char line[1024], path[1200], *at = NULL;
    FILE *f = fopen("/proc/self/cgroup", "re");
    if (!f)
        return 0;
    while (!at && fgets(line, sizeof line, f)) {
        if (!strncmp(line, "0::/", 4))
            at = line + 3;
    }
    fclose(f);
    if (!at)
        return 0;
    at[strcspn(at, "\n")] = '\0';
    int least = 0;
    for (;;) {
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", at);
        int n = quota_in(path);
        if (n > 0 && (least == 0 || n < least))
            least = n;
        char *slash = strrchr(at, '/');
        if (!slash)
            return least;
        *slash = '\0';
    }
}

int
ply_cpu_count(void)
{
    int n = affinity_count(), quota = quota_count();
    if (quota > 0 && quota < n)
        n = quota;
    return PLY_MAX(n, 1);
}
