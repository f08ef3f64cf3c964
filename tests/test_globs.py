"""Globs: what they match, what is refused, and that no pattern takes long."""

from fnmatch import fnmatchcase
from functools import cache

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from contextd.domain.globs import MAX_PATTERN_LENGTH, compile_glob, matches_any


@pytest.mark.parametrize(
    ("pattern", "matched", "others"),
    [
        ("*.md", ["README.md", "docs/a/x.md", ".md"], ["README.mdx", "md", "x.md.bak"]),
        ("Makefile", ["Makefile", "a/b/Makefile"], ["Makefile.am", "aMakefile"]),
        ("testdata", ["testdata/x", "a/testdata/b/c.go"], ["testdata2/x", "a/mytestdata/b"]),
        ("test*", ["test_a.py", "a/tests"], ["tests/a.py", "a/tests/b.py"]),
        (
            "internal/auth",
            ["internal/auth/x.go", "internal/auth/a/b", "internal/auth"],
            ["internal/authx/y"],
        ),
        ("internal/auth", [], ["x/internal/auth/y.go"]),
        (
            "internal/auth/**",
            ["internal/auth/x.go", "internal/auth/a/b"],
            ["internal/auth", "a/internal/auth/x"],
        ),
        ("docs/", ["docs/a.md", "docs/a/b"], ["docs", "a/docs/b"]),
        ("src/*", ["src/a.py"], ["src/a/b.py", "src", "a/src/b"]),
        ("src/*.py", ["src/a.py"], ["src/a/b.py"]),
        ("/*.md", ["a.md"], ["docs/a.md"]),
        ("./docs/*.md", ["docs/a.md"], ["docs/b/a.md"]),
        ("**/auth/*.go", ["auth/a.go", "x/y/auth/a.go"], ["auth/b/a.go"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b", "a/x/b/z"], ["ab", "a/xb", "x/a/b"]),
        ("a/**/b/*.c", ["a/b/x.c", "a/b/b/x.c"], ["a/b/c/x.c"]),
        ("**", ["a", "a/b"], []),
        ("***", ["a", "a/b"], []),
        ("/", ["a", "a/b"], []),
        (".", ["a", "a/b"], []),
        ("a**b", ["ab", "axxb", "x/ab"], ["a/b"]),
        ("?.go", ["a.go", "é.go", "x/\n.go"], ["ab.go", ".go"]),
        ("a?b", ["axb"], ["a/b", "ab"]),
        ("[ab].go", ["a.go", "b.go"], ["c.go", "ab.go"]),
        ("[a-c]x", ["bx"], ["dx", "-x"]),
        ("[!a-c]x", ["dx", "-x"], ["bx", "a/x"]),
        ("a[.-0]b", ["a.b"], ["a/b"]),
        ("a[!x]b", ["a.b"], ["a/b"]),
        ("[]]", ["]"], ["["]),
        ("app/[[]id[]]/*", ["app/[id]/page.tsx"], ["app/i/page.tsx"]),
        ("*.{go,py}", ["a.go", "x/a.py"], ["a.gopy", "a.{go,py}"]),
        ("{src,lib/core}/*.py", ["src/a.py", "lib/core/a.py"], ["lib/a.py", "x/src/a.py"]),
        ("a{b,{c,d}e}", ["ab", "ace", "ade"], ["ae", "abe", "ac"]),
        ("a{,b}", ["a", "ab"], ["abb"]),
        ("{[,],x}", [",", "x"], ["["]),
        ("[{]a,b[}]", ["{a,b}"], ["a"]),
        ("a,b", ["a,b"], ["a"]),
        ("A.md", ["A.md"], ["a.md"]),
        (r"a\*", ["a\\b"], ["a*"]),
        ("a+b(c)|d^$", ["a+b(c)|d^$"], ["aab(c)"]),
    ],
)
def test_a_glob_matches_what_its_language_says(pattern: str, matched: list[str], others: list[str]) -> None:
    glob = compile_glob(pattern)
    assert [path for path in matched if not glob.match(path)] == []
    assert [path for path in others if glob.match(path)] == []


def test_one_glob_of_several_is_enough() -> None:
    globs = [compile_glob("*.md"), compile_glob("src/**")]
    assert matches_any("src/a.py", globs)
    assert matches_any("README.md", globs)
    assert not matches_any("lib/a.py", globs)
    assert not matches_any("src/a.py", [])


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("", "must not be empty"),
        ("x" * (MAX_PATTERN_LENGTH + 1), "at most 1,000 characters"),
        ("a[bc", "'a[bc' has a bracket that is not one of a pair"),
        ("abc]", "a bracket that is not one of a pair"),
        ("[]", "a bracket that is not one of a pair"),
        ("[!]", "a bracket that is not one of a pair"),
        ("[a/b]", "a bracket that is not one of a pair"),
        ("*.{go,py", "has a '{' without a '}'"),
        ("*.go}", "has a '}' without a '{'"),
        ("../secrets", "has a '..' component"),
        ("a/../b", "has a '..' component"),
        ("a/{b,.}./c", "has a '..' component"),
        ("[z-a]", "has the range z-a, which runs backwards"),
        ("{,a}", "has an alternative that is empty"),
        ("{a,b}" * 7, "too many alternatives"),
        ("{" + "a," * 200 + "b}", "too many alternatives"),
        ("{a,b}{c,d}{e,f}{g,h}" + "x" * 970, "too many alternatives"),
    ],
)
def test_what_is_no_pattern_is_refused_with_a_sentence(pattern: str, problem: str) -> None:
    with pytest.raises(ValueError) as refused:
        compile_glob(pattern)
    assert problem in str(refused.value)
    assert str(refused.value)[0].islower()


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a*a*a*a*a*a*b", "a" * 4000),
        ("*a" * 499 + "*b", "a" * 4000),
        ("**/**/**/**/x", "a/" * 2000 + "y"),
        ("**/a/" * 190 + "b", "a/" * 2000 + "y"),
        ("**/*a*a/" * 110 + "b", "aaaa/" * 800 + "y"),
        ("**/" + "a/" * 480 + "b", "a/" * 2000 + "y"),
        ("**/" + "*a*/" * 240 + "b", "aaa/" * 1000 + "y"),
        ("*" + "?" * 990 + "b", "a" * 4000),
        ("{a,b}{a,b}{a,b}" + "*a" * 480 + "*b", "a" * 4000),
        ("{" * 400 + "a" + "}" * 400 + "*b", "a" * 4000),
        ("*[!b]" * 180 + "b", "a" * 4000),
    ],
)
def test_a_hostile_pattern_answers_at_once(pattern: str, path: str) -> None:
    assert not compile_glob(pattern).match(path)


