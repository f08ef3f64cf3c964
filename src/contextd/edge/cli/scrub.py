"""`contextd scrub`: secrets out of pipes and files, without a daemon."""

import sys
from collections import Counter
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from contextd.scrubbing.scrubber import SecretScrubber

_CHUNK = 1 << 16


@click.command()
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--in-place", is_flag=True, help="Write each file anew, whole or not at all.")
@click.option("--check", is_flag=True, help="Print FILE:LINE:RULE of each secret; exit 1 if there is one.")
@click.option("--stats", is_flag=True, help="Count what was found, by rule, on standard error.")
@click.option(
    "--rules", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A gitleaks TOML besides."
)
def scrub(files: tuple[Path, ...], in_place: bool, check: bool, stats: bool, rules: Path | None) -> int:
    """Replace secrets in FILES, or in what comes by a pipe, and print the rest as it is.

    \b
    kubectl describe pod web | contextd scrub
    contextd scrub --in-place deploy.log
    contextd scrub --check .env.example src/*.py
    """
    if in_place and (check or not files):
        raise click.UsageError("--in-place needs files, and cannot go with --check.")
    scrubber = _scrubber(rules)
    found: Counter[str] = Counter()
    for file in files or (None,):
        if check:
            found += _listed(scrubber, file)
        elif in_place and file is not None:
            found += _rewritten(scrubber, file)
        else:
            found += _piped(scrubber, file)
    if stats:
        for rule, count in sorted(found.items()):
            click.echo(f"{count:6} {rule}", err=True)
    return 1 if check and found else 0


def _scrubber(rules: Path | None) -> "SecretScrubber":
    from contextd.adapters.secret_key import kept_key
    from contextd.scrubbing.gitleaks_rules import chosen_rules, rules_in
    from contextd.scrubbing.rules import RULES
    from contextd.scrubbing.scrubber import SecretScrubber
    from contextd.settings import environment, load_settings

    settings = load_settings()
    more = rules_in(rules) if rules else chosen_rules(settings.scrub_rules)
    key_file = settings.data_dir / "placeholders.key"
    scrubber = SecretScrubber((*RULES, *more), lambda: kept_key(key_file))
    scrubber.learn_environment(environment())
    return scrubber


def _piped(scrubber: "SecretScrubber", file: Path | None) -> Counter[str]:
    """What is no UTF-8 leaves as it came: for the scrubber it is a lone surrogate a byte."""
    import codecs

    stream = scrubber.stream()
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    with _opened(file) as source:
        for chunk in iter(lambda: source.read1(_CHUNK), b""):
            _print(stream.feed(decoder.decode(chunk)))
    _print(stream.feed(decoder.decode(b"", final=True)) + stream.finish())
    return stream.findings


def _rewritten(scrubber: "SecretScrubber", file: Path) -> Counter[str]:
    import os
    import tempfile

    real = file.resolve()
    scrubbed = scrubber.scrub(_text(real))
    if not scrubbed.findings:
        return Counter()
    handle, temporary = tempfile.mkstemp(dir=real.parent, prefix=".scrub-")
    try:
        with os.fdopen(handle, "wb") as target:
            target.write(scrubbed.text.encode("utf-8", "surrogateescape"))
            target.flush()
            os.fsync(target.fileno())
        os.chmod(temporary, real.stat().st_mode & 0o7777)  # noqa: PTH101 - it is no path of the user's
        Path(temporary).replace(real)
    finally:
        Path(temporary).unlink(missing_ok=True)
    return Counter(scrubbed.findings)


def _listed(scrubber: "SecretScrubber", file: Path | None) -> Counter[str]:
    """Names and places, and never a value."""
    text = _text(file)
    found = scrubber.look(text)
    line = at = 0
    for finding in found:
        line += text.count("\n", at, finding.start)
        at = finding.start
        click.echo(f"{file or '-'}:{line + 1}:{finding.name}")
    return Counter(finding.name for finding in found)


def _opened(file: Path | None) -> BufferedReader:
    descriptor = sys.stdin.fileno() if file is None else file
    return open(descriptor, "rb", closefd=file is not None)


def _text(file: Path | None) -> str:
    with _opened(file) as source:
        return source.read().decode("utf-8", "surrogateescape")


def _print(text: str) -> None:
    try:
        sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        import os

        # Nobody reads any more. What is still in the buffer goes nowhere, without a complaint at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.exceptions.Exit(1) from None
