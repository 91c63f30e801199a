/* SPDX-License-Identifier: MIT
 * XDG folders and private files. */
#include "app/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *
home_dir(void)
{
    const char *home = getenv("HOME");
    if (home && home[0] == '/')
        return home;
    const struct passwd *pw = getpwuid(getuid());
    return pw && pw->pw_dir && pw->pw_dir[0] == '/' ? pw->pw_dir : NULL;
}

/* dir "/" name, allocated; sets *ok to false when it cannot. */
static char *
join(const char *dir, const char *name, bool *ok)
{
    char *path = NULL;
    if (!dir || asprintf(&path, "%s/%s", dir, name) < 0) {
        *ok = false;
        return NULL;
    }
    return path;
}

static char *
xdg_dir(const char *variable, const char *home, const char *under_home, bool *ok)
{
    const char *base = getenv(variable);
    if (base && base[0] == '/')
        return join(base, "parley", ok);
    char *under = join(home, under_home, ok);
    char *dir = join(under, "parley", ok);
    free(under);
    return dir;
}

int
app_paths_init(struct app_paths *p, struct ply_err *err)
{
    *p = (struct app_paths){0};
    const char *home = home_dir();
    if (!home)
        return ply_fail(err, PLY_ENOENT, "no home folder: HOME is not set to an absolute path");
    bool ok = true;
    p->data_dir = xdg_dir("XDG_DATA_HOME", home, ".local/share", &ok);
    p->config_dir = xdg_dir("XDG_CONFIG_HOME", home, ".config", &ok);
    p->cache_dir = xdg_dir("XDG_CACHE_HOME", home, ".cache", &ok);
    p->state_dir = xdg_dir("XDG_STATE_HOME", home, ".local/state", &ok);
    p->db = join(p->data_dir, "parley.db", &ok);
    p->models_dir = join(p->data_dir, "models", &ok);
    p->kv_dir = join(p->cache_dir, "kv", &ok);
    p->history = join(p->state_dir, "history", &ok);
    p->log = join(p->state_dir, "log", &ok);
    if (ok)
        return PLY_OK;
    app_paths_fini(p);
    return ply_fail(err, PLY_ENOMEM, "no memory for file names");
}

void
app_paths_fini(struct app_paths *p)
{
    free(p->data_dir);
    free(p->config_dir);
    free(p->cache_dir);
    free(p->state_dir);
    free(p->db);
    free(p->models_dir);
    free(p->kv_dir);
    free(p->history);
    free(p->log);
    *p = (struct app_paths){0};
}

/* One folder of a path; one that is there already is left as it is. */
static int
dir_make_one(const char *dir, struct ply_err *err)
{
    if (mkdir(dir, 0700) == 0 || errno == EEXIST || errno == EISDIR)
        return PLY_OK;
    return ply_fail(err, PLY_ECREATE, "cannot create folder %s: %s", dir, strerror(errno));
}

int
app_dir_make(const char *dir, struct ply_err *err)
{
    char part[PATH_MAX];
    size_t len = strlen(dir);
    if (len >= sizeof(part))
        return ply_fail(err, PLY_ECREATE, "folder name too long: %s", dir);
    memcpy(part, dir, len + 1);
    for (size_t i = 1; i < len; i++) {
        if (part[i] != '/')
            continue;
        part[i] = '\0';
        int rc = dir_make_one(part, err);
        if (rc)
            return rc;
        part[i] = '/';
    }
    int rc = dir_make_one(dir, err);
    if (rc)
        return rc;
    struct stat sb;
    if (stat(dir, &sb) != 0 || !S_ISDIR(sb.st_mode))
        return ply_fail(err, PLY_ECREATE, "cannot create folder %s: something else has that name",
                        dir);
    if ((sb.st_mode & 077) != 0 && chmod(dir, 0700) != 0)
        return ply_fail(err, PLY_ECREATE, "cannot make folder %s private: %s", dir,
                        strerror(errno));
    return PLY_OK;
}

int
app_file_create(const char *path, int flags, struct ply_err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
    if (fd < 0)
        return ply_fail(err, PLY_ECREATE, "cannot create %s: %s", path, strerror(errno));
    struct stat sb;
    /* A device such as /dev/stdout keeps the mode it has. */
    if (fstat(fd, &sb) == 0 && S_ISREG(sb.st_mode) && (sb.st_mode & 077) != 0 &&
        fchmod(fd, 0600) != 0) {
        int saved = errno;
        close(fd);
        return ply_fail(err, PLY_ECREATE, "cannot make %s private: %s", path, strerror(saved));
    }
    return fd;
}
