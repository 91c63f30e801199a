/* SPDX-License-Identifier: MIT
 * Makes a database to try things on: mkdb PATH SESSIONS MESSAGES LONG
 * writes SESSIONS sessions of MESSAGES messages each and, when LONG is not 0, one of LONG. The
 * text is made-up words, the same on every run (B127: mkdb PATH 2000 50 20000). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/store.h"

static uint64_t rng = 88172645463325252u; /* xorshift64 */

static uint64_t
next(void)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return rng;
}

/* A word of a vocabulary of 8,192. */
static size_t
word(char *out)
{
    static const char letters[] = "etaoinshrdlucmfw";
    uint64_t h = (next() % 8192 + 1) * 0x9e3779b97f4a7c15u;
    size_t n = 2 + (h >> 60) % 8;
    for (size_t i = 0; i < n; i++)
        out[i] = letters[h >> (4 * i) & 15];
    out[n] = ' ';
    return n + 1;
}

static int
message(struct store_session *s, size_t i)
{
    char text[1024];
    size_t n = 0, n_words = 5 + next() % 60;
    for (size_t k = 0; k < n_words; k++)
        n += word(text + n);
    struct store_msg *m =
        store_session_push(s, i % 2 ? PLY_ROLE_ASSISTANT : PLY_ROLE_USER, text, n - 1);
    if (!m)
        return PLY_ENOMEM;
    if (i % 2) {
        m->finish = STORE_FINISH_STOP;
        for (size_t k = 0; k < n / 4; k++)
            if (ply_ids_push(&m->ids, (int32_t)(next() % 49152)) != 0)
                return PLY_ENOMEM;
    }
    return PLY_OK;
}

static int
session(struct store *st, size_t n_messages, struct ply_err *err)
{
    struct store_session s = {0};
    int rc = PLY_OK;
    for (size_t i = 0; i < n_messages && !rc; i++)
        rc = message(&s, i);
    if (!rc)
        rc = store_session_save(st, &s, NULL, err);
    store_session_release(st, &s);
    store_session_fini(&s);
    return rc;
}

int
main(int argc, char **argv)
{
    struct store *st;
    struct ply_err err = {0};
    if (argc != 5) {
        fprintf(stderr, "usage: %s PATH SESSIONS MESSAGES LONG\n", argv[0]);
        return 2;
    }
    size_t n_sessions = strtoul(argv[2], NULL, 10), n_messages = strtoul(argv[3], NULL, 10);
    size_t n_long = strtoul(argv[4], NULL, 10);
    int rc = store_open(&st, argv[1], STORE_BUSY_CLI_MS, &err);
    for (size_t i = 0; i < n_sessions && !rc; i++)
        rc = session(st, n_messages, &err);
    if (!rc && n_long)
        rc = session(st, n_long, &err);
    store_close(&st);
    if (rc)
        fprintf(stderr, "%s\n", err.msg);
    return rc ? 1 : 0;
}
