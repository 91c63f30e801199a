/* SPDX-License-Identifier: MIT
 * Status codes and the one-line error that travels with them, for every layer.
 *
 * A function that can fail returns int: 0, or a negative enum ply_status. It takes a
 * struct ply_err * (may be NULL) and fills it at the place where the fault was seen; the
 * first error wins, callers add nothing. The message is one line for a person, without a
 * trailing full stop or newline, and holds no control bytes whatever the input was. */
#ifndef PLY_BASE_ERR_H
#define PLY_BASE_ERR_H

enum ply_status {
    PLY_OK = 0,
    PLY_EINVAL = -1,       /* an argument makes no sense */
    PLY_ENOMEM = -2,
    PLY_EIO = -3,          /* the operating system said no; errno's text is in the message */
    PLY_EFORMAT = -4,      /* a file is damaged or contradicts itself */
    PLY_EUNSUPPORTED = -5, /* a sound file that this build cannot run; the message names what can */
    PLY_ENOENT = -6,       /* no such file */
    PLY_ECANCELLED = -7,   /* ply_engine_cancel() was called */
    PLY_EFULL = -8,        /* the context has no room for that many ids */
    PLY_ENUMERIC = -9,     /* logits that are not numbers */
    PLY_EINTERNAL = -10,   /* a bug of ours that was caught */
    PLY_EBUSY = -11,       /* another process holds it; trying again later may work */
    PLY_ECREATE = -12,     /* a file or folder cannot be created */
};

struct ply_err {
    int code;      /* enum ply_status; PLY_OK: nothing recorded yet */
    char msg[400]; /* NUL-terminated */
};

/* Record an error, if err is not NULL and holds none yet. Control bytes of the formatted
 * text become '?'. Returns code, so that `return ply_fail(err, PLY_EIO, ...)` reads well. */
int ply_fail(struct ply_err *err, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
