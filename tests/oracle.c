/* SPDX-License-Identifier: MIT
 * Arrays are [token][element] throughout. The equations are those of the llama and gemma3
 * model cards: RMSNorm, rotary positions, grouped-query attention with an optional sliding
 * window, a gated feed-forward part, residuals. An allocation that fails ends the test. */
#include "tests/oracle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *
xcalloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);
    if (!p) {
        fprintf(stderr, "oracle: out of memory\n");
        abort();
    }
    return p;
}

/* Codes of at most +-max per 32 values with one float scale each, 2047 in blocks with an outlier:
 * kern.h's A8 and A12. */
static void
round_codes(double *x, size_t n, float coarse)
{
    double squares = 0;
    for (size_t i = 0; i < n; i++)
        squares += x[i] * x[i];
    for (size_t b = 0; b < n; b += 32) {
        float amax = 0;
        for (size_t i = b; i < b + 32; i++)
            amax = fmaxf(amax, fabsf((float)x[i]));
        const bool tiny = amax < 0x1p-100f;
        const bool fine = (double)amax * (double)amax > 64 * squares / (double)n;
        const float max = fine ? 2047 : coarse;
        const float d = tiny ? 0 : amax / max, inv = tiny ? 0 : max / amax;
        for (size_t i = b; i < b + 32; i++)
            x[i] = (double)rintf((float)x[i] * inv) * (double)d;
    }
}

/* Keys or values of one head as the KV cache would give them back. */
static void
round_kv(double *x, size_t n, enum oracle_kv kv)
{
    if (kv == ORACLE_KV_F16) {
        for (size_t i = 0; i < n; i++)
            x[i] = (double)ply_f16_to_f32(ply_f32_to_f16((float)x[i]));
    } else if (kv == ORACLE_KV_Q8_0) {
        for (size_t b = 0; b < n; b += 32) {
            float amax = 0;
            for (size_t i = b; i < b + 32; i++)
                amax = fmaxf(amax, fabsf((float)x[i]));
            const float d = ply_f16_to_f32(ply_f32_to_f16(amax / 127.0f));
            for (size_t i = b; i < b + 32; i++) {
                const double q = d > 0 ? rint(x[i] / (double)d) : 0;
                x[i] = fmin(fmax(q, -127), 127) * (double)d;
            }
        }
    }
}

/* out[t][row] = w[row] . x[t] + bias[row]; max > 0: x rounded to codes of that size first. */
static void
mat_mul(const struct ply_tensor *w, const float *bias, const double *x, size_t n, float max,
        double *out)
{
    const size_t n_in = w->n_in, n_out = w->n_out;
    double *xt =
        xcalloc(n_in * n, sizeof(*xt)); /* [n_in][token]: the inner loop runs over tokens */
    double *tmp = xcalloc(n_in, sizeof(*tmp)), *acc = xcalloc(n, sizeof(*acc));
    float *row = xcalloc(n_in, sizeof(*row));
    uint64_t row_bytes = 0;
    if (!ply_type_row_bytes(w->type, n_in, &row_bytes))
        abort();
    for (size_t t = 0; t < n; t++) {
        memcpy(tmp, x + t * n_in, n_in * sizeof(*tmp));
        if (max > 0 && w->type->kernel)
            round_codes(tmp, n_in, max);
        for (size_t i = 0; i < n_in; i++)
            xt[i * n + t] = tmp[i];
    }
    for (size_t r = 0; r < n_out; r++) {
        w->type->dequant(w->data + r * row_bytes, row, n_in);
        for (size_t t = 0; t < n; t++)
            acc[t] = bias ? (double)bias[r] : 0;
        for (size_t i = 0; i < n_in; i++)
            for (size_t t = 0; t < n; t++)
                acc[t] += (double)row[i] * xt[i * n + t];
        for (size_t t = 0; t < n; t++)
            out[t * n_out + r] = acc[t];
    }
    free(xt);
    free(tmp);
    free(acc);
    free(row);
}

static void
rms_norm(double *out, const double *x, const float *w, size_t n, double eps)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    const double inv = 1 / sqrt(sum / (double)n + eps);
    for (size_t i = 0; i < n; i++)
        out[i] = x[i] * inv * (double)w[i];
}

