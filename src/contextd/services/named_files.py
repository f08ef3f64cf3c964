"""Files of a project that a text names."""

import re
from collections.abc import Iterator
from typing import Final

_EXTENSIONS: Final = "|".join(
    """
    py pyi go rs tsx ts jsx js mjs cjs java kts kt scala cc cpp cxx hpp cs c h fs rb php swift mm lua
    pl exs ex erl hs ml clj dart zig nix jl sh bash zsh fish ps1 bat sql proto graphql thrift html css scss
    sass less vue svelte astro mdx md rst txt adoc json5 jsonl json yaml yml toml ini cfg conf env lock xml
    csv tsv tfvars tf hcl gradle cmake mk mod sum ipynb service patch diff plist tmpl j2
    """.split()
)
_NAMES: Final = "|".join(
    "Makefile Dockerfile Jenkinsfile Procfile Gemfile Rakefile Vagrantfile Justfile CODEOWNERS".split()
)
_BEGIN: Final = r"(?<![\w./+:@$*~{}\\-])"

_FILE: Final = re.compile(
    rf"{_BEGIN}(?:[\w./+@-]{{0,200}}\.(?:{_EXTENSIONS})|\.(?:gitignore|dockerignore|editorconfig|env))"
    r"(?![\w(*/@-]|\.\w)"
)
_NAMED: Final = re.compile(rf"{_BEGIN}(?:[\w.+-]{{1,60}}/){{0,8}}(?:{_NAMES})(?![\w(*/-]|\.\w)")
_HAS_NAME: Final = re.compile(_NAMES)
_SOURCE: Final = re.compile(rf"[\w./+@-]*[\w+@-]\.(?:{_EXTENSIONS})\Z")
_HOST: Final = re.compile(r"www\.|[\w-]+\.(?:com|org|io|net|dev|app|ai|co|edu|gov)/")
_OTHERS: Final = re.compile(r"(?:\A|/)(?:node_modules|site-packages|dist-packages|\.?venv|vendor|\.git)/")
_LIBRARY: Final = re.compile(
    r"(?:node|next|vue|nuxt|react|express|d3|three|chart|ember|backbone|p5|moment)\.js\Z", re.IGNORECASE
)
_ATTRIBUTE: Final = re.compile(r"(?:\w|self|this|cls|args|opts)\.[a-z]\Z")
"""`x.c` and `self.h` are rather this than files."""
_DIFF_LINE: Final = re.compile(r"(?:diff --git|---|\+\+\+) [ab]/")
_DIFF_SIDE: Final = re.compile(r"[ab]/(?=[\w.])")


def is_source_file(word: str) -> bool:
    return bool(_SOURCE.match(word))


def files(line: str, root: str = "", *, is_shown: bool = False) -> Iterator[tuple[str, int]]:
    """With where they stand; relative to the project's root where they lie in it; without those of others.

    `is_shown` is for code and for what a tool printed: there, `response.json` is an attribute, so that
    only a path with a folder is a file.
    """
    if "." in line:
        is_diff = bool(_DIFF_LINE.match(line))
        for found in _FILE.finditer(line):
            file = _ours(found.group(), root, is_diff)
            if file and ("/" in file or not is_shown):
                yield file, found.start()
    if _HAS_NAME.search(line):
        for found in _NAMED.finditer(line):
            if file := _ours(found.group(), root, False):
                yield file, found.start()


def _ours(path: str, root: str, is_diff: bool) -> str | None:
    path = path.removeprefix(f"{root}/") if root else path
    if is_diff:
        path = _DIFF_SIDE.sub("", path, count=1)
    while path.startswith("./"):
        path = path[2:]
    if path.startswith(("/", "../")) or "//" in path or "@" in path or _OTHERS.search(path):
        return None
    if any(words.match(path) for words in (_HOST, _LIBRARY, _ATTRIBUTE)):
        return None
    name = path.rpartition("/")[2]
    return path if name.startswith(".") or any(map(str.isalpha, name.partition(".")[0])) else None
