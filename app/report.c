/* SPDX-License-Identifier: MIT
 * The figures of a turn. */
#include "app/report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/chat.h"
#include "app/mem.h"
#include "engine/base/utf8.h"

/* ---- reasons ----------------------------------------------------------------------------- */

/* The engine knows ids; what made them differ is known here. */
static enum ply_reason
refine(enum ply_reason r, const struct chat *c, size_t diverged_msg, size_t n_msgs)
{
    if (r != PLY_REASON_COLD && r != PLY_REASON_EDITED)
        return r;
    if (c->model_changed)
        return PLY_REASON_MODEL_CHANGED;
    if (!c->has_run)
        return PLY_REASON_COLD;
    if (c->system_changed)
        return PLY_REASON_SYSTEM_CHANGED;
    if (c->settings_changed)
        return PLY_REASON_SETTINGS_CHANGED;
    /* What differs is the new message itself: nothing that was known is lost. */
    if (r == PLY_REASON_EDITED && diverged_msg + 1 >= n_msgs)
        return PLY_REASON_FULL;
    return r;
}

void
report_reason(struct report *r, const struct ply_sync_report *sync, const struct chat *chat,
              size_t diverged_msg, size_t n_msgs, bool cache_off)
{
    const size_t at = sync->diverged_at, cached = r->live + r->ram + r->disk;
    char *s = r->reason_text;
    const size_t size = sizeof(r->reason_text);
    r->reason = refine(sync->reason, chat, diverged_msg, n_msgs);
    switch (r->reason) {
    case PLY_REASON_FULL:
        snprintf(s, size, "everything the model had seen before was reused");
        break;
    case PLY_REASON_COLD:
        if (cached > 0)
            snprintf(s, size,
                     "the first turn of this conversation here; it shares its first %zu tokens "
                     "with what was there",
                     cached);
        else
            snprintf(s, size, "the first turn: nothing was there to reuse");
        break;
    case PLY_REASON_EDITED:
        snprintf(s, size, "message %zu is not what was evaluated: reuse stops at token %zu",
                 chat_msg_number(chat, diverged_msg), at);
        break;
    case PLY_REASON_SYSTEM_CHANGED:
        snprintf(s, size, "the system prompt changed: reuse stops at token %zu", at);
        break;
    case PLY_REASON_MODEL_CHANGED:
        snprintf(s, size, "another model reads this conversation: it has to read all of it");
        break;
    case PLY_REASON_SETTINGS_CHANGED:
        snprintf(s, size,
                 "the model was loaded anew, with an empty cache: reuse stops at token %zu", at);
        break;
    case PLY_REASON_EVICTED:
        snprintf(s, size,
                 "older blocks were given up to stay within the cache's budget: reuse stops at "
                 "token %zu",
                 at);
        break;
    case PLY_REASON_WINDOW_DROPPED:
        snprintf(s, size, "messages left the context: reuse stops at token %zu", at);
        break;
    case PLY_REASON_VERIFY_FAILED:
        snprintf(s, size, "a stored block did not verify: reuse stops at token %zu", at);
        break;
    case PLY_REASON_DISABLED:
        snprintf(s, size,
                 cache_off ? "the cache is switched off for this run"
                           : "this turn was asked for without the cache");
        break;
    }
}

/* ---- figures ----------------------------------------------------------------------------- */

double
report_rate(size_t n, double ms)
{
    return n > 1 && ms > 0 ? (double)(n - 1) * 1e3 / ms : -1;
}

static json_t *
json_ms(double v)
{
    return json_real(isfinite(v) && v > 0 ? round(v * 1e3) / 1e3 : 0.0);
}

/* null where there is no figure */
static json_t *
json_figure(double v)
{
    return isfinite(v) && v >= 0 ? json_real(round(v * 1e3) / 1e3) : json_null();
}

static json_t *
json_ids(const int32_t *ids, size_t n)
{
    json_t *a = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(a, json_integer(ids[i]));
    return a;
}

json_t *
report_json_text(const char *s, size_t len)
{
    struct ply_buf b = {0};
    app_buf_append(&b, "", 0);
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        char utf8[4];
        const int n = ply_utf8_decode(s + i, len - i, &cp);
        app_buf_append(&b, utf8, (size_t)ply_utf8_encode(cp, utf8));
        i += (size_t)abs(n);
    }
    json_t *v = json_stringn(b.v, b.n);
    ply_buf_fini(&b);
    return v;
}

static json_t *
json_id(int64_t id)
{
    return id ? json_integer(id) : json_null();
}

static void
add(json_t *o, const char *name, json_t *value)
{
    json_object_set_new(o, name, value);
}

static void
add_n(json_t *o, const char *name, size_t n)
{
    add(o, name, json_integer((json_int_t)n));
}

static json_t *
usage_json(const struct report *r, size_t cached)
{
    json_t *o = json_object(), *details = json_object();
    add_n(o, "prompt_tokens", r->n_prompt);
    add_n(o, "completion_tokens", r->n_ids);
    add_n(details, "cached_tokens", cached);
    add(o, "prompt_tokens_details", details);
    return o;
}

