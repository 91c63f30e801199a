# SPDX-License-Identifier: MIT
"""The counting of tests/run_tests.py: a failure may not be lost on any way it can come."""
from source import *

import run_tests


def counts(text, code=0, protocol="tap"):
    """(passed, failed, skipped, number of troubles) of an output and exit code."""
    o = run_tests.judge({"name": "x", "protocol": protocol}, code, text, [], 0.0)
    return o.passed, len(o.failed), o.skipped, len(o.trouble)


@test("points, skips and a bad end are counted apart")
def _():
    equal(counts("1..2\nok 1 - a\nok 2 - b\n"), (2, 0, 0, 0))
    equal(counts("ok 1\nok 2\n1..2\n"), (2, 0, 0, 0))
    equal(counts("1..2\nok 1 - a\nnot ok 2 - b\n# why\n", 1), (1, 1, 0, 0))
    equal(counts("1..1\nok 1 - a # SKIP no model\n"), (0, 0, 1, 0))
    equal(counts("1..1\nok 1 - a \\# SKIP is its name\n"), (1, 0, 0, 0))
    equal(counts("1..0 # SKIP nothing here\n"), (0, 0, 1, 0))


@test("cmocka's way to say skipped is no failure")
def _():
    equal(counts("1..2\nok 1 - a\nnot ok 2 # SKIP b\n"), (1, 0, 1, 0))


@test("crashes, missing points and silent failures are failures")
def _():
    equal(counts("1..3\nok 1 - a\n", -11), (1, 0, 0, 1))
    equal(counts("1..1\nok 1 - a\n", -6), (1, 0, 0, 1))
    equal(counts("1..1\nok 1 - a\n", 99), (1, 0, 0, 1))
    equal(counts("1..3\nok 1 - a\nok 2 - b\n"), (2, 0, 0, 1))
    equal(counts("", 0), (0, 0, 0, 1))
    equal(counts("ok 1 - a\n", 0), (1, 0, 0, 1))
    equal(counts("1..2\nok 1 - a\nBail out! disk\n", 1), (1, 0, 0, 2))
    equal(counts("1..0 # SKIP no model\n", -11), (0, 0, 1, 1))


@test("a test without TAP counts by its exit code")
def _():
    equal(counts("hello\n", 0, "exitcode"), (1, 0, 0, 0))
    equal(counts("", 77, "exitcode"), (0, 0, 1, 0))
    equal(counts("", 1, "exitcode"), (0, 0, 0, 1))


if __name__ == "__main__":
    main()
