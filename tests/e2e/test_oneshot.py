# SPDX-License-Identifier: MIT
"""-p and -f on tiny models: one answer on stdout, everything else on stderr, true exit codes."""
import json
import os
import signal
import subprocess
import time

from harness import *

MODEL = "llama-q8_0-bpe-chatml"
ARGS = ["-t", "1", "--temp", "0", "-n", "6"]


def once(*args, model=MODEL, **kw):
    return parley("-m", tiny(model), *(ARGS + list(args)), **kw)


def prompt_of(*args, home=None, **kw):
    """The bytes of the prompt that was fed, control tokens apart."""
    home = home or Home()
    trace = os.path.join(home.path, "trace")
    once(*args, "--trace", trace, home=home, **kw).expect(0)
    rows = [json.loads(line) for line in open(trace)]
    n = rows[0]["prompt"]
    ids = " ".join(str(r["id"]) for r in rows[1:n + 1])
    return parley("detokenize", "-m", tiny(MODEL), stdin=ids).out


@test("the answer is on stdout, with a newline; nothing else is")
def _():
    r = once("-p", "hi").expect(0)
    check(r.out.endswith(b"\n"), r.out)
    j = once("-p", "hi", "--json").expect(0).json
    equal(j["event"], "turn")
    equal(r.out.decode().rstrip("\n"), j["text"].rstrip("\n"))
    equal(j["finish_reason"], "length")
    equal((j["session"], j["message"]), (None, None))


@test("--temp 0 says the same each time, on one thread or two")
def _():
    want = once("-p", "hello", "--json").json["ids"]
    for t in ("1", "2", "3"):
        r = parley("-m", tiny(MODEL), "-t", t, "--temp", "0", "-n", "6", "-p", "hello", "--json")
        equal(r.json["ids"], want)


@test("nothing is stored, unless a session is named")
def _():
    home = Home()
    once("-p", "hi", home=home).expect(0)
    check(not os.path.exists(os.path.join(home.data, "parley.db")), "a one-shot was stored")
    once("-p", "hi", "--session", "s", home=home).expect(0)
    j = once("-p", "more", "--session", "s", "--json", home=home).expect(0).json
    equal(j["session"], 1)
    equal(len(parley("show", "s", "--json", home=home).json["messages"]), 4)
    j = once("-p", "more", "-C", "--json", home=home).expect(0).json
    equal(j["session"], 1)


@test("standard input is appended after a blank line; a file is the prompt")
def _():
    contains(prompt_of("-p", "say", stdin=b"this\n"), b"say\n\nthis")
    check(b"say\n\n" not in prompt_of("-p", "say", stdin=b""), "an empty pipe was appended")
    check(b"say\n\n" not in prompt_of("-p", "say", stdin=None), "/dev/null was appended")
    home = Home()
    path = home.file("prompt", b"from a file\n")
    fed = prompt_of("-f", path, stdin=None, home=home)
    contains(fed, b"from a file")
    check(b"from a file\n\n" not in fed, fed)
    contains(prompt_of("-f", path, stdin=b"and a pipe", home=home), b"from a file\n\nand a pipe")


@test("exit codes: usage 2, model not found 66, corrupt 65, failure 1")
def _():
    home = Home()
    junk = home.file("junk.gguf", b"GGUF but not really, only text" * 10)
    text = home.file("text.gguf", b"hello")
    for args, code in ((["--nope"], 2), (["-p"], 2), (["--temp", "abc", "-p", "x"], 2),
                       (["--isa", "avxvnni", "-p", "x"], 2), (["--spec", "on", "-p", "x"], 2),
                       (["-m", "/nope.gguf", "-p", "x"], 66), (["-m", "nope", "-p", "x"], 66),
                       (["-p", "x"], 66), (["-f", "/nope", "-m", tiny(MODEL)], 66),
                       (["-m", junk, "-p", "x"], 65), (["-m", text, "-p", "x"], 65),
                       (["-m", tiny(MODEL), "-p", ""], 1),
                       (["-m", tiny(MODEL), "-c", "8", "-p", "hi"], 1),
                       (["-m", tiny(MODEL + "-nan"), "-p", "hi"], 1),
                       (["-m", tiny(MODEL), "-p", "x", "--trace", "/nope/trace"], 73),
                       (["resume", "nothing", "--jsonl", "-m", tiny(MODEL)], 66)):
        r = parley(*args, home=home).expect(code)
        equal(r.out, b"", " ".join(args))
        equal(len(r.errtext.strip().split("\n")), 1, "one line for %s: %s" % (args, r.errtext))
        check(r.errtext.startswith("parley: "), r.errtext)


