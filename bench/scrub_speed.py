"""How fast the scrubber is: megabytes a second on a source tree, and 16 KB at a time.

    python bench/scrub_speed.py FOLDER [--rules TOML]

Processor time, so that neighbours on the machine do not count. A megabyte is 10^6 bytes of UTF-8. `stream`
is fed with 64 KiB of the whole tree at a time; `known` looks for 20 values besides.
"""

import argparse
import statistics
import string
from collections.abc import Callable
from pathlib import Path
from random import Random
from time import process_time

from contextd.scrubbing.gitleaks_rules import rules_in
from contextd.scrubbing.rules import RULES
from contextd.scrubbing.scrubber import SecretScrubber
from scrub_quality import texts

PIECE = 16 * 1024
PIECES = 400
KNOWN = 20


def timed(work: Callable[[], object]) -> float:
    started = process_time()
    work()
    return process_time() - started


def streamed(scrubber: SecretScrubber, raw: bytes) -> None:
    stream = scrubber.byte_stream()
    for at in range(0, len(raw), 1 << 16):
        stream.feed(raw[at : at + (1 << 16)])
    stream.finish()


def with_known_values() -> SecretScrubber:
    source = Random(1)
    scrubber = SecretScrubber()
    letters = string.ascii_letters + string.digits
    scrubber.learn_environment(
        {f"APP_{number}_TOKEN": "".join(source.choices(letters, k=32)) for number in range(KNOWN)}
    )
    return scrubber


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--rules", type=Path)
    asked = options.parse_args()
    files = [(text, size) for _, text, size in texts(asked.folder)]
    size = sum(bytes_ for _, bytes_ in files)
    whole = "".join(text for text, _ in files)
    step = max(PIECE, len(whole) // PIECES)
    pieces = [whole[at : at + PIECE] for at in range(0, len(whole) - PIECE, step)]
    raw = whole.encode("utf-8", "replace")
    scrubbers = {"ours alone": SecretScrubber(), "known": with_known_values()}
    if asked.rules:
        scrubbers["with optional rules"] = SecretScrubber([*RULES, *rules_in(asked.rules)])
    print(f"{len(files)} files, {size / 1e6:.1f} MB\n")
    print(
        "| rules | files, MB/s | stream, MB/s | 16 KB, p50 ms | p95 ms |\n| --- | --- | --- | --- | --- |"
    )
    for name, scrubber in scrubbers.items():
        by_file = timed(lambda each=scrubber: [each.scrub(text) for text, _ in files])  # type: ignore[misc]  # bound now
        as_stream = timed(lambda each=scrubber: streamed(each, raw))  # type: ignore[misc]  # bound now
        took = sorted(timed(lambda each=scrubber, piece=piece: each.scrub(piece)) for piece in pieces)  # type: ignore[misc]  # bound now
        print(
            f"| {name} | {size / 1e6 / by_file:.0f} | {size / 1e6 / as_stream:.0f}"
            f" | {statistics.median(took) * 1e3:.2f} | {took[int(len(took) * 0.95)] * 1e3:.2f} |"
        )


if __name__ == "__main__":
    main()
