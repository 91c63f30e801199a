# SPDX-License-Identifier: MIT
"""A test file in Python: functions marked @test, run in the order they stand, reported as TAP.

    from tap import test, check, equal, skip, main

    @test("B17: the second turn evaluates its own tokens alone")
    def _():
        equal(turn["evaluated"], 12)

    if __name__ == "__main__":
        main()

A failed check, any other exception and a missing skip reason fail the one test; the rest go
on. Arguments of the file are words: only tests whose name holds one of them run. Standard
library only.
"""
import os
import signal
import sys
import traceback

_tests = []
_cleanups = []


class Failure(Exception):
    """A check that did not hold."""


class Skip(Exception):
    """This test cannot run here; the text says why."""


def test(name):
    """Mark a function as a test called `name`."""
    def mark(fn):
        _tests.append((name, fn))
        return fn
    return mark


def check(condition, message):
    """Fail with `message` unless `condition` holds."""
    if not condition:
        raise Failure(message)


def equal(got, want, what=""):
    """Fail unless got == want, showing both."""
    if got != want:
        raise Failure("%sgot %s, want %s" % (what and what + ": ", _short(got), _short(want)))


def contains(text, part, what=""):
    """Fail unless `part` stands in `text` (strings, bytes, lists)."""
    if part not in text:
        raise Failure("%s%s is not in %s" % (what and what + ": ", _short(part), _short(text)))


def skip(why):
    """End this test as skipped."""
    if not why:
        raise Failure("a skip must say why")
    raise Skip(why)


def cleanup(fn):
    """Call fn when the running test ends, however it ends; last registered first."""
    _cleanups.append(fn)


def _short(value):
    text = repr(value)
    return text if len(text) <= 2000 else text[:1400] + " [...] " + text[-500:]


def _diagnose(text):
    for line in text.rstrip("\n").split("\n"):
        print("# " + line.encode("utf-8", "backslashreplace").decode("utf-8"))


def _run_cleanups():
    """Returns the text of what failed, or ''."""
    trouble = ""
    while _cleanups:
        try:
            _cleanups.pop()()
        except Exception:
            trouble += traceback.format_exc()
    return trouble


def _run_one(number, name, fn):
    directive, trouble, ok = "", "", True
    try:
        fn()
    except Skip as why:
        directive = " # SKIP " + str(why).replace("\n", " ")
    except Failure as failure:
        where = traceback.extract_tb(failure.__traceback__)
        lines = ["%s:%d" % (os.path.basename(f.filename), f.lineno) for f in where
                 if os.path.basename(f.filename) != "tap.py"]
        ok, trouble = False, "%s\n(at %s)" % (failure, " < ".join(reversed(lines)))
    except Exception:
        ok, trouble = False, traceback.format_exc()
    late = _run_cleanups()
    if late:
        ok, trouble = False, trouble + "\nwhile cleaning up:\n" + late
    print("%s %d - %s%s" % ("ok" if ok else "not ok", number, name.replace("#", "\\#"), directive))
    if trouble:
        _diagnose(trouble)
    sys.stdout.flush()
    return ok


def mind_signals():
    """Let what we start meet signals as from a terminal. Under nohup, or in the background of a
    script, some are ignored, and processes inherit that; a handler they do not inherit."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *ignored: None)


def main():
    """Run the tests and exit: 0 when none failed."""
    mind_signals()
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    words = sys.argv[1:]
    chosen = [t for t in _tests if not words or any(w in t[0] for w in words)]
    if not chosen:
        print("1..0 # SKIP no test of that name" if words else "1..0 # SKIP no tests")
        sys.exit(2 if words else 0)
    print("1..%d" % len(chosen))
    sys.stdout.flush()
    results = [_run_one(i + 1, name, fn) for i, (name, fn) in enumerate(chosen)]
    sys.exit(0 if all(results) else 1)