static json_t *
timings_json(const struct report *r, size_t cached)
{
    json_t *o = json_object();
    add_n(o, "cache_n", cached);
    add_n(o, "prompt_n", r->evaluated);
    add(o, "prompt_ms", json_ms(r->prefill_ms));
    add_n(o, "predicted_n", r->n_predicted);
    add(o, "predicted_ms", json_ms(r->predicted_ms));
    add(o, "tokens_per_second", json_figure(r->tok_s));
    add(o, "itl_p50_ms", json_figure(r->itl_ms));
    add(o, "itl_p95_ms", json_figure(r->itl_p95_ms));
    return o;
}

static json_t *
ttft_json(const struct report *r)
{
    json_t *o = json_object();
    add(o, "tokenize_ms", json_ms(r->tokenize_ms));
    add(o, "restore_ms", json_ms(r->restore_ms));
    add(o, "prefill_ms", json_ms(r->prefill_ms));
    add(o, "decode_ms", json_ms(r->decode_ms));
    return o;
}

static json_t *
reused_json(const struct report *r)
{
    json_t *o = json_object();
    add_n(o, "live", r->live);
    add_n(o, "ram", r->ram);
    add_n(o, "disk", r->disk);
    return o;
}

static json_t *
warm_json(const struct report *r)
{
    json_t *o = json_object();
    add(o, "ttft_ms", json_ms(r->warm_ttft_ms));
    add_n(o, "evaluated", r->warm_evaluated);
    add(o, "same_logits", json_boolean(r->warm_equal));
    return o;
}

static json_t *
hash_json(uint64_t hash)
{
    char hex[17];
    snprintf(hex, sizeof(hex), "%016" PRIx64, hash);
    return json_string(hex);
}

json_t *
report_json(const struct report *r)
{
    const size_t cached = r->live + r->ram + r->disk;
    json_t *o = json_object();
    add(o, "event", json_string("turn"));
    add(o, "text", report_json_text(r->text, r->len));
    add(o, "ids", json_ids(r->ids, r->n_ids));
    add(o, "finish_reason", json_string(gen_finish_name(r->finish)));
    add(o, "usage", usage_json(r, cached));
    add(o, "timings", timings_json(r, cached));
    add(o, "ttft_ms", json_ms(r->ttft_ms));
    add(o, "ttft", ttft_json(r));
    add(o, "reused", reused_json(r));
    add_n(o, "evaluated", r->evaluated);
    add_n(o, "drafted", r->drafted);
    add(o, "reuse_reason", json_string(ply_reason_name(r->reason)));
    add(o, "reuse_text", json_string(r->reason_text));
    add(o, "session", json_id(r->session));
    add(o, "message", json_id(r->message));
    if (r->error)
        add(o, "error", report_json_text(r->error, strlen(r->error)));
    if (r->has_hash)
        add(o, "prompt_hash", hash_json(r->prompt_hash));
    if (r->compared)
        add(o, "warm", warm_json(r));
    return o;
}

/* ---- lines for people -------------------------------------------------------------------- */

void
report_ms(double ms, char *out, size_t size)
{
    if (ms < 10)
        snprintf(out, size, "%.1f ms", ms < 0 ? 0 : ms);
    else if (ms < 1000)
        snprintf(out, size, "%.0f ms", ms);
    else
        snprintf(out, size, "%.2f s", ms / 1e3);
}

void
report_line(const struct report *r, char *out, size_t size)
{
    char ttft[32], rate[40] = "";
    report_ms(r->ttft_ms, ttft, sizeof(ttft));
    if (r->tok_s >= 0)
        snprintf(rate, sizeof(rate), "  %.1f tokens/s", r->tok_s);
    snprintf(out, size, "ttft %s%s  %zu tokens  reused %zu of %zu%s%s", ttft, rate, r->n_ids,
             r->live + r->ram + r->disk, r->n_prompt, r->finish == GEN_STOP ? "" : "  ",
             r->finish == GEN_STOP ? "" : gen_finish_name(r->finish));
}

void
report_compare_line(const struct report *r, char *out, size_t size)
{
    char cold[32], warm[32];
    report_ms(r->ttft_ms, cold, sizeof(cold));
    report_ms(r->warm_ttft_ms, warm, sizeof(warm));
    snprintf(out, size,
             "first token after %s without the cache (%zu tokens evaluated), %s with it (%zu "
             "evaluated); %s",
             cold, r->evaluated, warm, r->warm_evaluated,
             r->warm_equal ? "the logits are the same, bit for bit" : "the logits differ");
}

bool
report_write_json(int fd, const json_t *v)
{
    char *line = json_dumps(v, JSON_COMPACT | JSON_REAL_PRECISION(9));
    if (!line)
        abort();
    const size_t len = strlen(line);
    line[len] = '\n'; /* in place of the NUL: written by length */
    for (size_t done = 0; done < len + 1;) {
        const ssize_t n = write(fd, line + done, len + 1 - done);
        if (n < 0 && errno != EINTR) {
            free(line);
            return false;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    free(line);
    return true;
}
