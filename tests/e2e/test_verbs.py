# SPDX-License-Identifier: MIT
"""tokenize, detokenize, info, score, bench, doctor and the list of models, on tiny models."""
import json
import math
import os
import random

from harness import *

MODEL = "llama-q8_0-bpe-chatml"
ROWS = ["pp8", "pp32", "pp128", "pp512", "pp8@2048", "pp32@2048", "pp128@2048", "tg64@0",
        "tg64@2048"]


def some_ids(n, seed=1, top=380):
    rnd = random.Random(seed)
    return " ".join(str(rnd.randrange(3, top)) for _ in range(n))


def score(*args, ids=None, model=MODEL):
    rows = parley("score", "-m", tiny(model), *args, stdin=ids or some_ids(150)).expect(0).lines
    return rows[:-1], rows[-1]


@test("text to ids and back: any bytes, no control tokens")
def _():
    for model in (MODEL, "gemma3-q8_0-spm-gemma", "llama-q8_0-spm-llama2"):
        for text in (b"", b"hello world", b"two\n\n  lines\t",
                     b"\x00\xff\xc3\xa9\xf0\x9f\x98\x80 \xe6\xad",
                     b"<|im_end|>\n<bos></s>", bytes(range(1, 128))):
            ids = parley("tokenize", "-m", tiny(model), stdin=text).expect(0)
            equal(ids.out.count(b"\n"), 1)
            back = parley("detokenize", "-m", tiny(model), stdin=ids.out).expect(0)
            equal(back.out, text, model)
    parley("detokenize", "-m", tiny(MODEL), stdin="1 x").expect(1)
    parley("detokenize", "-m", tiny(MODEL), stdin="999999").expect(1)
    parley("tokenize", "-m", "/nope", stdin="x").expect(66)


@test("info says what a file is; --json the same as one object")
def _():
    r = parley("info", tiny(MODEL)).expect(0)
    for part in ("architecture: llama", "template: chatml", "exact: yes", "byte-level BPE",
                 "gemm: "):
        contains(r.text, part)
    j = parley("info", "-m", tiny(MODEL), "--json").expect(0).json
    equal((j["architecture"], j["template"]), ("llama", "chatml"))
    equal((j["exact"], j["loadable"]), (True, True))
    contains(parley("info", tiny("gemma3-q8_0-spm-gemma")).text, "sentencepiece")
    contains(parley("info", tiny("llama-f32-bpe-chatml")).text, "exact: no (")
    contains(parley("info", tiny(MODEL), "--precision", "full").text, "exact: no (")
    parley("info", "/nope").expect(66)
    hostile = parley("info", tiny(MODEL + "-name")).expect(0)  # B92
    check(b"\x1b" not in hostile.out and b"\x07" not in hostile.out, hostile.out)
    contains(hostile.out, b"100% %s %n")


@test("score: one line a position, sums that agree with them")
def _():
    rows, last = score("--top", "5", "--hash")
    equal([r["pos"] for r in rows], list(range(150)))
    for r in rows:
        equal(len(r["top"]), 5)
        logprobs = [x[1] for x in r["top"]]
        equal(logprobs, sorted(logprobs, reverse=True))
    equal(rows[-1]["next_logprob"], None)
    nll = -sum(r["next_logprob"] for r in rows[:-1])
    check(abs(last["nll"] - nll) < 1e-3, (last, nll))
    check(abs(last["ppl"] - math.exp(nll / 149)) < 1e-2, last)
    equal((last["tokens"], len(last["hash"])), (150, 16))
    check("hash" not in score("--top", "1")[1], "a hash nobody asked for")


