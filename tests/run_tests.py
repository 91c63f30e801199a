# SPDX-License-Identifier: MIT
"""Builds and runs every test, in every configuration, and counts TAP test points.

    run_tests.py [--configs A,B] [--list] [WORDS]

Called by `./run test`. Without CI=true it runs the release build that ./run makes; with it,
the whole matrix below. WORDS choose the tests whose name or suite holds one of them.
The tests themselves are those that meson knows (meson introspect); running them here and not
through `meson test` gives exact counts and shows what failed as soon as it fails.

A test prints TAP. A point counts as passed, failed or skipped; a test that crashes, exits with
failure without a failed point, runs other than its plan, or takes too long is one failed
point more. The last line is `N passed, N failed, N skipped`; the exit code is 0 when nothing
failed. With CI=true both real models must be there (PLY_TEST_MODEL_S, PLY_TEST_MODEL_G).
"""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import signal
import subprocess
import sys
import time

import tap

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:exitcode=99",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:exitcode=99",
    "TSAN_OPTIONS": "halt_on_error=1:exitcode=99",
}

# folder: below the source. choose: whether a test with these suites and this name takes part.
# slow: how much longer than meson.build says a test may take.
Config = collections.namedtuple("Config", "name folder what compilers options choose slow wrap")


def everything(suites, name):
    return True


def quick(suites, name):
    """All that needs no real model and depends on how the program was compiled."""
    return not suites & {"real", "layers"} and name != "e2e_setup"


def threaded(suites, name):
    """What runs the pool, the engine thread, the event loop or the store."""
    if suites & {"real", "layers"} or name == "e2e_setup":
        return False
    return bool(suites & {"store", "e2e"}
                or re.search(r"pool|worker|loop|turn|queue|seq|eval", name))


CONFIGS = [
    Config("release", "build", "gcc, optimised, real models", None,
           ["--buildtype=release"], everything, 1, []),
    Config("clang", "build-ci-clang", "clang, debug", ("clang", "clang++"),
           ["--buildtype=debug"], quick, 3, []),
    Config("asan", "build-ci-asan", "gcc, AddressSanitizer and UBSan", None,
           # Checks as calls: inline they blow the unrolled kernels up to minutes of compiling.
           ["-Db_sanitize=address,undefined",
            "-Dc_args=--param=asan-instrumentation-with-call-threshold=0"], quick, 6, []),
    Config("tsan", "build-ci-tsan", "gcc, ThreadSanitizer", None,
           # Its shadow memory has no place for some randomised addresses.
           ["-Db_sanitize=thread"], threaded, 10, ["setarch", "-R"]),
    Config("nosimd", "build-ci-nosimd", "gcc, scalar kernels alone", None,
           ["--buildtype=release", "-Dsimd=false"], quick, 3, []),
]

Outcome = collections.namedtuple(
    "Outcome", "test passed failed skipped seconds trouble output skips")


def say(text=""):
    print(text, flush=True)


# ---- TAP --------------------------------------------------------------------------------

PLAN = re.compile(r"^1\.\.(\d+)(?:\s*#\s*skip\b\s*(.*))?", re.I)
POINT = re.compile(r"^(not )?ok\b(?:\s+(\d+))?(?:\s+-)?\s*(.*)$")
DIRECTIVE = re.compile(r"(?<!\\)#\s*(skip|todo)\S*\s*(.*)$", re.I)


class Points:
    """What a TAP stream says. cmocka writes a skipped test as `not ok N # SKIP`."""

    def __init__(self, text):
        self.passed, self.failed, self.skipped = 0, [], 0
        self.trouble, self.skips, plan, seen = [], [], None, 0
        for line in text.splitlines():
            if line.startswith("Bail out!"):
                self.trouble.append(line)
            elif PLAN.match(line):
                plan, why = int(PLAN.match(line)[1]), PLAN.match(line)[2]
                if plan == 0 and "#" in line:
                    self.skipped += 1
                    self.skips.append(why or "no reason given")
            elif POINT.match(line):
                seen += 1
                self.point(*POINT.match(line).groups())
        if plan is None:
            self.trouble.append("printed no plan" if seen else "printed no TAP")
        elif plan != seen:
            self.trouble.append("planned %d points, ran %d" % (plan, seen))

    def point(self, bad, number, name):
        directive = DIRECTIVE.search(name)
        if directive and directive[1].lower() == "skip":
            self.skipped += 1
            self.skips.append(directive[2] or name[:directive.start()].strip() or "no reason given")
        elif bad and not directive:
            self.failed.append(name)
        else:
            self.passed += 1


