/* SPDX-License-Identifier: MIT
 * A mutex, a condition and an eventfd around a ring. The eventfd is written when the ring
 * becomes filled and read when it becomes empty, both under the lock, so it is readable exactly
 * while something waits. */
#include "app/queue.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "app/mem.h"

int
queue_init(struct queue *q, struct ply_err *err)
{
    *q = (struct queue){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (q->fd < 0)
        return ply_fail(err, PLY_EIO, "cannot create an event descriptor: %s", strerror(errno));
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->filled, NULL);
    return PLY_OK;
}

void
queue_fini(struct queue *q)
{
    if (q->fd < 0)
        return;
    pthread_cond_destroy(&q->filled);
    pthread_mutex_destroy(&q->lock);
    close(q->fd);
    free(q->items);
    *q = (struct queue){.fd = -1};
}

static void
grow(struct queue *q)
{
    const size_t cap = q->cap * 2 + 16;
    void **items = app_xcalloc(cap, sizeof(*items));
    for (size_t i = 0; i < q->n; i++)
        items[i] = q->items[(q->first + i) % q->cap];
    free(q->items);
    q->items = items;
    q->first = 0;
    q->cap = cap;
}

/* Neither call can fail: the counter is 0 or 1, and changes under the lock alone. */
static void
mark(struct queue *q, bool filled)
{
    uint64_t v = 1;
    const ssize_t r = filled ? write(q->fd, &v, sizeof(v)) : read(q->fd, &v, sizeof(v));
    if (r != (ssize_t)sizeof(v))
        abort();
}

void
queue_push(struct queue *q, void *item)
{
    pthread_mutex_lock(&q->lock);
    if (q->n == q->cap)
        grow(q);
    q->items[(q->first + q->n++) % q->cap] = item;
    if (q->n == 1)
        mark(q, true);
    pthread_cond_signal(&q->filled);
    pthread_mutex_unlock(&q->lock);
}

static void *
take(struct queue *q)
{
    void *item = q->items[q->first];
    q->first = (q->first + 1) % q->cap;
    if (--q->n == 0)
        mark(q, false);
    return item;
}

void *
queue_pop(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    while (q->n == 0)
        pthread_cond_wait(&q->filled, &q->lock);
    void *item = take(q);
    pthread_mutex_unlock(&q->lock);
    return item;
}

void *
queue_try_pop(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    void *item = q->n > 0 ? take(q) : NULL;
    pthread_mutex_unlock(&q->lock);
    return item;
}
