/* SPDX-License-Identifier: MIT
 * The one file that knows SentencePiece. No exception leaves it, and nothing is written to
 * stderr, which the terminal owns. */
#include <exception>
#include <new>
#include <vector>

#include <sentencepiece_processor.h>

extern "C" {
#include "engine/tok_spm.h"
}

/* The library exports this but installs no header for it; weak, for versions that do not. */
namespace sentencepiece
{
namespace logging
{
void SetMinLogLevel(int v) __attribute__((weak));
}
} // namespace sentencepiece

namespace
{

const int log_fatal = 3; /* the library's levels: info, warning, error, fatal */

int
fail_from_exception(struct ply_err *err)
{
    try {
        throw;
    } catch (const std::bad_alloc &) {
        return ply_fail(err, PLY_ENOMEM, "out of memory in SentencePiece");
    } catch (const std::exception &e) {
        return ply_fail(err, PLY_EINTERNAL, "SentencePiece: %s", e.what());
    } catch (...) {
        return ply_fail(err, PLY_EINTERNAL, "SentencePiece failed");
    }
}

} // namespace

struct ply_spm {
    sentencepiece::SentencePieceProcessor processor;
};

extern "C" int
ply_spm_open(struct ply_spm **out, const char *model, size_t len, struct ply_err *err)
{
    *out = nullptr;
    try {
        if (sentencepiece::logging::SetMinLogLevel)
            sentencepiece::logging::SetMinLogLevel(log_fatal);
        struct ply_spm *s = new ply_spm;
        const sentencepiece::util::Status status =
            s->processor.LoadFromSerializedProto(absl::string_view(model, len));
        if (!status.ok()) {
            delete s;
            return ply_fail(err, PLY_EFORMAT, "SentencePiece refuses the vocabulary: %s",
                            status.message());
        }
        *out = s;
        return PLY_OK;
    } catch (...) {
        return fail_from_exception(err);
    }
}

extern "C" void
ply_spm_close(struct ply_spm **s)
{
    delete *s;
    *s = nullptr;
}

extern "C" int
ply_spm_encode(const struct ply_spm *s, const char *text, size_t len, struct ply_ids *out,
               struct ply_err *err)
{
    try {
        std::vector<int> ids;
        const sentencepiece::util::Status status =
            s->processor.Encode(absl::string_view(text, len), &ids);
        if (!status.ok())
            return ply_fail(err, PLY_EINTERNAL, "SentencePiece: %s", status.message());
        if (ply_ids_append(out, ids.data(), ids.size()) != PLY_OK)
            return ply_fail(err, PLY_ENOMEM, "out of memory for a text of %zu bytes", len);
        return PLY_OK;
    } catch (...) {
        return fail_from_exception(err);
    }
}