# ---- one test ---------------------------------------------------------------------------

running = set()  # test processes, so that an interrupt can end them


def stop_group(process):
    """End a test and what it started: it leads a process group of its own."""
    for number, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 30)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        try:
            return process.communicate(timeout=patience)[0]
        except subprocess.TimeoutExpired:
            continue
    return b""


def run_one(config, test, models):
    # Outside the suite real no test may lean on a real model: the tiny ones are there for that.
    env = {k: v for k, v in os.environ.items() if not k.startswith("PLY_TEST_")}
    env.update(SANITIZERS, LC_ALL="C.UTF-8", CMOCKA_MESSAGE_OUTPUT="TAP",
               PYTHONDONTWRITEBYTECODE="1")
    env.update(test["env"])
    if "real" in test["suite"]:
        env.update(models)
    limit = (test["timeout"] or 600) * config.slow
    start = time.monotonic()
    try:
        process = subprocess.Popen(config.wrap + test["cmd"], cwd=test["workdir"] or config.folder,
                                   env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, start_new_session=True)
    except OSError as e:
        return Outcome(test, 0, [], 0, 0, ["cannot be started: %s" % e], "", [])
    running.add(process)
    trouble = []
    try:
        output = process.communicate(timeout=limit)[0]
    except subprocess.TimeoutExpired:
        output = stop_group(process)
        trouble.append("took longer than %d s" % limit)
    running.discard(process)
    text = output.decode("utf-8", "replace")
    return judge(test, process.returncode, text, trouble, time.monotonic() - start)


def judge(test, code, text, trouble, seconds):
    """Turn output and exit code into an Outcome."""
    if test["protocol"] == "tap":
        p = Points(text)
        passed, failed, skipped, skips = p.passed, p.failed, p.skipped, p.skips
        trouble = trouble + p.trouble
    else:
        passed, skipped, failed = int(code == 0), int(code == 77), []
        skips = ["exit 77"] if skipped else []
        if code not in (0, 77) and not trouble:
            trouble.append("exit %d" % code)
    if code < 0 and not trouble:
        trouble.append("ended by %s" % signal.Signals(-code).name)
    elif code != 0 and not failed and not trouble and not skips:
        trouble.append("exit %d although no point failed" % code)
    return Outcome(test, passed, failed, skipped, seconds, trouble, text, skips)


def report(config, outcome):
    """One line a test; all it printed when something failed."""
    bad = len(outcome.failed) + bool(outcome.trouble)
    counts = "%d passed" % outcome.passed
    counts += ", %d FAILED" % bad if bad else ""
    counts += ", %d skipped" % outcome.skipped if outcome.skipped else ""
    say("%-8s %-28s %s (%.1f s)" % (config.name, outcome.test["name"], counts, outcome.seconds))
    for why in sorted(set(outcome.skips)):
        say("    skipped: %s" % why)
    if bad:
        for name in outcome.failed:
            say("    FAILED: %s" % name)
        for line in outcome.trouble:
            say("    FAILED: %s" % line)
        lines = outcome.output.splitlines()
        if len(lines) > 400:
            gap = "[... %d lines left out ...]" % (len(lines) - 400)
            lines = lines[:150] + [gap] + lines[-250:]
        say("    ---- output of %s" % outcome.test["name"])
        for line in lines:
            say("    | " + line)
    return bad


# ---- one configuration ------------------------------------------------------------------

def call(argv, env=None):
    """Run a build step; on failure its output is shown."""
    p = subprocess.run(argv, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True, errors="replace")
    if p.returncode != 0:
        say("    " + "\n    ".join(p.stdout.splitlines()[-200:]))
    return p.returncode == 0


