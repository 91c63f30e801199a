# SPDX-License-Identifier: MIT
"""What every end-to-end test needs: a private home, the program, its jsonl mode, a terminal.

    from harness import *

    @test("two turns share the cache")
    def _():
        with Jsonl("-m", model_s(), "--temp", "0") as p:
            first = p.ask("What is the capital of France?")
            ...

    if __name__ == "__main__":
        main()

Every process runs with a Home: an empty folder of its own (its name has a space in it) that
holds HOME and all XDG folders, so no test sees another's or the user's data. Reads are
bounded by a generous timeout that only guards against hanging; no test measures with it.

Paths come from the environment: PARLEY the program, PLY_TEST_MODELS the folder of tiny models,
PLY_TEST_MODEL_S and PLY_TEST_MODEL_G the real ones; a test that asks for one that is not set
is skipped.
"""
import base64
import errno
import fcntl
import json
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from tap import Failure, Skip, check, cleanup, contains, equal, main, skip, test  # noqa: E402,F401

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TIMEOUT = float(os.environ.get("PLY_TEST_TIMEOUT", "120"))  # seconds until a wait gives up


# ---- paths ------------------------------------------------------------------------------

def _env_path(name, what):
    path = os.environ.get(name)
    if not path:
        skip("%s is not set: no %s" % (name, what))
    if not os.path.exists(path):
        raise Failure("%s=%s does not exist" % (name, path))
    return path


def parley_path():
    """The program under test."""
    return os.environ.get("PARLEY") or os.path.join(ROOT, "build", "parley")


def model_s():
    """SmolLM2-135M-Instruct Q4_1: byte-level BPE, ChatML."""
    return _env_path("PLY_TEST_MODEL_S", "SmolLM2 model")


def model_g():
    """Gemma 3 270M Q4_K_M: SentencePiece, sliding window, a base model."""
    return _env_path("PLY_TEST_MODEL_G", "Gemma model")


def tiny(name):
    """The path of a generated tiny model, by file name without .gguf."""
    return os.path.join(_env_path("PLY_TEST_MODELS", "tiny models"), name + ".gguf")


# ---- a home of one's own ----------------------------------------------------------------

