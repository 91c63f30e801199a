# SPDX-License-Identifier: MIT
"""What the hygiene tests share: the files of the source tree and the build's compile commands.

Each hygiene test states a rule as a function from text to complaints, shows on a bad sample
that the rule can complain, and then holds the tree to it.
"""
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("PLY_BUILD_DIR", os.path.join(ROOT, "build"))

sys.path.insert(0, os.path.join(ROOT, "tests"))
from tap import check, equal, main, skip, test  # noqa: E402,F401

C_SUFFIXES = (".c", ".h", ".cc")


def tree():
    """Sorted paths below ROOT of the project's files: by git, else all outside build folders."""
    try:
        out = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], check=True,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        names = [n for n in out.decode().split("\0") if n]
    except (OSError, subprocess.CalledProcessError):
        names = []
        for folder, below, files in os.walk(ROOT):
            below[:] = [b for b in below if b not in (".git", "__pycache__")
                        and not re.match(r"build(-|$)", b)]
            names += [os.path.relpath(os.path.join(folder, f), ROOT) for f in files]
    return sorted(n for n in names if os.path.isfile(os.path.join(ROOT, n)))


def read(name):
    with open(os.path.join(ROOT, name), "rb") as f:
        return f.read()


def c_files(*folders):
    """{path: text} of the C and C++ files of these top folders."""
    return {n: read(n).decode("utf-8") for n in tree()
            if n.endswith(C_SUFFIXES) and n.split("/")[0] in folders}


def without_comments(text):
    """C text with comments blanked and strings kept; line numbers stay."""
    def blank(m):
        return m[0] if m[0][0] in "\"'" else re.sub(r"[^\n]", " ", m[0])
    return re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', blank, text,
                  flags=re.S)


def without_strings(text):
    """Comments and the insides of strings blanked."""
    return re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'',
                  lambda m: m[0][0] + " " * (len(m[0]) - 2) + m[0][0], without_comments(text))


def compile_commands():
    """[(file below ROOT, [argument])] of the project's own files in this build."""
    with open(os.path.join(BUILD, "compile_commands.json")) as f:
        entries = json.load(f)
    out = []
    for e in entries:
        path = os.path.relpath(os.path.realpath(os.path.join(e["directory"], e["file"])), ROOT)
        if not path.startswith(".."):
            out.append((path, re.findall(r"(?:\"[^\"]*\"|'[^']*'|\\.|\S)+", e["command"])))
    return out


def hold(rule, files):
    """Fail with every complaint that rule(path, text) has."""
    complaints = [c for path, text in files.items() for c in rule(path, text)]
    check(not complaints, "\n".join(complaints))


def complains(rule, path, text, n=1):
    """The rule must complain n times about this sample."""
    found = rule(path, text)
    equal(len(found), n, "complaints about a sample %r: %s" % (text, found))
