"""Pairs from every repository in a folder.

PYTHONPATH=bench python training/extract.py FOLDER PAIRS

FOLDER has one repository in each folder, a source tree or a git directory (then its commits are read too).
Each becomes a file in PAIRS, and a line in PAIRS/repositories.jsonl that says which commit was read and
how many pairs of each kind it gave. What is there already is kept. Held-out repositories are passed over;
with --held-out they are all that is read, so that `clean.py` knows their code when it meets it elsewhere.
"""

import argparse
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Final

from commit_pairs import commit_pairs
from contextd.languages import Languages
from held_out import is_held_out
from pair import Pair, write
from source_pairs import SourcePairs

_MOST_PAIRS: Final = 15_000
"""Of one repository: no style of writing outweighs the others."""
_LARGEST: Final = 400_000
_LANGUAGES: Final = Languages()


def main() -> None:
    parser = argparse.ArgumentParser(description="Extract pairs of texts from repositories.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--most", type=int, default=_MOST_PAIRS, help="pairs of one repository")
    parser.add_argument("--held-out", action="store_true")
    chosen = parser.parse_args()
    sources = [each for each in sorted(chosen.folder.iterdir()) if each.is_dir()]
    chosen.pairs.mkdir(parents=True, exist_ok=True)
    extract(
        [each for each in sources if is_held_out(each.name) == chosen.held_out],
        chosen.pairs,
        chosen.processes,
        chosen.most,
    )


def extract(sources: Sequence[Path], pairs: Path, processes: int, most: int) -> None:
    wanted = [source for source in sources if not (pairs / _file_of(source)).exists()]
    with (
        ProcessPoolExecutor(processes) as pool,
        (pairs / "repositories.jsonl").open("a", encoding="utf-8") as card,
    ):
        for line in pool.map(_extracted, wanted, repeat(pairs), repeat(most)):
            card.write(json.dumps(line) + "\n")
            card.flush()
            print(f"{line['repository']}: {line['pairs']}", file=sys.stderr)


def _file_of(source: Path) -> str:
    return f"{source.name}.jsonl.gz"


def _extracted(source: Path, pairs: Path, most: int) -> dict[str, object]:
    chance = random.Random(source.name)
    git_dir = _git_dir(source)
    found = list(_of_tree(source, git_dir, chance, most))
    if git_dir is not None:
        found += commit_pairs(source.name, git_dir)
    if len(found) > most:
        found = chance.sample(found, most)
    partial = pairs / f".{_file_of(source)}"
    write(partial, found)
    partial.rename(pairs / _file_of(source))
    return {
        "repository": source.name,
        "commit": _git(git_dir, "rev-parse", "HEAD") if git_dir else "",
        "pairs": len(found),
        "kinds": Counter(pair.kind for pair in found),
        "languages": Counter(pair.language for pair in found),
    }


def _of_tree(source: Path, git_dir: Path | None, chance: random.Random, most: int) -> Iterator[Pair]:
    """Enough for the sample, of files in any order."""
    extractor = SourcePairs()
    bare = git_dir is not None and git_dir.name != ".git"
    count = 0
    for path, text in _of_git(git_dir, chance) if bare and git_dir else _of_folder(source, chance):
        for pair in extractor.of(source.name, path, text, chance):
            count += 1
            yield pair
        if count > 2 * most:
            return


def _of_folder(root: Path, chance: random.Random) -> Iterator[tuple[str, str]]:
    files = sorted(file for file in root.rglob("*") if file.is_file() and not file.is_symlink())
    chance.shuffle(files)
    for file in files:
        path = str(file.relative_to(root))
        if not path.startswith(".git/") and _LANGUAGES.of(path) and file.stat().st_size < _LARGEST:
            yield path, file.read_text(encoding="utf-8", errors="replace")


def _of_git(git_dir: Path, chance: random.Random) -> Iterator[tuple[str, str]]:
    """The files of its newest commit, those left out that the git directory does not hold."""
    entries = _git(git_dir, "ls-tree", "-r", "-z", "HEAD").split("\0")
    found = [
        (path, meta.split()[2]) for meta, _, path in (each.partition("\t") for each in entries) if path
    ]
    files = [(path, blob) for path, blob in found if _LANGUAGES.of(path)]
    chance.shuffle(files)
    command = ["git", f"--git-dir={git_dir}", "cat-file", "--batch"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        for path, blob in files:
            reader.stdin.write(blob.encode() + b"\n")
            reader.stdin.flush()
            words = reader.stdout.readline().split()
            if words[-1] == b"missing":
                continue
            text = reader.stdout.read(int(words[2]) + 1)[:-1]
            if words[1] == b"blob" and len(text) < _LARGEST:
                yield path, text.decode(errors="replace")


def _git_dir(source: Path) -> Path | None:
    for each in (source / ".git", source / "repo", source):
        if (each / "HEAD").is_file() and (each / "objects").is_dir():
            return each
    return None


def _git(git_dir: Path | None, *words: str) -> str:
    done = subprocess.run(
        ["git", f"--git-dir={git_dir}", *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


if __name__ == "__main__":
    main()
