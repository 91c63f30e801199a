/* SPDX-License-Identifier: MIT
 * doctor: what parley finds here, and how to mend what is wrong. */
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "app/front.h"
#include "app/models.h"
#include "app/paths.h"
#include "app/store.h"
#include "app/verb.h"
#include "engine/base/num.h"

static void
line(int *n_faults, bool ok, const char *what, const char *text)
{
    printf("%-4s %-10s %s\n", ok ? "ok" : "!!", what, text);
    *n_faults += !ok;
}

static void
check_cpu(int *n_faults)
{
    static const struct {
        enum ply_isa isa;
        const char *name;
    } sets[] = {{PLY_ISA_REF, "ref"},
                {PLY_ISA_AVX2, "avx2"},
                {PLY_ISA_AVXVNNI, "avxvnni"},
                {PLY_ISA_AVX512, "avx512"}};
    char model[256] = "", s[400];
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f && fgets(s, sizeof(s), f)) {
        const char *colon = strchr(s, ':');
        if (strncmp(s, "model name", 10) == 0 && colon) {
            snprintf(model, sizeof(model), "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
            break;
        }
    }
    if (f)
        fclose(f);
    snprintf(s, sizeof(s), "%s, %ld in use", *model ? model : "unknown",
             sysconf(_SC_NPROCESSORS_ONLN));
    line(n_faults, true, "processor", s);
    for (size_t i = 0; i < PLY_COUNT(sets); i++) {
        struct ply_err why = {0};
        const bool there = ply_isa_available(sets[i].isa, &why);
        snprintf(s, sizeof(s), "%s%s%.300s", sets[i].name, there ? "" : ": ", there ? "" : why.msg);
        line(n_faults, true, "kernels", s);
    }
}

static void
check_models(int *n_faults, const struct app_paths *p)
{
    struct models_list l;
    char s[600];
    size_t n_usable = 0;
    models_list(p->models_dir, &l);
    for (size_t i = 0; i < l.n; i++) {
        const struct models_entry *e = &l.v[i];
        n_usable += e->usable;
        snprintf(s, sizeof(s), "%.200s: %.300s", e->name, e->usable ? e->title : e->reason);
        line(n_faults, e->usable, "model", s);
    }
    if (n_usable == 0 && !getenv("PARLEY_MODEL")) {
        snprintf(s, sizeof(s), "none to use in %.300s; './run fetch' gets the default model",
                 p->models_dir);
        line(n_faults, false, "model", s);
    }
    models_list_fini(&l);
}

/* The model that a plain `parley` would load. */
static void
check_engine(int *n_faults, const struct app_opts *o)
{
    struct ply_engine *e = NULL;
    struct ply_err why = {0};
    char s[600];
    if (verb_engine_open(o, 0, &e, &why) == 0) {
        const struct ply_info *i = ply_engine_info(e);
        snprintf(s, sizeof(s), "%.200s loads in %.0f ms; %s, %d threads, exact: %s%s%.200s%s",
                 i->name, i->load_ms, i->gemm, i->n_threads, i->exact ? "yes" : "no",
                 i->exact ? "" : " (", i->exact_why, i->exact ? "" : ")");
        line(n_faults, true, "engine", s);
    } else {
        line(n_faults, false, "engine", why.msg);
    }
    ply_engine_close(&e);
}

static void
check_database(int *n_faults, const struct app_paths *p)
{
    struct store *st = NULL;
    struct store_list l = {0};
    struct ply_err why = {0};
    char s[600];
    if (access(p->db, F_OK) != 0) {
        snprintf(s, sizeof(s), "none yet; it will be %.400s", p->db);
        line(n_faults, true, "database", s);
        return;
    }
    if (store_open(&st, p->db, STORE_BUSY_CLI_MS, &why) == 0 &&
        store_list(st, NULL, 0, &l, &why) == 0) {
        snprintf(s, sizeof(s), "%.400s, %zu conversations", p->db, l.n);
        line(n_faults, true, "database", s);
    } else {
        line(n_faults, false, "database", why.msg);
    }
    store_list_fini(&l);
    store_close(&st);
}

static void
check_terminal(int *n_faults)
{
    char s[200];
    const char *term = getenv("TERM");
    struct winsize w = {0};
    const bool utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) != 0)
        snprintf(s, sizeof(s), "standard output is none; a chat would be line by line");
    else
        snprintf(s, sizeof(s), "%.60s, %d columns, %d rows", term ? term : "TERM is not set",
                 w.ws_col, w.ws_row);
    line(n_faults, !isatty(STDOUT_FILENO) || (term && strcmp(term, "dumb") != 0), "terminal", s);
    snprintf(s, sizeof(s), "%.60s%s", nl_langinfo(CODESET),
             utf8 ? "" : ": what is not ASCII is shown as '?'; LC_ALL=C.UTF-8 mends it");
    line(n_faults, utf8, "locale", s);
}

int
verb_doctor(const struct app_opts *o)
{
    struct app_paths paths = {0};
    struct ply_err err = {0};
    int n_faults = 0;
    if (app_paths_init(&paths, &err) != 0)
        return front_fail(&err);
    check_cpu(&n_faults);
    check_models(&n_faults, &paths);
    check_engine(&n_faults, o);
    check_database(&n_faults, &paths);
    check_terminal(&n_faults);
    app_paths_fini(&paths);
    if (n_faults > 0)
        printf("\n%d of these want mending.\n", n_faults);
    return n_faults > 0 ? APP_EXIT_FAILURE : APP_EXIT_OK;
}
