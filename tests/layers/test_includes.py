# SPDX-License-Identifier: MIT
"""Who may include whom (design.md 2): nothing points upward, third-party headers have one home."""
from source import *

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.M)

# Folder or file pattern -> project headers it may include; the first that matches counts.
MAY_INCLUDE = [
    (r"engine/base/", r"engine/base/"),
    (r"engine/kern", r"engine/(kern\w*|quant)\.h"),
    (r"engine/", r"engine/"),
    (r"ui/", r"ui/|engine/base/"),
    (r"app/", r"app/|engine/ply\.h|engine/base/|ui/ui\.h"),
]
# What a kernel may take from elsewhere: intrinsics and what needs no operating system.
KERNEL_SYSTEM = re.compile(r"(std(int|def|bool|lib)|math|string|float|limits|assert|inttypes"
                           r"|[a-z]*mmintrin)\.h")
# Third-party header -> the files that may include it, and how many of them may.
ONE_HOME = [
    (r"cblas\.h|openblas.*", r"engine/.*", 1),
    (r"sqlite3.*", r"app/.*", 1),
    (r"sentencepiece.*", r"engine/tok_spm\.cc", 1),
    (r"(n?curses|term|panel|menu|form)\.h|ncursesw?/.*", r"ui/(term|draw_\w+)\.c", 99),
    (r"xxhash\.h|dlfcn\.h", r"engine/.*", 99),
    (r"md4c.*", r"ui/.*", 99),
    (r"jansson\.h|cjson/.*|curl/.*", r"app/.*", 99),
]


def includes(text):
    # Not blanked strings: the name of the file is one.
    text = without_comments(text)
    return [(text.count("\n", 0, m.start()) + 1, m[1], m[2]) for m in INCLUDE.finditer(text)]


def project_rule(path, text):
    allowed = next((a for p, a in MAY_INCLUDE if re.match(p, path)), None)
    out = []
    for line, bracket, name in includes(text):
        if bracket == '"' and allowed and not re.match(allowed, name):
            out.append("%s:%d: may not include \"%s\"" % (path, line, name))
        if bracket == "<" and path.startswith("engine/kern") and not KERNEL_SYSTEM.fullmatch(name):
            out.append("%s:%d: a kernel may not include <%s>" % (path, line, name))
    return out


def home_rule(path, text):
    out = []
    for line, bracket, name in includes(text):
        for header, home, n in ONE_HOME:
            if bracket == "<" and re.fullmatch(header, name) and not re.fullmatch(home, path):
                out.append("%s:%d: <%s> has another home" % (path, line, name))
    return out


@test("the rules complain about what they forbid")
def _():
    complains(project_rule, "engine/seq.c", '#include "app/store.h"\n#include "engine/kv.h"\n')
    complains(project_rule, "engine/base/num.h", '# include "engine/ply.h"\n')
    complains(project_rule, "engine/kern_mm.c",
              '#include "engine/pool.h"\n#include <pthread.h>\n', 2)
    complains(project_rule, "engine/kern_mm.c",
              '#include "engine/kern.h"\n#include <immintrin.h>\n', 0)
    complains(project_rule, "ui/text.c", '#include "engine/ply.h"\n#include "engine/base/utf8.h"\n')
    complains(project_rule, "app/turn.c", '#include "engine/kv.h"\n#include "ui/text.h"\n'
              '#include "ui/ui.h"\n', 2)
    complains(project_rule, "app/turn.c", '/* #include "engine/kv.h" */\n', 0)
    complains(project_rule, "ui/text.c", '#include "text.h"\n')
    complains(home_rule, "ui/text.c", "#include <curses.h>\n#include <ncursesw/curses.h>\n", 2)
    complains(home_rule, "ui/draw_list.c", "#include <curses.h>\n", 0)
    complains(home_rule, "app/turn.c", "#include <cblas.h>\n")


@test("engine, ui and app include only what their layer may")
def _():
    hold(project_rule, c_files("engine", "ui", "app"))


@test("third-party headers stay in their home")
def _():
    files = c_files("engine", "ui", "app")
    hold(home_rule, files)
    for header, home, most in ONE_HOME:
        users = [p for p, t in files.items()
                 if any(b == "<" and re.fullmatch(header, n) for _, b, n in includes(t))]
        check(len(users) <= most, "%s is included by %s" % (header, ", ".join(users)))


@test("the engine neither prints nor exits")
def _():
    def rule(path, text):
        return ["%s:%d: %s" % (path, n, line.strip())
                for n, line in enumerate(without_strings(text).splitlines(), 1)
                if re.search(r"\b(f?printf|puts|putchar|perror|exit|_exit|abort)\s*\(", line)]
    complains(rule, "engine/x.c", 'printf("hi");\nply_buf_printf(b, "exit(1)");\nexit(1);\n', 2)
    hold(rule, c_files("engine"))


if __name__ == "__main__":
    main()