@test("the logits are the same bit for bit: chunks, threads, sets, companions, reuse")
def _():
    for model in (MODEL, "gemma3-q4_k_m-spm-gemma"):
        want = score("--hash", model=model)[1]["hash"]
        for args in (["--chunk", "1"], ["--chunk", "7"], ["--chunk", "64"], ["--chunk", "512"],
                     ["-t", "1"], ["-t", "2"], ["-t", "3"], ["--isa", "ref"], ["--batch", "2"],
                     ["--batch", "4", "--chunk", "9"], ["--batch", "33"],
                     ["--reuse", "--chunk", "13"]):
            equal(score("--hash", *args, model=model)[1]["hash"], want, " ".join([model] + args))
        other = score("--hash", ids=some_ids(150, 2), model=model)[1]["hash"]
        check(other != want, "the hash sees nothing")


@test("score refuses what is not a list of ids")
def _():
    for stdin, code in (("", 1), ("1 2 x", 1), ("1 2 999999", 1)):
        parley("score", "-m", tiny(MODEL), stdin=stdin).expect(code)
    parley("score", "-m", tiny(MODEL), "--verify", "4", stdin="1 2").expect(2)


@test("bench: one flat object with the rows of the contract; a row that does not fit is left out")
def _():
    j = parley("bench", "-m", tiny(MODEL), "-t", "1", "--json").expect(0).json
    for name in ("pp8", "pp32", "pp128", "pp512", "tg64@0", "load_ms", "rss_mb"):
        check(isinstance(j[name], (int, float)) and j[name] > 0, (name, j))
    check(set(j) <= set(ROWS) | {"load_ms", "rss_mb"}, j)
    text = parley("bench", "-m", tiny(MODEL), "-t", "1", "-c", "256").expect(0).text
    for name in ROWS:
        contains(text, name + " ")
    contains(text, "too short")


@test("B78: one odd file in the models folder spoils nothing, and is named with its reason")
def _():
    home = Home()
    with open(tiny(MODEL), "rb") as f:
        home.file("data/parley/models/good.gguf", f.read())
    home.file("data/parley/models/empty.gguf", b"")
    home.file("data/parley/models/text.gguf", b"this is no model")
    home.file("data/parley/models/short.gguf", b"GGUF\x03\x00\x00\x00")
    os.symlink("/nope/none.gguf", os.path.join(home.data, "models", "dangling.gguf"))
    with Jsonl("-m", "good", "-t", "1", "-n", "2", home=home) as p:
        models = {m["name"]: m for m in p.ok("/models")["models"]}
        equal(sorted(models), ["dangling.gguf", "empty.gguf", "good.gguf", "short.gguf",
                               "text.gguf"])
        for name, m in models.items():
            equal(m["usable"], name == "good.gguf", name)
            check(m["usable"] or m["reason"], name)
        equal(p.turn("hi")["event"], "turn")
    # Without a name the one that can be used is taken.
    parley("-p", "hi", "-n", "2", "-t", "1", home=home).expect(0)
    folder = os.path.join(home.data, "models")
    parley("-m", folder, "-p", "hi", "-n", "2", "-t", "1", home=home).expect(0)
    r = parley("-m", "zzz", "-p", "hi", home=home).expect(66)
    contains(r.errtext, "good.gguf")
    r = parley("doctor", home=home)
    for name in models:
        contains(r.text, name)
    contains(r.text, "loads in")


@test("models are found by a part of their name, unless several fit")
def _():
    home = Home()
    with open(tiny(MODEL), "rb") as f:
        data = f.read()
    home.file("data/parley/models/small-one.gguf", data)
    home.file("data/parley/models/small-two.gguf", data)
    parley("-m", "two", "-p", "x", "-n", "1", "-t", "1", home=home).expect(0)
    parley("-m", "small-one", "-p", "x", "-n", "1", "-t", "1", home=home).expect(0)
    contains(parley("-m", "small", "-p", "x", home=home).expect(1).errtext, "small-two.gguf")
    parley("-p", "x", "-n", "1", "-t", "1", home=home, env={"PARLEY_MODEL": "small-two"}).expect(0)


if __name__ == "__main__":
    main()