static void
rope(double *x, size_t pos, const struct ply_model *m, bool local)
{
    const struct ply_hparams *hp = &m->hp;
    const double base = local ? hp->rope_base_local : hp->rope_base;
    const double scale = local ? hp->rope_scale_local : hp->rope_scale;
    const size_t half = hp->rope_dim / 2;
    for (size_t i = 0; i < half; i++) {
        double angle = (double)pos / scale * pow(base, -2.0 * (double)i / hp->rope_dim);
        if (m->rope_freqs)
            angle /= (double)m->rope_freqs[i];
        double *a = x + (hp->rope_neox ? i : 2 * i), *b = hp->rope_neox ? a + half : a + 1;
        const double a0 = *a, b0 = *b;
        *a = a0 * cos(angle) - b0 * sin(angle);
        *b = a0 * sin(angle) + b0 * cos(angle);
    }
}

/* Norm, rotation and rounding of every head of [n][n_head][d_head]. */
static void
finish_heads(const struct ply_model *m, bool local, double *x, size_t n, size_t n_head,
             const float *norm, bool rotate, enum oracle_kv kv)
{
    const size_t d = m->hp.d_head;
    for (size_t t = 0; t < n; t++) {
        for (size_t h = 0; h < n_head; h++) {
            double *v = x + (t * n_head + h) * d;
            if (norm)
                rms_norm(v, v, norm, d, m->hp.rms_eps);
            if (rotate)
                rope(v, t, m, local);
            round_kv(v, d, kv);
        }
    }
}

/* One head of one query at position t: softmax(q . k) v over the keys it may see. */
static void
attend(const struct ply_hparams *hp, bool local, const double *q, const double *k, const double *v,
       size_t t, double *score, double *out)
{
    const size_t d = hp->d_head, stride = (size_t)hp->n_head_kv * d;
    const size_t first = local && hp->window && t + 1 > hp->window ? t + 1 - hp->window : 0;
    double max = -INFINITY, sum = 0;
    for (size_t j = first; j <= t; j++) {
        score[j] = 0;
        for (size_t i = 0; i < d; i++)
            score[j] += q[i] * k[j * stride + i];
        score[j] *= (double)hp->attn_scale;
        max = fmax(max, score[j]);
    }
    memset(out, 0, d * sizeof(*out));
    for (size_t j = first; j <= t; j++) {
        const double p = exp(score[j] - max);
        sum += p;
        for (size_t i = 0; i < d; i++)
            out[i] += p * v[j * stride + i];
    }
    for (size_t i = 0; i < d; i++)
        out[i] /= sum;
}

/* x += attention(norm(x)) */
static void
attention(const struct ply_model *m, const struct ply_layer *L, struct oracle_opts o, double *x,
          size_t n)
{
    const struct ply_hparams *hp = &m->hp;
    const size_t E = hp->n_embd, d = hp->d_head, nq = hp->n_head * d, nkv = hp->n_head_kv * d;
    const float max = o.round_acts ? 127 : 0;
    double *h = xcalloc(n * E, sizeof(*h)), *q = xcalloc(n * nq, sizeof(*q));
    double *k = xcalloc(n * nkv, sizeof(*k)), *v = xcalloc(n * nkv, sizeof(*v));
    double *a = xcalloc(n * nq, sizeof(*a)), *score = xcalloc(n, sizeof(*score));

    for (size_t t = 0; t < n; t++)
        rms_norm(h + t * E, x + t * E, L->attn_norm, E, hp->rms_eps);
    mat_mul(&L->q, L->q_bias, h, n, max, q);
    mat_mul(&L->k, L->k_bias, h, n, max, k);
    mat_mul(&L->v, L->v_bias, h, n, max, v);
    finish_heads(m, L->local, q, n, hp->n_head, L->q_norm, true, ORACLE_KV_EXACT);
    finish_heads(m, L->local, k, n, hp->n_head_kv, L->k_norm, true, o.kv);
    finish_heads(m, L->local, v, n, hp->n_head_kv, NULL, false, o.kv);

    const size_t group = hp->n_head / hp->n_head_kv;
    for (size_t t = 0; t < n; t++)
        for (size_t i = 0; i < hp->n_head; i++)
            attend(hp, L->local, q + t * nq + i * d, k + i / group * d, v + i / group * d, t, score,
                   a + t * nq + i * d);
    mat_mul(&L->o, NULL, a, n, max, h);
    for (size_t t = 0; t < n; t++) {
        if (L->post_attn_norm)
            rms_norm(h + t * E, h + t * E, L->post_attn_norm, E, hp->rms_eps);
        for (size_t i = 0; i < E; i++)
            x[t * E + i] += h[t * E + i];
    }
    free(h);
    free(q);
    free(k);
    free(v);
    free(a);
    free(score);
}

