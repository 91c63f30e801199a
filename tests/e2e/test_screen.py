# SPDX-License-Identifier: MIT
"""The full screen as a person meets it: the program in tmux, keys in, screen out; and what it
leaves behind when it ends, however it ends. On a tiny model with forced replies."""
import os
import shutil
import signal
import sqlite3
import subprocess
import termios
import time

from harness import *

MODEL = "llama-q8_0-bpe-chatml"


def replies(home, *lines):
    """A --force-ids file: each reply as text."""
    rows = [parley("tokenize", "-m", tiny(MODEL), stdin=x.encode()).text for x in lines]
    return home.file("ids", "".join(rows))


class Tmux:
    """parley in a tmux server of its own."""
    count = 0

    def __init__(self, home, *args, rows=24, cols=80):
        if not shutil.which("tmux"):
            skip("tmux is not installed")
        self.home = home
        Tmux.count += 1
        self.socket = os.path.join(home.path, "tmux-%d" % Tmux.count)
        command = "'%s' -m '%s' -t 1 %s; echo ended=$?; trap '' INT; exec sleep 1000" % (
            parley_path(), tiny(MODEL), " ".join("'%s'" % a for a in args))
        # -f /dev/null: the user's configuration is not ours to test.
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(cols), "-y", str(rows), command)
        cleanup(lambda: subprocess.run(["tmux", "-S", self.socket, "kill-server"],
                                       stderr=subprocess.DEVNULL))

    def tmux(self, *args):
        return subprocess.run(["tmux", "-S", self.socket] + list(args), check=True,
                              env=self.home.env({"TERM": "xterm-256color", "SHELL": "/bin/sh"}),
                              stdout=subprocess.PIPE).stdout.decode()

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def wait_for(self, *parts, gone=(), timeout=None):
        """Until all parts are on the screen, and none of `gone`."""
        deadline = time.monotonic() + (timeout or TIMEOUT)
        while True:
            screen = self.screen()
            if all(p in screen for p in parts) and not any(g in screen for g in gone):
                return screen
            if time.monotonic() > deadline:
                raise Failure("%r not on the screen (or %r still is):\n%s" % (parts, gone, screen))
            time.sleep(0.05)


@test("say something, read the reply, see what was reused, leave, come back by one key")
def _():
    home = Home()
    ids = replies(home, "a seven of gold", "no more of it")
    t = Tmux(home, "--force-ids", ids, "-n", "40")
    t.wait_for("Enter sends", "new conversation", "IDLE")
    t.type("hello there")
    t.wait_for("> hello there")
    t.keys("Enter")
    t.wait_for("you", "hello there", "a seven of gold", "reuse 0/", "#1 hello there", "IDLE")
    t.type("again")
    t.keys("Enter")
    screen = t.wait_for("no more of it", "IDLE")
    check("reuse 0/" in screen and screen.count("reuse") == 3, screen)
    t.keys("C-d")
    t.wait_for("ended=0")
    t = Tmux(home, "-n", "40")
    t.wait_for('Tab goes on with "hello there"')
    t.keys("Tab")
    t.wait_for("a seven of gold", "no more of it", "#1 hello there")


@test("Esc stops the reply and keeps what was said")
def _():
    home = Home()
    # Long enough that Esc comes before the end, however fast the machine is.
    ids = home.file("ids", " ".join(["72"] * 39000) + "\n")
    t = Tmux(home, "-c", "40000", "-n", "-1", "--force-ids", ids)
    t.wait_for("IDLE")
    t.type("go on")
    t.keys("Enter")
    t.wait_for("EEEEEEEE")
    t.keys("Escape")
    t.wait_for("STOPPED")
    t.keys("C-d")
    t.wait_for("ended=0")
    messages = parley("show", "1", "--json", home=home).json["messages"]
    equal([m["role"] for m in messages], ["user", "assistant"])
    equal(messages[1]["finish_reason"], "cancelled")
    check(8 <= len(messages[1]["text"]) < 39000, "the reply was not stopped in the middle")


