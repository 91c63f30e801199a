# SPDX-License-Identifier: MIT
"""--jsonl on tiny models: the grammar of its lines, what each turn counts, and what is there
after coming back."""
import os
import signal
import stat
import threading
import time

from harness import *

MODEL = "llama-q8_0-bpe-chatml"
# One thread: on tiny models a second one mostly waits.
ARGS = ["-t", "1", "--temp", "0", "-n", "8"]


def chat(*args, model=MODEL, **kw):
    return Jsonl("-m", tiny(model), *(ARGS + list(args)), **kw)


def count(turn):
    """The laws of counting that hold for every turn whose prompt was evaluated."""
    u, t = turn["usage"], turn["timings"]
    cached = u["prompt_tokens_details"]["cached_tokens"]
    equal(turn["evaluated"] + cached + turn["drafted"], u["prompt_tokens"], "the sum")
    equal(sum(turn["reused"].values()), cached, "reused")
    equal((t["cache_n"], t["prompt_n"]), (cached, turn["evaluated"]), "timings")
    equal(u["completion_tokens"], len(turn["ids"]), "completion_tokens")
    parts = sum(turn["ttft"].values())
    check(abs(parts - turn["ttft_ms"]) < 5 + turn["ttft_ms"] * 0.5,
          "ttft %r is not its parts %r" % (turn["ttft_ms"], turn["ttft"]))
    return cached


def not_fed(turn, n=8):
    """The last id of a reply that ended by its length is drawn, and not evaluated yet; unless it
    was a newline at the end of a transcript's reply, which is cut."""
    return 1 if turn["finish_reason"] == "length" and len(turn["ids"]) == n else 0


@test("ready comes first and says what is loaded")
def _():
    with chat() as p:
        equal(p.ready["session"], None)
        equal(p.ready["template"], "chatml")
        equal(p.ready["context"], 1024)
        equal(p.ready["exact"], True)


@test("each later turn evaluates its new tokens alone, and /regen one")
def _():
    for model in (MODEL, "gemma3-q8_0-spm-gemma", "llama-q8_0-spm-llama2",
                  "gemma3-q4_k_m-spm-none"):
        with chat(model=model) as p:
            last = None
            for text in ("Tell me about finches.", "ok", "a longer third message, to see"):
                turn = p.turn(text)
                cached = count(turn)
                equal("".join(p.pieces), turn["text"], "the pieces and the text")
                if last:
                    fed = last["usage"]["prompt_tokens"] + len(last["ids"]) - not_fed(last)
                    equal(cached, fed, model)
                    equal(turn["reuse_reason"], "full")
                else:
                    equal(turn["reuse_reason"], "cold")
                last = turn
            again = p.ask("/regen")
            equal(count(again), again["usage"]["prompt_tokens"] - 1)
            equal((again["text"], again["ids"]), (last["text"], last["ids"]))


@test("quit and come back: same text, same ids, as if never gone")
def _():
    home, stay = Home(), Home()
    script = ["first", "second", "third", "fourth"]
    with chat(home=stay) as p:
        want = [p.turn(text) for text in script]
    got, session = [], None
    for text in script:
        with chat(*(["--session", str(session)] if session else []), home=home) as p:
            equal(p.ready["messages"], 2 * len(got))
            got.append(p.turn(text))
            session = got[-1]["session"]
    for w, g in zip(want, got):
        equal((g["text"], g["ids"]), (w["text"], w["ids"]))
        equal(g["usage"]["prompt_tokens"], w["usage"]["prompt_tokens"])