static double
activate(enum ply_act act, double g)
{
    if (act == PLY_ACT_SILU)
        return g / (1 + exp(-g));
    return 0.5 * g * (1 + tanh(sqrt(2 / M_PI) * (g + 0.044715 * g * g * g)));
}

/* x += down(act(gate(norm(x))) * up(norm(x))) */
static void
feed_forward(const struct ply_model *m, const struct ply_layer *L, struct oracle_opts o, double *x,
             size_t n)
{
    const struct ply_hparams *hp = &m->hp;
    const size_t E = hp->n_embd, F = hp->n_ff;
    const float max = o.round_acts ? 127 : 0;
    double *h = xcalloc(n * E, sizeof(*h));
    double *g = xcalloc(n * F, sizeof(*g)), *u = xcalloc(n * F, sizeof(*u));

    for (size_t t = 0; t < n; t++)
        rms_norm(h + t * E, x + t * E, L->ffn_norm, E, hp->rms_eps);
    mat_mul(&L->gate, NULL, h, n, max, g);
    mat_mul(&L->up, NULL, h, n, max, u);
    for (size_t i = 0; i < n * F; i++)
        g[i] = activate(hp->act, g[i]) * u[i];
    mat_mul(&L->down, NULL, g, n, max, h);
    for (size_t t = 0; t < n; t++) {
        if (L->post_ffn_norm)
            rms_norm(h + t * E, h + t * E, L->post_ffn_norm, E, hp->rms_eps);
        for (size_t i = 0; i < E; i++)
            x[t * E + i] += h[t * E + i];
    }
    free(h);
    free(g);
    free(u);
}

static void
embed(const struct ply_model *m, const int32_t *ids, size_t n, double *x)
{
    const size_t E = m->hp.n_embd;
    float *row = xcalloc(E, sizeof(*row));
    uint64_t row_bytes = 0;
    if (!ply_type_row_bytes(m->embd.type, E, &row_bytes))
        abort();
    for (size_t t = 0; t < n; t++) {
        m->embd.type->dequant(m->embd.data + (size_t)ids[t] * row_bytes, row, E);
        for (size_t i = 0; i < E; i++)
            x[t * E + i] = (double)row[i] * (double)m->hp.embd_scale;
    }
    free(row);
}

double *
oracle_logits(const struct ply_model *m, const int32_t *ids, size_t n, size_t n_want,
              struct oracle_opts opts)
{
    const size_t E = m->hp.n_embd;
    double *x = xcalloc(n * E, sizeof(*x));
    double *out = xcalloc(n_want * m->hp.n_vocab, sizeof(*out));

    embed(m, ids, n, x);
    for (uint32_t l = 0; l < m->hp.n_layer; l++) {
        attention(m, &m->layers[l], opts, x, n);
        feed_forward(m, &m->layers[l], opts, x, n);
    }
    for (size_t t = 0; t < n; t++)
        rms_norm(x + t * E, x + t * E, m->out_norm, E, m->hp.rms_eps);
    mat_mul(&m->head, NULL, x + (n - n_want) * E, n_want, opts.round_acts ? 2047 : 0, out);
    free(x);
    return out;
}

void
oracle_log_softmax(double *row, size_t n)
{
    double max = -INFINITY, sum = 0;
    for (size_t i = 0; i < n; i++)
        max = fmax(max, row[i]);
    for (size_t i = 0; i < n; i++)
        sum += exp(row[i] - max);
    for (size_t i = 0; i < n; i++)
        row[i] -= max + log(sum);
}
