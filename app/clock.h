/* SPDX-License-Identifier: MIT
 * The one clock all durations are read from: monotonic milliseconds. */
#ifndef APP_CLOCK_H
#define APP_CLOCK_H

#include <time.h>

static inline double
app_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

#endif