@test("a prompt that is too long names both numbers")
def _():
    r = once("-c", "64", "-p", "word " * 300).expect(1)
    contains(r.errtext, "room for 63")


@test("B22: a huge file, and a huge sparse file, are refused at once with their size")
def _():
    home = Home()
    big = home.file("big", b"words and " * (6710887))
    sparse = os.path.join(home.path, "sparse")
    with open(sparse, "wb") as f:
        f.truncate(3 << 30)
    limit = ["sh", "-c", 'ulimit -v 2097152; exec "$0" "$@"']
    if execute(limit + [parley_path(), "--version"], env=home.env()).code != 0:
        limit = []  # sanitizers want more than there is
    for path in (big, sparse):
        began = time.monotonic()
        r = execute(limit + [parley_path(), "-m", tiny(MODEL), "-f", path], env=home.env())
        equal(r.code, 1, r.errtext)
        contains(r.errtext, "MiB")
        check(time.monotonic() - began < 60, "took long")
    # Under the limit but over the context: counted by length, not by encoding all of it.
    r = once("-f", home.file("mid", b"words and " * 1500000)).expect(1)
    contains(r.errtext, "room for")


@test("--force-ids: the k-th line is the k-th reply; junk in it is refused")
def _():
    home = Home()
    j = once("-p", "hi", "--json", "--force-ids", home.file("ids", "72,73 74\n\n75")).expect(0).json
    equal((j["ids"], j["finish_reason"]), ([72, 73, 74], "stop"))
    r = once("-p", "hi", "--force-ids", home.file("bad", "72 x3\n")).expect(1)
    contains(r.errtext, "x3")


@test("SIGINT ends with 130, a closed pipe by SIGPIPE")
def _():
    home = Home()
    ids = home.file("ids", " ".join(["72"] * 980) + "\n")
    args = [parley_path(), "-m", tiny("llama-q8_0-bpe-chatml-deep"), "-t", "1", "-n", "-1",
            "-p", "x", "--force-ids", ids]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    p = subprocess.Popen(args, env=home.env(), **pipes)
    p.stdout.read(1)
    p.send_signal(signal.SIGINT)
    p.communicate()
    check(p.returncode in (130, 0), p.returncode)  # 0: it was done before the signal came
    p = subprocess.Popen(args, env=home.env(), **pipes)
    p.stdout.close()
    p.stderr.read()
    equal(p.wait(TIMEOUT), -signal.SIGPIPE)
    p.stderr.close()


@test("B91: a reply's control characters reach a pipe as they are, and no terminal")
def _():
    home = Home()
    evil = b"a\x1b]52;c;QUJD\x07b\x1b[2J\x9bc"
    ids = parley("tokenize", "-m", tiny(MODEL), stdin=evil).text
    lines = home.file("ids", ids + ids)
    out = once("-p", "x", "-n", "99", "--force-ids", lines, home=home).out
    contains(out, b"a\x1b]52;c;QUJD\x07b\x1b[2J")
    with Pty(parley_path(), "-m", tiny(MODEL), "-t", "1", "-n", "99", "-p", "x",
             "--force-ids", lines, home=home) as t:
        t.wait()
        for byte in (b"\x1b", b"\x07", b"\x9b"):
            check(byte not in t.output, t.output)
        contains(t.output, b"QUJD")


if __name__ == "__main__":
    main()