class Home:
    """A private HOME with the XDG folders inside; removed when the test ends."""

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="parley test ")
        cleanup(self.remove)

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)

    def dir(self, *parts):
        """A folder inside, made if need be."""
        path = os.path.join(self.path, *parts)
        os.makedirs(path, exist_ok=True)
        return path

    def place(self, name):
        """The path of a file inside, its folder made."""
        path = os.path.join(self.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def file(self, name, content):
        """Write a file inside (text or bytes) and return its path."""
        path = self.place(name)
        with open(path, "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())
        return path

    @property
    def data(self):
        return os.path.join(self.path, "data", "parley")

    @property
    def cache(self):
        return os.path.join(self.path, "cache", "parley")

    @property
    def config(self):
        return os.path.join(self.path, "config", "parley")

    def env(self, extra=None):
        """A small environment that depends on nothing of the caller's but its sanitizer options."""
        env = {k: v for k, v in os.environ.items()
               if k.endswith("SAN_OPTIONS") or k.startswith(("OPENBLAS_", "PLY_TEST_"))}
        env.update({
            "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TERM": "xterm-256color",
            "HOME": self.path, "TMPDIR": self.path,
            "XDG_DATA_HOME": os.path.join(self.path, "data"),
            "XDG_CACHE_HOME": os.path.join(self.path, "cache"),
            "XDG_CONFIG_HOME": os.path.join(self.path, "config"),
            "XDG_STATE_HOME": os.path.join(self.path, "state"),
            "XDG_RUNTIME_DIR": self.path,
        })
        for k, v in (extra or {}).items():
            if v is None:
                env.pop(k, None)
            else:
                env[k] = v
        return env


# ---- one-shots --------------------------------------------------------------------------

class Result:
    """How a process ended. out and err are bytes; text is out decoded."""

    def __init__(self, argv, code, out, err):
        self.argv, self.code, self.out, self.err = argv, code, out, err

    @property
    def text(self):
        return self.out.decode("utf-8", "replace")

    @property
    def errtext(self):
        return self.err.decode("utf-8", "replace")

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def lines(self):
        """One JSON value a line of the output."""
        return [json.loads(line) for line in self.out.splitlines() if line.strip()]

    def expect(self, code=0):
        """Fail unless the exit code is `code` (a signal counts as its negative number)."""
        if self.code != code:
            raise Failure("%s\nexit %s, want %s\nstdout: %s\nstderr: %s" % (
                " ".join(map(str, self.argv)), self.code, code, self.text[-1500:],
                self.errtext[-3000:]))
        return self


def execute(argv, stdin=b"", env=None, cwd=None, timeout=None):
    """Run a command to its end, without a controlling terminal. stdin: bytes, text, None for
    /dev/null, or a file."""
    feed = {"stdin": subprocess.DEVNULL}
    if isinstance(stdin, (bytes, str)):
        feed = {"input": stdin.encode() if isinstance(stdin, str) else stdin}
    elif stdin is not None:
        feed = {"stdin": stdin}
    try:
        p = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, cwd=cwd,
                           timeout=timeout or TIMEOUT, start_new_session=True, **feed)
    except subprocess.TimeoutExpired as e:
        raise Failure("no end after %g s: %s\nstderr: %s" % (
            e.timeout, " ".join(map(str, argv)),
            (e.stderr or b"")[-2000:].decode("utf-8", "replace")))
    return Result(argv, p.returncode, p.stdout, p.stderr)


def parley(*args, stdin=None, home=None, env=None, cwd=None, timeout=None):
    """Run parley with these arguments to its end, in `home` or a fresh one."""
    home = home or Home()
    return execute([parley_path()] + [str(a) for a in args], stdin=stdin, env=home.env(env),
                   cwd=cwd or home.path, timeout=timeout)


# ---- jsonl ------------------------------------------------------------------------------

class Jsonl:
    """A running `parley --jsonl`. Use as a context manager, or end with close().

    ask() sends one line and waits for its turn, ok or error event; send() and event() do the
    halves apart. Events that came are kept in `events`, the text pieces of the line that is
    answered in `pieces`, what it wrote to stderr in `stderr`.
    """
    FINAL = ("turn", "ok", "error")

    def __init__(self, *args, home=None, env=None):
        self.home = home or Home()
        self.argv = [parley_path(), "--jsonl"] + [str(a) for a in args]
        self.events, self.pieces, self.stderr = [], [], b""
        self._buffer, self.code = b"", None
        self.p = subprocess.Popen(self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, env=self.home.env(env),
                                  cwd=self.home.path, start_new_session=True)
        self._err_thread = threading.Thread(target=self._drain_stderr, daemon=True)
        self._err_thread.start()
        cleanup(self.kill)
        self.ready = self.event()
        equal(self.ready.get("event"), "ready", "first event")

    def __enter__(self):
        return self

    def __exit__(self, kind, value, tb):
        if kind is None:
            self.close()
        else:
            self.kill()

    def _drain_stderr(self):
        for chunk in iter(lambda: os.read(self.p.stderr.fileno(), 65536), b""):
            self.stderr += chunk

    def _fail(self, what):
        self._err_thread.join(1)
        raise Failure("%s\n%s\nlast events: %s\nstderr: %s" % (
            what, " ".join(self.argv), self.events[-5:],
            self.stderr[-3000:].decode("utf-8", "replace")))

    def send(self, line):
        """Send a line: text is sent as it is (bytes too), a dict as JSON."""
        if isinstance(line, dict):
            line = json.dumps(line)
        data = line if isinstance(line, bytes) else line.encode()
        try:
            self.p.stdin.write(data + b"\n")
            self.p.stdin.flush()
        except BrokenPipeError:
            self._fail("parley does not read any more")

    def say(self, text):
        """Send any text as one message, whatever characters it holds; bytes go as base64."""
        if isinstance(text, bytes):
            self.send({"bytes64": base64.b64encode(text).decode()})
        else:
            self.send({"text": text})

    def event(self, timeout=None):
        """The next event of any kind; None at the end of output."""
        deadline = time.monotonic() + (timeout or TIMEOUT)
        fd = self.p.stdout.fileno()
        while b"\n" not in self._buffer:
            if not select.select([fd], [], [], max(0, deadline - time.monotonic()))[0]:
                self._fail("no event after %g s" % (timeout or TIMEOUT))
            chunk = os.read(fd, 65536)
            if not chunk:
                if self._buffer:
                    self._fail("output ends in half a line: %r" % self._buffer)
                if not self.events:
                    self._fail("ended (%s) without an event" % self.p.wait(10))
                return None
            self._buffer += chunk
        line, self._buffer = self._buffer.split(b"\n", 1)
        try:
            event = json.loads(line.decode("utf-8"))
        except ValueError as e:
            self._fail("not a JSON line (%s): %r" % (e, line))
        self.events.append(event)
        return event

    def wait(self, *kinds, timeout=None):
        """The next event of one of these kinds; text pieces on the way gather in `pieces`."""
        while True:
            event = self.event(timeout)
            if event is None:
                self._fail("ended while waiting for %s" % "/".join(kinds))
            if event.get("event") == "text":
                self.pieces.append(event["text"])
            if event.get("event") in kinds:
                return event

    def ask(self, line, timeout=None):
        """Send a line (a dict as JSON) and return the event that ends it."""
        self.pieces = []
        self.send(line)
        return self.wait(*self.FINAL, timeout=timeout)

    def turn(self, text, timeout=None):
        """Say a message and return its turn event; an error event fails the test."""
        self.pieces = []
        self.say(text)
        event = self.wait(*self.FINAL, timeout=timeout)
        if event["event"] != "turn":
            self._fail("expected a turn, got %s" % event)
        return event

    def ok(self, line):
        """Send a command that must succeed; returns its ok event."""
        event = self.ask(line)
        if event["event"] != "ok":
            self._fail("%r: expected ok, got %s" % (line, event))
        return event

    def error(self, line):
        """Send a line that must be refused; returns its error event."""
        event = self.ask(line)
        if event["event"] != "error":
            self._fail("%r: expected an error, got %s" % (line, event))
        return event

    def close(self, code=0, timeout=None):
        """End the input, read what is left, and fail unless the exit code is `code`."""
        self.p.stdin.close()
        while self.event(timeout) is not None:
            pass
        self.code = self.p.wait(timeout or TIMEOUT)
        self._err_thread.join(10)
        if code is not None and self.code != code:
            self._fail("exit %s, want %s" % (self.code, code))
        return self.code

    def signal(self, number):
        self.p.send_signal(number)

    def kill(self):
        """End it at once (the crash of the laws), if it still runs."""
        if self.p.poll() is None:
            self.p.kill()
        self.p.wait()
        for stream in (self.p.stdin, self.p.stdout):
            try:
                stream.close()
            except OSError:
                pass
        self._err_thread.join(10)
        self.p.stderr.close()


# ---- a terminal -------------------------------------------------------------------------

class Pty:
    """A command on a terminal of its own: it is the controlling one, so Ctrl+C and job
    control work. `output` holds every byte it wrote."""

    def __init__(self, *argv, home=None, env=None, rows=24, cols=80, cwd=None):
        self.home = home or Home()
        self.output, self.code, self._seen = b"", None, 0
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
                os.chdir(cwd or self.home.path)
                os.execvpe(argv[0], [str(a) for a in argv], self.home.env(env))
            finally:
                os._exit(127)
        cleanup(self.kill)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.kill()

    def resize(self, rows, cols):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def send(self, data):
        """Type: text or bytes, as a keyboard would send them."""
        data = data.encode() if isinstance(data, str) else data
        while data:
            data = data[os.write(self.fd, data[:1024]):]
            self.pump(0)

    def read(self, seconds):
        """Read one piece, if one comes within `seconds`; False at the end of output."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            chunk = os.read(self.fd, 65536)
        except OSError as e:
            if e.errno != errno.EIO:
                raise
            return False
        self.output += chunk
        return bool(chunk)

    def pump(self, seconds):
        """Read until there were `seconds` of silence; False at the end of output."""
        alive = True
        while alive and select.select([self.fd], [], [], seconds)[0]:
            alive = self.read(0)
        return alive

    def wait_for(self, text, timeout=None):
        """Read until `text` (bytes or str) was written after the last match; returns the bytes
        up to its end."""
        want = text.encode() if isinstance(text, str) else text
        deadline = time.monotonic() + (timeout or TIMEOUT)
        while True:
            at = self.output.find(want, self._seen)
            if at >= 0:
                start, self._seen = self._seen, at + len(want)
                return self.output[start:self._seen]
            # Piece by piece: a program that never falls silent is looked at all the same.
            alive = self.read(0.02)
            found = self.output.find(want, self._seen) >= 0
            if not found and (not alive or time.monotonic() > deadline):
                raise Failure("%r was not written (%s); last bytes: %r" % (
                    want, "timeout" if alive else "ended", self.output[-3000:]))

    def wait(self, timeout=None):
        """Wait for the end; the exit code, or the negated signal."""
        deadline = time.monotonic() + (timeout or TIMEOUT)
        while self.code is None:
            self.pump(0.02)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > deadline:
                raise Failure("no end after %g s; last bytes: %r" % (
                    timeout or TIMEOUT, self.output[-3000:]))
        self.pump(0.02)
        return self.code

    def kill(self):
        """End it, if it still runs, and give the terminal back."""
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
