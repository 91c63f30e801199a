# SPDX-License-Identifier: MIT
"""The arithmetic's law as far as flags and names show it: contraction off everywhere, no fast
math, no instruction set outside the kernels, no approximate instructions."""
from source import *

FORBIDDEN = re.compile(r"-ffast-math|-Ofast|-march=native|-mtune=native|-ffinite-math-only"
                       r"|-funsafe-math-optimizations|-fassociative-math|-freciprocal-math")


CHANGES_ARITHMETIC = [
    (r"\b_mm\d*_(mask\w*_)?r(cp|sqrt)\w*", "an approximate instruction"),
    (r"\b(_Float16|__fp16)\b", "a half-precision type"),
    (r"#\s*pragma\s+(GCC\s+optimize|STDC\s+FP_CONTRACT|float_control)", "a pragma on arithmetic"),
    (r"\b__attribute__\s*\(\(\s*(__)?optimize", "an attribute on arithmetic"),
]


def command_rule(path, words):
    """Complaints about one compile command."""
    out = ["%s: %s" % (path, w) for w in words if FORBIDDEN.fullmatch(w)]
    contract = [w for w in words if w.startswith("-ffp-contract")]
    if not contract or set(contract) != {"-ffp-contract=off"}:
        out.append("%s: contraction is not off (%s)" % (path, " ".join(contract) or "no flag"))
    special = [w for w in words if re.match(r"-m(avx|sse|fma|f16c|bmi|arch=)", w)]
    if special and not path.startswith("engine/kern"):
        out.append("%s: not a kernel, yet built with %s" % (path, " ".join(special)))
    return out


def source_rule(path, text):
    return ["%s:%d: %s: %s" % (path, n, what, line.strip())
            for n, line in enumerate(without_strings(text).splitlines(), 1)
            for pattern, what in CHANGES_ARITHMETIC if re.search(pattern, line)]


@test("the rules complain about what they forbid")
def _():
    complains(command_rule, "engine/kern_mm.c", ["cc", "-mavx2"])
    complains(command_rule, "engine/kern_mm.c", ["cc", "-mavx2", "-ffp-contract=off"], 0)
    complains(command_rule, "engine/seq.c", ["cc", "-mavx2", "-ffp-contract=off", "-ffast-math"], 2)
    complains(command_rule, "engine/seq.c", ["cc", "-ffp-contract=off", "-ffp-contract=fast"])
    complains(source_rule, "engine/x.c", "y = _mm256_rsqrt_ps(x);\n_Float16 h;\n", 2)


@test("every file of this build is compiled with contraction off and no fast math")
def _():
    commands = compile_commands()
    check(any(p.startswith("engine/") for p, _ in commands), "no engine file was compiled")
    complaints = [c for path, words in commands for c in command_rule(path, words)]
    check(not complaints, "\n".join(complaints))


@test("no build file names a forbidden flag")
def _():
    def rule(path, text):
        return ["%s: %s" % (path, f) for f in FORBIDDEN.findall(re.sub(r"#.*", "", text))]
    complains(rule, "meson.build", "c_args: ['-ffast-math']  # -Ofast\n")
    hold(rule, {n: read(n).decode() for n in tree()
                if os.path.basename(n) in ("meson.build", "run")})


@test("no approximate instruction, half type or optimising pragma in the source")
def _():
    hold(source_rule, c_files("engine"))


if __name__ == "__main__":
    main()