@test("B45: a reply is fed as the ids it was drawn as, also after coming back")
def _():
    home = Home()
    ids = home.file("ids", "72 73 74\n")  # three letters, whatever merges there are
    with chat("--force-ids", ids, home=home) as p:
        equal(p.turn("hi")["ids"], [72, 73, 74])
        equal(p.turn("hi")["finish_reason"], "length")  # after the last line ids are drawn
    trace = os.path.join(home.path, "trace")
    with chat("-C", "--trace", trace, home=home) as p:
        p.turn("ok")
    equal(stat.S_IMODE(os.stat(trace).st_mode), 0o600)
    rows = [json.loads(line) for line in open(trace)]
    equal(rows[0].get("request"), 1)
    fed = [r["id"] for r in rows if "id" in r]
    check(any(fed[i:i + 3] == [72, 73, 74] for i in range(len(fed))), "72 73 74 was not fed")


@test("B43: positions of all rows are 0..n-1 on every turn, regenerated and resumed ones too")
def _():
    home = Home()
    trace = os.path.join(home.path, "trace")
    with chat("--trace", trace, home=home) as p:
        p.turn("one")
        p.turn("two")
        p.ask("/regen")
    requests = []
    for line in open(trace):
        row = json.loads(line)
        if "request" in row:
            requests.append((row["prompt"], {}))
        else:
            rows = requests[-1][1]
            check(row["pos"] not in rows or row["from"] == "evaluated", "row %r twice" % row)
            rows[row["pos"]] = row
    equal(len(requests), 3)
    for prompt, rows in requests:
        equal(sorted(rows), list(range(len(rows))))
        check(prompt <= len(rows) <= prompt + 8, "%d rows for a prompt of %d" % (len(rows), prompt))
    # The same prompt again is fed the same ids, whatever was reused.
    def prompt_ids(request):
        return [request[1][i]["id"] for i in range(request[0])]
    equal(prompt_ids(requests[1]), prompt_ids(requests[2]))
    prompt, rows = requests[2]
    equal([r["from"] for r in rows.values()].count("live"), prompt - 1)