COMPONENT = st.lists(
    st.sampled_from(["a", "b", "ab", "*", "?", "[ab]", "[!a]", "."]), min_size=1, max_size=5
)
PATTERN = st.lists(st.one_of(st.just("**"), COMPONENT.map("".join)), min_size=1, max_size=5).map("/".join)
PATH = st.lists(st.text("abc.", min_size=1, max_size=5), min_size=1, max_size=6).map("/".join)


@settings(max_examples=1000, deadline=None)
@given(PATTERN.filter(lambda pattern: ".." not in pattern.split("/")), PATH)
@example("**/a*/**/*b/**", "ab/ab/b/a")
@example("**/*a*b/a", "aab/ab/a/ab/a")
def test_never_going_back_loses_no_match(pattern: str, path: str) -> None:
    assert bool(compile_glob(pattern).match(path)) == slowly_matched(pattern, path)


def slowly_matched(pattern: str, path: str) -> bool:
    """By trying everything."""
    globs = tuple(glob for glob in pattern.split("/") if glob != ".")
    if "/" not in pattern:
        globs = ("**", *globs)
    if not globs or globs == ("**",):
        return True
    exact = not set(globs[-1]) & set("*?[")
    names = tuple(path.split("/"))

    @cache
    def fits(glob: int, name: int) -> bool:
        if glob == len(globs):
            return name == len(names) or exact
        if set(globs[glob]) == {"*"} and len(globs[glob]) > 1:
            if glob == len(globs) - 1:
                return name < len(names)
            return any(fits(glob + 1, later) for later in range(name, len(names) + 1))
        return name < len(names) and fnmatchcase(names[name], globs[glob]) and fits(glob + 1, name + 1)

    return fits(0, 0)
