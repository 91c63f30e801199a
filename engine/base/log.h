/* SPDX-License-Identifier: MIT
 * Log lines go to a sink that the program sets; without one they go nowhere. No line
 * holds prompt text above debug level. */
#ifndef PLY_BASE_LOG_H
#define PLY_BASE_LOG_H

enum ply_log_level { PLY_LOG_ERROR, PLY_LOG_WARN, PLY_LOG_INFO, PLY_LOG_DEBUG };

typedef void (*ply_log_fn)(void *user, enum ply_log_level level, const char *module,
                           const char *line);

/* Set once, before any engine is opened; fn may be called from any thread. NULL: off. */
void ply_log_set(ply_log_fn fn, void *user, enum ply_log_level max);
void ply_log(enum ply_log_level level, const char *module, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