@test("a message that does not fit stays in the editor, with both numbers said")
def _():
    home = Home()
    t = Tmux(home, "-c", "64")
    t.wait_for("IDLE")
    t.type("many words and more words " * 12)
    t.keys("Enter")
    t.wait_for("too long", "room for 63", "more words")
    t.keys("C-c")
    t.wait_for("draft cleared")
    t.keys("C-c")
    t.wait_for("again quits")
    t.keys("C-c")
    t.wait_for("ended=0")


@test("sessions: open, rename and delete; help lists every command; /set and /show")
def _():
    home = Home()
    t = Tmux(home, "--force-ids", replies(home, "one", "two"), "-n", "20")
    t.wait_for("IDLE")
    t.type("first chat")
    t.keys("Enter")
    t.wait_for("#1 first chat", "IDLE")
    t.type("/new")
    t.keys("Enter")
    t.wait_for("new conversation", gone=("one",))
    t.type("second chat")
    t.keys("Enter")
    t.wait_for("#2 second chat", "IDLE")
    t.keys("F2")
    t.wait_for("Sessions", "first chat", "second chat")
    t.keys("Down", "Enter")
    t.wait_for("#1 first chat", gone=("Sessions",))
    t.keys("F2")
    t.wait_for("Sessions")
    t.keys("Down", "r")
    t.keys("C-u")
    t.type("renamed")
    t.keys("Enter")
    t.wait_for("#1 renamed")
    t.keys("q")
    t.wait_for("#1 renamed", gone=("Sessions",))
    t.keys("F1")
    t.wait_for("KEYS", "Enter", "stop the reply")
    t.keys("q")
    t.type("/set temp 0.25")
    t.keys("Enter")
    t.wait_for("temp is 0.25")
    t.type("/nope")
    t.keys("Enter")
    t.wait_for("no command '/nope'")
    t.keys("C-c")
    t.wait_for("draft cleared")
    t.keys("C-d")
    t.wait_for("ended=0")


@test("a session whose model is gone can be read, and the file is named")
def _():
    home = Home()
    with open(tiny(MODEL), "rb") as f:
        path = home.file("gone.gguf", f.read())
    with Jsonl("-m", path, "-t", "1", "-n", "3", home=home) as p:
        p.turn("what was said")
    os.remove(path)
    with Pty(parley_path(), "resume", "-t", "1", home=home, cols=200) as t:
        t.wait_for("what was said")
        t.wait_for("gone.gguf'; it can be read")
        t.send("\x04")
        equal(t.wait(), 0)


@test("the draft is there again after a kill")
def _():
    home = Home()
    t = Tmux(home, "--force-ids", replies(home, "one"), "-n", "20")
    t.wait_for("IDLE")
    t.type("chat")
    t.keys("Enter")
    t.wait_for("#1 chat", "IDLE")
    t.type("not sent yet")
    t.wait_for("> not sent yet")
    deadline = time.monotonic() + TIMEOUT
    while b'"not sent yet"' not in parley("export", "1", "--json", home=home).out:
        check(time.monotonic() < deadline, "the draft was never stored")
        time.sleep(0.1)
    t.tmux("kill-server")
    t = Tmux(home, "-C")
    t.wait_for("> not sent yet", "one")


@test("B115: a locked database costs a notice, not a message")
def _():
    home = Home()
    t = Tmux(home, "--force-ids", replies(home, "one", "two", "three"), "-n", "20")
    t.wait_for("IDLE")
    t.type("first")
    t.keys("Enter")
    t.wait_for("one", "IDLE")
    db = sqlite3.connect(os.path.join(home.data, "parley.db"), isolation_level=None)
    db.execute("BEGIN EXCLUSIVE")
    t.type("second")
    t.keys("Enter")
    t.wait_for("two", "not saved", "IDLE")
    db.execute("COMMIT")
    db.close()
    t.wait_for("saved again")
    t.tmux("kill-server")
    messages = parley("show", "1", "--json", home=home).json["messages"]
    equal([m["text"] for m in messages], ["first", "one", "second", "two"])


