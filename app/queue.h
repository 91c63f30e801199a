/* SPDX-License-Identifier: MIT
 * A queue of pointers between two threads. The taker either waits on it (queue_pop) or polls its
 * descriptor together with others (queue_fd, queue_try_pop). The queue owns nothing. */
#ifndef APP_QUEUE_H
#define APP_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    void **items; /* ring of cap */
    size_t first, n, cap;
    int fd; /* readable while items wait */
};

int queue_init(struct queue *q, struct ply_err *err);
/* The items still in it are dropped: take them out first. */
void queue_fini(struct queue *q);
void queue_push(struct queue *q, void *item);
void *queue_pop(struct queue *q);     /* waits */
void *queue_try_pop(struct queue *q); /* NULL when empty */
static inline int
queue_fd(const struct queue *q)
{
    return q->fd;
}

#endif
