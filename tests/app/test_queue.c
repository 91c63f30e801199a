/* SPDX-License-Identifier: MIT
 * The queue between two threads: order, nothing lost, and a descriptor that tells the truth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>

#include "app/queue.h"

#define N_ITEMS 20000

static bool
readable(const struct queue *q)
{
    struct pollfd p = {.fd = queue_fd(q), .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static void
test_order_and_descriptor(void **state)
{
    struct queue q;
    int v[100];
    assert_int_equal(queue_init(&q, NULL), 0);
    assert_null(queue_try_pop(&q));
    assert_false(readable(&q));
    /* Taking some and adding more makes the ring wrap and grow in the middle. */
    size_t in = 0, out = 0;
    for (size_t round = 0; round < 10; round++) {
        for (size_t i = 0; i < 10; i++)
            queue_push(&q, &v[in++]);
        assert_true(readable(&q));
        for (size_t i = 0; i < 5; i++)
            assert_ptr_equal(queue_try_pop(&q), &v[out++]);
    }
    while (out < in) {
        assert_true(readable(&q));
        assert_ptr_equal(queue_pop(&q), &v[out++]);
    }
    assert_false(readable(&q));
    assert_null(queue_try_pop(&q));
    queue_fini(&q);
    queue_fini(&q);
}

static void *
produce(void *user)
{
    struct queue *q = user;
    for (uintptr_t i = 1; i <= N_ITEMS; i++)
        queue_push(q, (void *)i);
    return NULL;
}

static void
test_threads(void **state)
{
    struct queue q;
    pthread_t t;
    assert_int_equal(queue_init(&q, NULL), 0);
    assert_int_equal(pthread_create(&t, NULL, produce, &q), 0);
    for (uintptr_t i = 1; i <= N_ITEMS; i++) {
        if (i % 3 == 0) {
            struct pollfd p = {.fd = queue_fd(&q), .events = POLLIN};
            assert_int_equal(poll(&p, 1, -1), 1);
            assert_ptr_equal(queue_try_pop(&q), (void *)i);
        } else {
            assert_ptr_equal(queue_pop(&q), (void *)i);
        }
    }
    pthread_join(t, NULL);
    assert_false(readable(&q));
    queue_fini(&q);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_and_descriptor),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
