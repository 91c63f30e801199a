/* SPDX-License-Identifier: MIT
 * What this processor and process can run. */
#ifndef PLY_CPU_H
#define PLY_CPU_H

#include <stdint.h>

#include "engine/kern.h"
#include "engine/ply.h"

/* The kernels for isa (AUTO: the best that this processor can run and that pass
 * ply_kernels_check; a variant that disagrees is skipped with a log line).
 * NULL with PLY_EUNSUPPORTED in err when isa is named and cannot run. */
const struct ply_kernels *ply_cpu_kernels(enum ply_isa isa, struct ply_err *err);
/* Cores the process may use: affinity mask and cgroup v2 quota, at least 1. */
int ply_cpu_count(void);
/* MXCSR to 0x1F80 (round to nearest, no flush to zero, exceptions masked); returns the old
 * value for ply_cpu_fp_leave. No-ops off x86. */
uint32_t ply_cpu_fp_enter(void);
void ply_cpu_fp_leave(uint32_t saved);

#endif