def build(config, strict):
    """Configure (once) and build; False with the output shown when that fails."""
    env = dict(os.environ)
    if config.compilers:
        env["CC"], env["CXX"] = config.compilers
    if not os.path.exists(os.path.join(ROOT, config.folder, "build.ninja")):
        options = config.options + (["--werror"] if strict else [])
        if not call(["meson", "setup"] + options + [config.folder], env):
            return False
    return call(["ninja", "-C", config.folder, "--quiet"], env)


def tests_of(config, words):
    """The tests that take part, those that must run alone last."""
    listing = subprocess.run(["meson", "introspect", "--tests", config.folder], cwd=ROOT,
                             check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout
    tests = []
    for test in json.loads(listing):
        test["suite"] = {s.split(":")[-1] for s in test["suite"]}
        names = [test["name"], *test["suite"]]
        if config.choose(test["suite"], test["name"]) and (
                not words or any(w in n for w in words for n in names)):
            tests.append(test)
    return sorted(tests, key=lambda t: (not t["is_parallel"], -t["timeout"]))


class Totals:
    passed = failed = skipped = 0

    def __init__(self):
        self.names = []

    def fail(self, name):
        self.failed += 1
        self.names.append(name)


def run_config(config, args, strict, models, totals):
    say("---- %s: %s" % (config.name, config.what))
    start = time.monotonic()
    if not build(config, strict):
        say("    FAILED: the build")
        totals.fail("%s: the build" % config.name)
        return
    built = time.monotonic()
    tests = tests_of(config, args.words)
    if args.list:
        for test in tests:
            say("%-28s %s" % (test["name"], " ".join(sorted(test["suite"]))))
        return

    def take(outcome):
        bad = report(config, outcome)
        totals.passed += outcome.passed
        totals.failed += bad
        totals.skipped += outcome.skipped
        totals.names += ["%s: %s: %s" % (config.name, outcome.test["name"], n)
                         for n in outcome.failed + outcome.trouble]

    parallel = [t for t in tests if t["is_parallel"]]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        jobs = [pool.submit(run_one, config, t, models) for t in parallel]
        try:
            for job in concurrent.futures.as_completed(jobs):
                take(job.result())
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(running):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    for test in tests[len(parallel):]:
        take(run_one(config, test, models))
    say("---- %s: built in %d s, %d tests in %d s" % (
        config.name, built - start, len(tests), time.monotonic() - built))


def real_models(strict, totals):
    """The environment that names the real models; one that lacks is a failure in CI."""
    models = {}
    for name, title in (("PLY_TEST_MODEL_S", "SmolLM2"), ("PLY_TEST_MODEL_G", "Gemma")):
        if os.environ.get(name):
            models[name] = os.environ[name]
        elif strict:
            totals.fail("the model %s could not be fetched" % title)
        else:
            say("without %s: its tests are skipped" % title)
    return models


def main():
    parser = argparse.ArgumentParser(description="Build and run parley's tests.")
    parser.add_argument("--configs", help="comma-separated: " + ", ".join(c.name for c in CONFIGS))
    parser.add_argument("--list", action="store_true", help="only list the tests")
    parser.add_argument("words", nargs="*", help="run tests whose name or suite holds one of these")
    args = parser.parse_args()
    strict = os.environ.get("CI") == "true"
    chosen = [c.name for c in CONFIGS] if strict else ["release"]
    if args.configs:
        chosen = args.configs.split(",")
        unknown = set(chosen) - {c.name for c in CONFIGS}
        if unknown:
            parser.error("no configuration %s" % ", ".join(sorted(unknown)))
    os.chdir(ROOT)
    tap.mind_signals()
    totals = Totals()
    models = real_models(strict, totals)
    try:
        for config in CONFIGS:
            if config.name in chosen:
                run_config(config, args, strict, models, totals)
    except KeyboardInterrupt:
        totals.fail("interrupted")
    if args.list:
        return 0
    if totals.passed + totals.failed == 0:
        totals.fail("no test ran")
    say()
    for name in totals.names:
        say("FAILED  " + name)
    say("%d passed, %d failed, %d skipped" % (totals.passed, totals.failed, totals.skipped))
    return 1 if totals.failed else 0


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.exit(main())
