# SPDX-License-Identifier: MIT
"""What the static libraries define for others bears their prefix: ply_ in engine/, ui_ in ui/."""
import glob

from source import *

PREFIX = {"engine": "ply_", "ui": "ui_"}


def strong_symbols(archive):
    """Names an archive defines with global binding; C++ templates are weak and do not count."""
    p = subprocess.run(["nm", "-g", "--defined-only", "--format=posix", archive], cwd=BUILD,
                       check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    rows = (line.split() for line in p.stdout.splitlines())
    return sorted({r[0] for r in rows if len(r) >= 2 and r[1] in "TDBRSGCA"})


def strangers(names, prefix):
    # What sanitizers add is not ours.
    return [n for n in names if not n.startswith((prefix, "__odr_asan", "_GLOBAL__"))]


@test("the check sees a name without its prefix")
def _():
    equal(strangers(["ply_eval", "helper", "ui_open"], "ply_"), ["helper", "ui_open"])


for _folder, _prefix in PREFIX.items():
    @test("%s/ defines only %s names" % (_folder, _prefix))
    def _(folder=_folder, prefix=_prefix):
        archives = glob.glob(os.path.join(glob.escape(BUILD), folder, "*.a"))
        if not archives:
            skip("no library was built in %s/" % folder)
        bad = {os.path.basename(a): strangers(strong_symbols(a), prefix) for a in archives}
        check(not any(bad.values()), "without the prefix: %s" % {k: v for k, v in bad.items() if v})
        check(any(strong_symbols(a) for a in archives), "nm sees nothing at all")


if __name__ == "__main__":
    main()
