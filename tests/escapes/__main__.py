"""Runs every attack against any sandbox that is a command before a command, and prints a table.

cd tests
python -m escapes                              which attacks work on this machine
python -m escapes --ours                       what contextd does with them, on each rung
python -m escapes --sandbox 'NAME=COMMAND'     what another sandbox does; again for another

`{project}` and `{home}` in a command are the folders of the attempt.
"""

import argparse
import itertools
import shlex
import sys

from escapes.attempts import OUTSIDE, Sandbox
from escapes.ground import User
from escapes.ours import RUNGS, named, ours
from escapes.suite import CASES, Verdict, judge, users
from escapes.table import page


def main() -> None:
    arguments = _arguments()
    cases = [case for case in CASES if arguments.only in case.name]
    who = [*map(User.named, arguments.user)] or [*users()]
    rungs = {named(rung): rung for rung in RUNGS} if arguments.ours else {}
    sandboxes = [*map(Sandbox, rungs), *arguments.sandbox] or [OUTSIDE]
    verdicts = {}
    with ours() as own:
        for user, case, box in itertools.product(who, cases, sandboxes):
            sandbox = own.sandbox(rungs[box.name], user, case) if box.name in rungs else box
            verdicts[case, box.name, user] = verdict = judge(case, sandbox, user)
            print(f"{user.name}: {case.name}: {box.name}: {_told(verdict)}", file=sys.stderr)
    print(page(cases, sandboxes, who, verdicts))


def _told(verdict: Verdict) -> str:
    return f"{verdict.word} ({verdict.reason})" if verdict.reason else verdict.word


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m escapes", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ours", action="store_true", help="contextd's own, on each rung")
    parser.add_argument("--sandbox", action="append", default=[], type=_sandbox, help="NAME=COMMAND")
    parser.add_argument("--only", default="", help="attacks with this in their name")
    parser.add_argument("--user", action="append", default=[], help="as this user; again for another")
    return parser.parse_args()


def _sandbox(text: str) -> Sandbox:
    name, _, command = text.partition("=")
    return Sandbox(name, tuple(shlex.split(command)))


if __name__ == "__main__":
    main()
