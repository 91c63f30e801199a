/* SPDX-License-Identifier: MIT
 * tokenize and detokenize: user text to ids and back, by the vocabulary alone. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/front.h"
#include "app/input.h"
#include "app/verb.h"

#define INPUT_MAX ((size_t)64 << 20)

int
verb_tokenize(const struct app_opts *o)
{
    struct ply_vocab *v = NULL;
    struct ply_buf text = {0};
    struct ply_ids ids = {0};
    struct ply_err err = {0};
    int r = verb_vocab_open(o, &v, &err);
    if (r == 0)
        r = input_read_fd(STDIN_FILENO, "standard input", INPUT_MAX, &text, &err);
    if (r == 0)
        r = ply_encode(v, text.v, text.n, &ids, &err);
    for (size_t i = 0; r == 0 && i < ids.n; i++)
        printf("%s%" PRId32, i ? " " : "", ids.v[i]);
    if (r == 0) {
        putchar('\n');
        if (fflush(stdout) != 0)
            r = ply_fail(&err, PLY_EIO, "cannot write: %s", strerror(errno));
    }
    ply_ids_fini(&ids);
    ply_buf_fini(&text);
    ply_vocab_close(&v);
    return r == 0 ? APP_EXIT_OK : front_fail(&err);
}

static int
check_range(const struct ply_vocab *v, const struct ply_ids *ids, struct ply_err *err)
{
    const int n = ply_vocab_info(v)->n_vocab;
    for (size_t i = 0; i < ids->n; i++) {
        if (ids->v[i] >= n)
            return ply_fail(err, PLY_EINVAL, "id %" PRId32 " is not in the vocabulary of %d",
                            ids->v[i], n);
    }
    return PLY_OK;
}

int
verb_detokenize(const struct app_opts *o)
{
    struct ply_vocab *v = NULL;
    struct ply_buf text = {0}, out = {0};
    struct ply_ids ids = {0};
    struct ply_err err = {0};
    int r = verb_vocab_open(o, &v, &err);
    if (r == 0)
        r = input_read_fd(STDIN_FILENO, "standard input", INPUT_MAX, &text, &err);
    if (r == 0)
        r = input_ids(text.v, text.n, &ids, &err);
    if (r == 0)
        r = check_range(v, &ids, &err);
    if (r == 0)
        r = ply_decode(v, ids.v, ids.n, &out, &err);
    if (r == 0 && !front_write(STDOUT_FILENO, out.v, out.n))
        r = ply_fail(&err, PLY_EIO, "cannot write: %s", strerror(errno));
    ply_buf_fini(&out);
    ply_ids_fini(&ids);
    ply_buf_fini(&text);
    ply_vocab_close(&v);
    return r == 0 ? APP_EXIT_OK : front_fail(&err);
}