@test("the same session in a second process is a branch there, with a notice")
def _():
    home = Home()
    t = Tmux(home, "--force-ids", replies(home, "one", "two"), "-n", "20")
    t.wait_for("IDLE")
    t.type("first")
    t.keys("Enter")
    t.wait_for("one", "IDLE")
    with Jsonl("-m", tiny(MODEL), "-t", "1", "-n", "3", "-C", home=home) as p:
        equal(p.ready.get("shared"), True)
        p.turn("elsewhere")
    t.type("second")
    t.keys("Enter")
    t.wait_for("two", "branches")
    t.keys("C-d")
    t.wait_for("ended=0")
    messages = parley("show", "1", "--json", home=home).json["messages"]
    check("two" in [m["text"] for m in messages], messages)


@test("B94: whatever signal ends it, the terminal is as it was and the end tells the signal")
def _():
    for busy in (False, True):
        for name in ("SEGV", "BUS", "ABRT", "FPE", "ILL", "TERM", "HUP", "QUIT"):
            number = getattr(signal, "SIG" + name)
            home = Home()
            ids = home.file("ids", " ".join(["72"] * 990) + "\n")
            # It waits for a line, so that `before` is from before the program has the terminal.
            shell = 'read go; ulimit -c 0; "$0" "$@"; echo "code=$?"; stty -a; sleep 1; exit 0'
            with Pty("/bin/sh", "-c", shell, parley_path(), "-m", tiny(MODEL), "-t", "1",
                     "-n", "-1", "--force-ids", ids, home=home) as t:
                before = termios.tcgetattr(t.fd)
                t.send("go\n")
                t.wait_for("IDLE")
                if busy:
                    t.send("go\r")
                    t.wait_for("EEE")
                with open("/proc/%d/task/%d/children" % (t.pid, t.pid)) as f:
                    pid = int(f.read().split()[0])
                os.kill(pid, number)
                t.wait_for("code=%d" % (128 + number))
                contains(t.output, b"\x1b[?1049l", name)
                t.wait_for("icanon")
                after = termios.tcgetattr(t.fd)
                equal(after[:4], before[:4], name)
                t.wait()
            if busy and name in ("TERM", "HUP"):
                messages = parley("show", "1", "--json", home=home).json["messages"]
                equal(len(messages), 2, name)
                check(messages[1]["text"].startswith("EEE"), messages)


@test("B91: control sequences in a reply, a message and a title do not reach the terminal")
def _():
    home = Home()
    evil = "a\x1b]52;c;QUJD\x07\x1b]0;x\x07\x1b[2J\x1bP1\x1b\\\x1bc\u009b2Jz"
    ids = replies(home, evil)
    with Jsonl("-m", tiny(MODEL), "-t", "1", "-n", "200", "--force-ids", ids, home=home) as p:
        p.turn(evil)
        p.ok("/rename " + evil.replace("\\", "\\\\"))
    with Pty(parley_path(), "-m", tiny(MODEL), "-t", "1", "-C", home=home) as t:
        t.wait_for("IDLE")
        t.pump(0.3)
        t.send("\x1bOQ")
        t.wait_for("Sessions")
        t.send("q\x04")
        equal(t.wait(), 0)
        for bad in (b"\x1b]52", b"\x1b]0;x", b"QUJD\x07", b"\x1bP1", b"\x1bc", b"\x9b2J",
                    b"\xc2\x9b"):
            check(bad not in t.output, bad)


@test("where the terminal cannot show a screen, the chat is line by line and says so")
def _():
    for term in ("dumb", "nonsense-term"):
        home = Home()
        with Pty(parley_path(), "-m", tiny(MODEL), "-t", "1", "-n", "4", home=home,
                 env={"TERM": term}) as t:
            t.wait_for("> ")
            t.send("/quit\n")
            equal(t.wait(), 0)
            check(b"\x1b" not in t.output, t.output)


if __name__ == "__main__":
    main()