@test("B38: a stop string never shows, split over ids or not, and its tail is released")
def _():
    text = b"alpha beta gamma delta"
    home = Home()
    for size in (1, 2, 3):
        pieces = [text[i:i + size] for i in range(0, len(text), size)]
        ids = [parley("tokenize", "-m", tiny(MODEL), stdin=x).text.split() for x in pieces]
        flat = [i for x in ids for i in x]
        upto = [i for x in ids[:(10 + size - 1) // size] for i in x]
        lines = home.file("ids", " ".join(flat) + "\n" + " ".join(upto) + "\n")
        with Jsonl("-m", tiny(MODEL), "-t", "1", "--force-ids", lines, "--stop", "beta gamma",
                   home=home) as p:
            turn = p.turn("say it")
            equal((turn["text"], "".join(p.pieces)), ("alpha ", "alpha "))
            equal(turn["finish_reason"], "stop")
            turn = p.turn("again")
            check(turn["text"].startswith("alpha beta"), turn["text"])
            equal("".join(p.pieces), turn["text"])


@test("after a stop string the next turn reads on from the ids that were kept")
def _():
    home = Home()
    ids = parley("tokenize", "-m", tiny(MODEL), stdin=b"gold finches and more").text
    lines = home.file("ids", ids)
    with chat("--force-ids", lines, "--stop", " and", "-n", "50", home=home) as p:
        one = p.turn("go")
        equal(one["text"], "gold finches")
        cached = count(p.turn("ok"))
        kept = one["usage"]["prompt_tokens"] + len(one["ids"])
        check(kept - 8 <= cached <= kept, "%d cached, %d kept" % (cached, kept))


@test("lines: escapes, slashes, JSON, bytes, empty ones; each in one event")
def _():
    home = Home()
    with chat(home=home) as p:
        p.send("")
        for line in ("a\\nb\\\\c", "//slash", '{"text":"x\\u0000y"}', {"bytes64": "AAECw7A="}):
            equal(p.ask(line)["event"], "turn")
        for line in ("{bad", '{"a":1}', {"bytes64": "!!"}, {"text": ""}, '{"text":1}', "{}"):
            p.error(line)
        check("no command" in p.error("/nope")["message"], "an unknown command is named")
        session = p.ok("/show session")["session"]
    show = parley("show", session, "--json", home=home).expect().json
    texts = [m.get("text") for m in (show[0] if isinstance(show, list) else show)["messages"]
             if m["role"] == "user"]
    equal(texts[:3], ["a\nb\\c", "/slash", "x\0y"])


@test("everything queued is answered in order, and the end of input is exit 0")
def _():
    r = execute([parley_path(), "--jsonl", "-m", tiny(MODEL)] + ARGS,
                stdin="one\n/set temp 0.5\n/nope\ntwo", env=Home().env()).expect(0)
    kinds = [e["event"] for e in r.lines if e["event"] != "text"]
    equal(kinds, ["ready", "turn", "ok", "error", "turn"])


@test("/stop acts at once: before the first token the message comes back as the draft")
def _():
    with chat("-n", "-1") as p:
        p.send("hello\n/stop")
        kinds = [p.wait("turn", "ok", "error") for _ in range(2)]
        turn = [e for e in kinds if e["event"] == "turn"][0]
        check([e for e in kinds if e["event"] == "ok"], "no ok for /stop")
        equal((turn["finish_reason"], turn["ids"], turn["message"]), ("cancelled", [], None))
        equal(p.ok("/show session")["draft"], "hello")
        equal(p.ok("/show session")["messages"], 0)
        equal(p.ok("/stop")["stopped"], False)


@test("/stop in the middle keeps what was said, and the next turn reads on from it")
def _():
    home = Home()
    lines = home.file("ids", " ".join(["72"] * 900) + "\n")
    with chat("-n", "-1", "--force-ids", lines, home=home) as p:
        p.send("go on")
        p.wait("text")
        p.send("/stop")
        turn = p.wait("turn", "error")
        equal(turn["event"], "turn")
        if turn["finish_reason"] != "cancelled":
            skip("the reply was over before /stop was read")
        check(0 < len(turn["ids"]) < 900, "%d ids" % len(turn["ids"]))
        next_turn = p.turn("ok")
        equal(count(next_turn), turn["usage"]["prompt_tokens"] + len(turn["ids"]) - 1)


@test("B53: a message that does not fit is an error with both numbers; nothing is stored")
def _():
    home = Home()
    with chat("-c", "64", home=home) as p:
        e = p.error("word " * 400)
        check("room for 63" in e["message"], e["message"])
        check(e["prompt_tokens"] > 63 and e["room"] == 63, e)
        equal(p.ok("/show session")["messages"], 0)
        equal(p.turn("hi")["session"], 1)
    for ctx in ("1", "8"):
        with chat("-c", ctx, home=home) as p:
            check("room for" in p.error("hi")["message"], ctx)
    equal(parley("-m", tiny(MODEL), "-c", "-1", "-p", "hi", home=home).code, 2)


@test("the context fills up in the middle of a reply: length, and then a clear error")
def _():
    home = Home()
    lines = home.file("ids", " ".join(["72"] * 200) + "\n")
    with chat("-c", "64", "-n", "-1", "--force-ids", lines, home=home) as p:
        turn = p.turn("hi")
        equal(turn["finish_reason"], "length")
        equal(turn["usage"]["prompt_tokens"] + len(turn["ids"]), 65)
        check("room for" in p.error("more")["message"], "no error")


@test("B84: logits that are not numbers end a turn, not the session")
def _():
    with chat(model="llama-q8_0-bpe-chatml-nan") as p:
        for _ in range(2):
            turn = p.turn("hi")
            equal(turn["finish_reason"], "error")
            contains(turn["error"], "numeric error at token 1")
            equal((turn["ids"], turn["message"]), ([], None))


@test("/cold: the whole prompt is read, both times are told, the logits are the same")
def _():
    with chat("--hash") as p:
        p.turn("one")
        want = p.turn("two")
        p.ok("/cold")
        turn = p.ask("/regen")
        equal(turn["evaluated"], turn["usage"]["prompt_tokens"])
        equal(turn["reuse_reason"], "disabled")
        equal(turn["warm"]["evaluated"], 1)
        equal(turn["warm"]["same_logits"], True)
        check(turn["warm"]["ttft_ms"] > 0 and turn["ttft_ms"] > 0, turn)
        equal(turn["prompt_hash"], want["prompt_hash"])
        equal((turn["ids"]), want["ids"])
        equal(p.ask("/regen")["evaluated"], 1)


@test("--kv-cache off reads everything on each turn, and says the same")
def _():
    with chat("--hash") as p:
        want = [p.turn(t) for t in ("one", "two")]
    with chat("--hash", "--kv-cache", "off") as p:
        for w, text in zip(want, ("one", "two")):
            turn = p.turn(text)
            equal(turn["evaluated"], turn["usage"]["prompt_tokens"])
            equal(turn["reuse_reason"], "disabled")
            equal((turn["ids"], turn["prompt_hash"]), (w["ids"], w["prompt_hash"]))


@test("the system prompt: set, read back, removed; reuse says why it stopped")
def _():
    home = Home()
    with chat("-sys", "You are brief.", home=home) as p:
        equal(p.ok("/system")["system"], "You are brief.")
        p.turn("one")
        p.ok("/system You are long.")
        equal(p.turn("two")["reuse_reason"], "system_changed")
    with chat("-C", home=home) as p:
        equal(p.ok("/system")["system"], "You are long.")
    with chat("-sys", "", model=MODEL + "-system", home=home) as p:
        equal(p.ok("/system")["system"], "")
    with chat(model=MODEL + "-system", home=home) as p:
        equal(p.ok("/system")["system"], "You are tiny.")


@test("sampling and context are restored with the session, flags win")
def _():
    home = Home()
    with Jsonl("-m", tiny(MODEL), "-t", "1", "-n", "4", "-c", "500", "--temp", "0.3", "--seed", "7",
               home=home) as p:
        p.turn("hi")
        p.ok("/set top_k 5")
    with Jsonl("-t", "1", "-C", "--seed", "8", home=home) as p:
        got = p.ok("/set")["parameters"]
        equal((got["temp"], got["top_k"], got["seed"]), (0.3, 5, 8))
        equal(p.ready["context"], 500)
        equal(os.path.basename(p.ready["path"]), MODEL + ".gguf")
        for bad in ("temp -1", "temp nan", "temp abc", "top_p 2", "nope 1", "seed -3"):
            p.error("/set " + bad)
        equal(p.ok("/set")["parameters"]["temp"], 0.3)


@test("--session NAME opens a session of that name or starts it")
def _():
    home = Home()
    with chat("--session", "my chat", home=home) as p:
        equal((p.ready["session"], p.ready["messages"]), (None, 0))
        p.turn("hi")
        equal(p.ok("/show session")["title"], "my chat")
    with chat("--session", "my chat", home=home) as p:
        equal(p.ready["messages"], 2)
        p.ok("/rename other")
        p.ok("/new")
        p.turn("second")
        equal(len(p.ok("/sessions")["sessions"]), 2)
        equal(p.ok("/resume other")["messages"], 2)
        p.ok("/delete")
        p.error("/resume other")


@test("a session whose model file is gone opens to be read, and the file is named")
def _():
    home = Home()
    path = os.path.join(home.path, "gone.gguf")
    with open(tiny(MODEL), "rb") as f:
        home.file("gone.gguf", f.read())
    with Jsonl("-m", path, *ARGS, home=home) as p:
        p.turn("hi")
    os.remove(path)
    with Jsonl("-C", *ARGS, home=home) as p:
        equal((p.ready["model"], p.ready["messages"]), (None, 2))
        contains(p.ready["read_only"], "gone.gguf")
        contains(p.error("more")["message"], "no model")
        equal(p.ok("/show session")["messages"], 2)
    with chat("-C", home=home) as p:
        equal(p.turn("more")["event"], "turn")


@test("another model reads a conversation by its text, and says why it reads all of it")
def _():
    home = Home()
    with chat(home=home) as p:
        p.turn("hi")
    with chat("-C", model="llama-q8_0-bpe-chatml-deep", home=home) as p:
        turn = p.turn("more")
        equal((turn["reuse_reason"], sum(turn["reused"].values())), ("model_changed", 0))


@test("/model goes on with another model; one that cannot be loaded changes nothing")
def _():
    home = Home()
    with chat(home=home) as p:
        first = p.turn("hi")
        junk = home.file("junk.gguf", b"no model at all")
        contains(p.error("/model " + junk)["message"], "not a GGUF file")
        p.error("/model /nope.gguf")
        again = p.ask("/regen")
        equal((again["ids"], again["reuse_reason"]), (first["ids"], "settings_changed"))
        p.ok("/model " + tiny("llama-q8_0-bpe-chatml-deep"))
        equal(p.turn("more")["reuse_reason"], "model_changed")


@test("what is stored of a turn is what was told (B113)")
def _():
    home = Home()
    with chat(home=home) as p:
        turn = p.turn("hi")
    reply = parley("show", "1", "--json", home=home).json["messages"][1]
    stored = json.dumps(reply)
    contains(stored, '"ttft_ms": ')
    kept = reply.get("stats", reply)
    check(abs(kept["ttft_ms"] - turn["ttft_ms"]) < 0.01, kept)
    equal(kept["usage"]["prompt_tokens"], turn["usage"]["prompt_tokens"])


@test("SIGTERM and SIGINT store what was said; the end tells the signal")
def _():
    for number, code in ((signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 130),
                         (signal.SIGHUP, -signal.SIGHUP)):
        home = Home()
        lines = home.file("ids", " ".join(["72"] * 900) + "\n")
        p = chat("-n", "-1", "--force-ids", lines, home=home)
        p.send("go on")
        p.wait("text")
        p.signal(number)
        turn = p.wait("turn")
        p.p.stdin.close()
        equal(p.p.wait(TIMEOUT), code)
        with chat("-C", home=home) as again:
            equal(again.ready["messages"], 2)
        check(len(turn["ids"]) > 0, "no ids")


@test("kill -9 in the middle loses a second at most, and the session opens again")
def _():
    home = Home()
    lines = home.file("ids", " ".join(["72"] * 990) + "\n")
    p = chat("-n", "-1", "--force-ids", lines, home=home)
    p.send("go on")
    p.wait("text")
    p.kill()
    with chat("-C", home=home) as again:
        check(again.ready["messages"] in (1, 2), again.ready)
        equal(again.turn("more")["event"], "turn")
        equal(again.ask("/regen")["event"], "turn")


@test("B63: regenerate right after coming back, with and without a reply at the end")
def _():
    home = Home()
    with chat(home=home) as p:
        want = p.turn("hi")
    with chat("-C", home=home) as p:
        got = p.ask("/regen")
        check(got["evaluated"] >= 1, got)
        equal(got["ids"], want["ids"])
    with chat(home=Home()) as p:
        contains(p.error("/regen")["message"], "no message to answer")


@test("a reader that goes away ends the program, not with a crash")
def _():
    home = Home()
    p = subprocess.Popen([parley_path(), "--jsonl", "-m", tiny(MODEL)] + ARGS, env=home.env(),
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    p.stdout.readline()
    p.stdout.close()
    p.stdin.write(b"hi\n" * 3)
    p.stdin.flush()
    equal(p.wait(TIMEOUT), 74)
    p.stdin.close()


@test("a line of 40 MB is refused and the next one is run")
def _():
    with chat() as p:
        t = threading.Thread(target=p.send, args=("x" * (40 << 20),))
        t.start()
        e = p.wait(*p.FINAL)
        t.join()
        equal(e["event"], "error")
        contains(e["message"], "too long")
        equal(p.turn("hi")["event"], "turn")


if __name__ == "__main__":
    main()
