/* SPDX-License-Identifier: MIT
 * Bytes in JSON where they are not well-formed UTF-8: RFC 4648's base64, with padding. */
#ifndef APP_BASE64_H
#define APP_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/array.h"

int app_base64_encode(const char *bytes, size_t len, struct ply_buf *out); /* PLY_ENOMEM */
/* False: it is not base64, or memory is out; out may have grown. White space is not accepted. */
bool app_base64_decode(const char *text, size_t len, struct ply_buf *out);

#endif
