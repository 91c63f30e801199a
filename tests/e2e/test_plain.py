# SPDX-License-Identifier: MIT
"""--plain on tiny models: a chat line by line, piped and on a terminal."""
import os
import signal

from harness import *

MODEL = "llama-q8_0-bpe-chatml"


def args(home, *more, n="-1"):
    # The third reply is long enough that ^C comes before its end, however fast the machine is.
    lines = home.file("ids", "72 73 74\n75 76\n" + " ".join(["72"] * 12000) + "\n")
    return ["--plain", "-m", tiny(MODEL), "-t", "1", "-c", "13000", "-n", n,
            "--force-ids", lines] + list(more)


@test("piped: each line is answered in order, commands too, and the end is exit 0")
def _():
    home = Home()
    r = parley(*args(home), stdin="hi\n/nope\nmore", home=home).expect(0)
    text = r.text
    check(text.index("EFG") < text.index("no command") < text.index("HI"), text)
    contains(text, "reused")
    check("\x1b" not in text and "\r" not in text, repr(text))
    contains(parley("ls", home=home).text, "hi")


@test("without a terminal a bare chat is line by line")
def _():
    home = Home()
    contains(parley(*args(home)[1:], stdin="hi\n", home=home).expect(0).text, "EFG")


@test("what is typed is sent as it is: backslashes are no escapes, // is a slash")
def _():
    home = Home()
    parley(*args(home), stdin="a\\nb\n//x\n", home=home).expect(0)
    messages = parley("show", "1", "--json", home=home).json["messages"]
    texts = [m["text"] for m in messages if m["role"] == "user"]
    equal(texts, ["a\\nb", "/x"])


@test("on a terminal: a prompt, ^C stops the reply and not the program, /quit leaves")
def _():
    home = Home()
    with Pty(parley_path(), *args(home), home=home) as t:
        t.wait_for("> ")
        t.send("hi\n")
        t.wait_for("EFG")
        t.wait_for("> ")
        t.send("more\n")
        t.wait_for("HI")
        t.wait_for("> ")
        t.send("long\n")
        t.wait_for("EEEE")
        t.send("\x03")
        t.wait_for("> ")
        t.send("\x03")
        t.wait_for("again or /quit")
        t.wait_for("> ")
        t.send("/quit\n")
        equal(t.wait(), 0)
    equal(len(parley("show", "1", "--json", home=home).json["messages"]), 6)


@test("coming back shows what was said")
def _():
    home = Home()
    parley(*args(home), stdin="hello there\n", home=home).expect(0)
    r = parley("resume", "--plain", "-m", tiny(MODEL), "-t", "1", stdin="", home=home).expect(0)
    contains(r.text, "hello there")
    contains(r.text, "EFG")


if __name__ == "__main__":
    main()
