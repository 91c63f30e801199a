# SPDX-License-Identifier: MIT
"""Style that a grep can see: white space, line length, invisible characters, licence lines,
printf formats, leftovers, paths of one machine."""
import unicodedata

from source import *

CODE = re.compile(r"(.*\.(c|h|cc|py|sh)|(.*/)?meson\.build|meson_options\.txt|(\.ci/)?run"
                  r"|\.clang-format)")
TEXT = re.compile(r"(.*\.(md|txt|json|toml|1|svg|conf)|LICENSE|\.gitignore)")
# Data that holds what the rules forbid on purpose, or that others made.
DATA = re.compile(r"tests/(golden|data|fuzz/corpus)/")
LENGTH_MAX = 100


def files(pattern):
    return {n: read(n).decode("utf-8", "surrogateescape") for n in tree()
            if pattern.fullmatch(n) and not DATA.match(n)}


def by_line(pattern, what):
    """A rule that complains about each line in which the pattern is found."""
    def rule(path, text):
        return ["%s:%d: %s" % (path, n, what) for n, line in enumerate(text.split("\n"), 1)
                if re.search(pattern, line)]
    return rule


def ending_rule(path, text):
    if text and not text.endswith("\n"):
        return [path + ": no newline at the end"]
    return [path + ": empty lines at the end"] if text.endswith("\n\n") else []


def length_rule(path, text):
    return ["%s:%d: %d columns" % (path, n, len(line)) for n, line in enumerate(text.split("\n"), 1)
            if len(line) > LENGTH_MAX]


def invisible_rule(path, text):
    """Format and private characters, odd spaces, ill-formed UTF-8: to be written as escapes."""
    bad = {c for c in set(text) if c not in "\n\t" and (
        unicodedata.category(c) in ("Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp")
        or unicodedata.category(c) == "Zs" and c != " " or "\ufe00" <= c <= "\ufe0f")}
    return ["%s: invisible U+%04X" % (path, ord(c)) for c in sorted(bad)]


def licence_rule(path, text):
    good = any("SPDX-License-Identifier: MIT" in line for line in text.split("\n")[:2])
    return [] if good else [path + ": no SPDX line in the first two"]


def arguments(text, start):
    """The top-level arguments of a call whose parenthesis opens before `start`."""
    out, depth, begin, quoted = [], 0, start, False
    for i in range(start, len(text)):
        c = text[i]
        if c == '"' and text[i - 1] != "\\":
            quoted = not quoted
        if quoted:
            continue
        if c in "([{":
            depth += 1
        elif c in ")]}" and depth:
            depth -= 1
        elif c == ")" or c == "," and not depth:
            out.append(text[begin:i].strip())
            begin = i + 1
            if c == ")":
                break
    return out


def printw_rule(path, text):
    """Curses' printf family takes a literal format (B109), its va_list kin is not used at all."""
    text, out = without_comments(text), []
    for m in re.finditer(r"\b(mv)?(w)?printw\s*\(|\bvw_?printw\s*\(", text):
        line = text.count("\n", 0, m.start()) + 1
        at = (2 if m[1] else 0) + (1 if m[2] else 0)
        args = arguments(text, m.end())
        if m[0].startswith("vw") or len(args) <= at or not args[at].startswith('"'):
            out.append("%s:%d: %s without a literal format" % (path, line, m[0].rstrip("( ")))
    return out


tab_rule = by_line(r"\t", "tab")
space_rule = by_line(r"[ \t\r]$", "space at the end of the line")
# Written so that this file does not hold what it looks for.
machine_rule = by_line(r"/(work|farm|root|home/[a-z]+)" + "/", "a path of one machine")
leftover_rule = by_line(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b", "a leftover")


@test("the rules complain about what they forbid")
def _():
    complains(tab_rule, "x", "a\tb\n")
    complains(space_rule, "x", "a \nb\r\nc\n", 2)
    complains(ending_rule, "x", "a")
    complains(ending_rule, "x", "a\n\n")
    complains(length_rule, "x", "a" * 101 + "\n" + "\u00e9" * 100 + "\n")
    complains(invisible_rule, "x", "a\u200bb\u00a0c\ufeff\n", 3)
    complains(licence_rule, "x.c", "int x;\n")
    complains(printw_rule, "ui/x.c", 'printw(s); printw("%s", s); wprintw(w, f(a, b)); '
              'mvwprintw(w, 1, 2, "x,%d", 3); mvprintw(y, x, s); vw_printw(w, f, ap);', 4)
    complains(machine_rule, "x", "see /work" + "/main\n")
    complains(leftover_rule, "x", "/* TO" + "DO: later */\n")


@test("no tabs, no space at the end of a line, one newline at the end of a file")
def _():
    for rule in (tab_rule, space_rule, ending_rule):
        hold(rule, files(CODE))
    for rule in (space_rule, ending_rule):
        hold(rule, {n: t for n, t in files(TEXT).items() if not n.endswith(".md")})


@test("no line of code is longer than 100 columns")
def _():
    hold(length_rule, files(CODE))


@test("no invisible characters")
def _():
    hold(invisible_rule, {**files(CODE), **files(TEXT)})


@test("every source file names its licence")
def _():
    hold(licence_rule, files(CODE))


@test("curses formats are literal (B109)")
def _():
    hold(printw_rule, c_files("ui", "app"))


@test("no leftovers and no path of one machine")
def _():
    hold(leftover_rule, files(CODE))
    hold(machine_rule, {**files(CODE), **files(TEXT)})


@test("nothing else stands at the top")
def _():
    known = {"app", "engine", "ui", "tests", "assets", "meson.build", "meson_options.txt",
             "README.md", "LICENSE", "run", ".ci", ".clang-format", ".gitignore"}
    equal({n.split("/")[0] for n in tree()} - known, set())


if __name__ == "__main__":
    main()
