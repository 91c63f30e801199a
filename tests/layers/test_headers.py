# SPDX-License-Identifier: MIT
"""Every header compiles alone, without warnings; the two public ones also as C++."""
import tempfile

from source import *

# Bodies that several files share: whoever includes one defines what it leaves open.
TEMPLATES = {"engine/kern_mm_impl.h"}
STRICT = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-unused-function"]


def commands():
    """({folder: the distinct flags its files are compiled with}, {suffix: compiler})"""
    flags, compilers = {}, {}
    for path, words in compile_commands():
        keep = []
        for i, word in enumerate(words):
            if word.startswith(("-I", "-D", "-m")):
                keep.append(word)
            elif word in ("-isystem", "-include"):
                keep += words[i:i + 2]
        flags.setdefault(path.split("/")[0], {})[tuple(keep)] = True
        suffix = os.path.splitext(path)[1]
        compilers.setdefault(suffix, [w for w in words[:2] if not w.startswith("-")
                                      and "ccache" not in w][:1])
    return {folder: [list(f) for f in sets] for folder, sets in flags.items()}, compilers


def compile_alone(compiler, language, flags, include, folder):
    """The compiler's complaints about a file that only includes this header, twice."""
    source = os.path.join(folder, "alone." + ("cc" if language == "c++" else "c"))
    with open(source, "w") as f:
        f.write('#include "%s"\n#include "%s"\n' % (include, include))
    standard = "-std=gnu++17" if language == "c++" else "-std=gnu11"
    argv = compiler + [standard, "-fsyntax-only", "-I" + ROOT] + STRICT + flags + [source]
    p = subprocess.run(argv, cwd=BUILD, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return p.stdout if p.returncode else ""


def try_all(names, language):
    flags, compilers = commands()
    compiler = compilers.get(".cc" if language == "c++" else ".c")
    if not compiler:
        skip("this build compiles no " + language)
    complaints = []
    with tempfile.TemporaryDirectory(prefix="parley test ") as folder:
        for name in names:
            # One way of compiling the folder's files must do: kernels' headers need their -D.
            said = ""
            for some in flags.get(name.split("/")[0], [[]]):
                said = compile_alone(compiler, language, some, name, folder)
                if not said:
                    break
            if said:
                complaints.append("%s:\n%s" % (name, said))
    check(not complaints, "\n".join(complaints))


@test("the check sees a header that does not compile alone")
def _():
    _, compilers = commands()
    with tempfile.TemporaryDirectory(prefix="parley test ") as folder:
        with open(os.path.join(folder, "bad.h"), "w") as f:
            f.write("size_t size_of_what(void);\n")
        check(compile_alone(compilers[".c"], "c", ["-I" + folder], "bad.h", folder), "no complaint")


@test("every header compiles alone")
def _():
    headers = [n for n in tree() if n.endswith(".h")]
    check(TEMPLATES <= set(headers), "an exception for a file that is not there")
    try_all([n for n in headers if n not in TEMPLATES], "c")


@test("the public headers compile alone as C++")
def _():
    try_all([n for n in tree() if n in ("engine/ply.h", "ui/ui.h")], "c++")


@test("every header has a guard named after it")
def _():
    def rule(path, text):
        want = r"(PLY_|UI_|APP_|TESTS?_)?(%s_)?%s_H" % (
            path.split("/")[-2].upper(), re.sub(r"\W", "_", path.split("/")[-1][:-2]).upper())
        m = re.search(r"^#ifndef (\w+)\n#define (\w+)$", without_comments(text), re.M)
        good = m and m[1] == m[2] and re.fullmatch(want, m[1])
        return [] if good else ["%s: guard is %s" % (path, m and m[1])]
    complains(rule, "engine/kv.h", "#ifndef KVX_H\n#define KVX_H\n#endif\n")
    complains(rule, "engine/kv.h", "#ifndef PLY_KV_H\n#define PLY_KV_H\n#endif\n", 0)
    hold(rule, {p: t for p, t in c_files("engine", "ui", "app", "tests").items()
                if p.endswith(".h")})


if __name__ == "__main__":
    main()
