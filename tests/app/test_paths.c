/* SPDX-License-Identifier: MIT
 * XDG folders and private files (B123). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/paths.h"
#include "tests/app/store_fixture.h"

static void
clear_xdg(void)
{
    unsetenv("XDG_DATA_HOME");
    unsetenv("XDG_CONFIG_HOME");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("XDG_STATE_HOME");
    setenv("HOME", "/nowhere/me", 1);
}

static void
test_defaults(void **state)
{
    struct app_paths p;
    clear_xdg();
    assert_int_equal(app_paths_init(&p, NULL), 0);
    assert_string_equal(p.data_dir, "/nowhere/me/.local/share/parley");
    assert_string_equal(p.config_dir, "/nowhere/me/.config/parley");
    assert_string_equal(p.cache_dir, "/nowhere/me/.cache/parley");
    assert_string_equal(p.state_dir, "/nowhere/me/.local/state/parley");
    assert_string_equal(p.db, "/nowhere/me/.local/share/parley/parley.db");
    assert_string_equal(p.models_dir, "/nowhere/me/.local/share/parley/models");
    assert_string_equal(p.kv_dir, "/nowhere/me/.cache/parley/kv");
    assert_string_equal(p.history, "/nowhere/me/.local/state/parley/history");
    assert_string_equal(p.log, "/nowhere/me/.local/state/parley/log");
    app_paths_fini(&p);
    assert_null(p.db);
    app_paths_fini(&p);
}

static void
test_xdg(void **state)
{
    struct app_paths p;
    clear_xdg();
    setenv("XDG_DATA_HOME", "/data", 1);
    setenv("XDG_CACHE_HOME", "relative/is/ignored", 1);
    setenv("XDG_CONFIG_HOME", "", 1);
    assert_int_equal(app_paths_init(&p, NULL), 0);
    assert_string_equal(p.db, "/data/parley/parley.db");
    assert_string_equal(p.cache_dir, "/nowhere/me/.cache/parley");
    assert_string_equal(p.config_dir, "/nowhere/me/.config/parley");
    app_paths_fini(&p);
    unsetenv("HOME"); /* then the user database knows, or nobody does */
    setenv("XDG_CONFIG_HOME", "/c", 1);
    struct ply_err err = {0};
    int rc = app_paths_init(&p, &err);
    assert_true(rc == 0 || rc == PLY_ENOENT);
    app_paths_fini(&p);
}

static int
mode_of(const char *path)
{
    struct stat sb;
    return stat(path, &sb) == 0 ? (int)(sb.st_mode & 0777) : -1;
}

static void
test_private(void **state)
{
    umask(022);
    char *dir = strdup(fixture_path(*state, ".d/sub/last"));
    char *middle = strdup(fixture_path(*state, ".d/sub"));
    struct ply_err err = {0};
    assert_int_equal(app_dir_make(dir, &err), 0);
    assert_int_equal(mode_of(dir), 0700);
    assert_int_equal(mode_of(middle), 0700);
    chmod(middle, 0755);
    chmod(dir, 0755);
    assert_int_equal(app_dir_make(dir, &err), 0);
    assert_int_equal(mode_of(dir), 0700);
    assert_int_equal(mode_of(middle), 0755); /* not ours to change */

    char *file = NULL;
    assert_true(asprintf(&file, "%s/f", dir) > 0);
    int fd = app_file_create(file, O_EXCL, &err);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "abc", 3), 3);
    close(fd);
    assert_int_equal(mode_of(file), 0600);
    assert_int_equal(app_file_create(file, O_EXCL, &err), PLY_ECREATE);
    chmod(file, 0644);
    fd = app_file_create(file, O_APPEND, NULL);
    assert_true(fd >= 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC));
    close(fd);
    assert_int_equal(mode_of(file), 0600);

    err = (struct ply_err){0};
    assert_int_equal(app_dir_make(file, &err), PLY_ECREATE); /* a file has that name */
    err = (struct ply_err){0};
    assert_int_equal(app_dir_make("/proc/no/such", &err), PLY_ECREATE);
    assert_non_null(strstr(err.msg, "/proc/no"));
    char *longer = malloc(6000);
    memset(longer, 'x', 5999);
    longer[0] = '/';
    longer[5999] = '\0';
    assert_int_equal(app_dir_make(longer, NULL), PLY_ECREATE);
    free(longer);
    free(file);
    free(middle);
    free(dir);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_xdg),
        cmocka_unit_test_setup_teardown(test_private, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
