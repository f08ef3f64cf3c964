"""One command in a sandbox, asked for and answered as JSON: so that a test can be another user."""

import asyncio
import base64
import json
import sys
from dataclasses import asdict, dataclass, replace
from typing import Any

from contextd.adapters.sandbox.ladder import Ladder
from contextd.domain.errors import Fault
from contextd.domain.sandboxing import Finished, Job, Limits, Policy, Stream


@dataclass(frozen=True)
class Ran:
    finished: Finished
    stdout: str
    stderr: str


async def ran(
    level: str, job: Job, policy: Policy, own: tuple[str, ...] = (), environ: dict[str, str] | None = None
) -> Ran:
    said: dict[Stream, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
    passed = environ or {}
    ladder = Ladder(level, own, lambda project: False, lambda names: passed)
    try:
        finished = await ladder.run(job, policy, lambda stream, piece: said[stream].extend(piece))
    finally:
        await ladder.close()
    return Ran(finished, said["stdout"].decode(errors="replace"), said["stderr"].decode(errors="replace"))


def asked(level: str, job: Job, policy: Policy, own: tuple[str, ...]) -> str:
    fields = {**asdict(job), "stdin": base64.b64encode(job.stdin).decode()}
    return json.dumps({"level": level, "job": fields, "policy": asdict(policy), "own": own})


def answered(text: str) -> Ran:
    answer = json.loads(text)
    finished = Finished(**answer["finished"])
    finished = replace(finished, refused_hosts=tuple(finished.refused_hosts))
    return Ran(finished, answer["stdout"], answer["stderr"])


def _main(question: dict[str, Any]) -> str:
    job = Job(**question["job"])
    lists = {name: tuple(value) for name, value in question["policy"].items() if name != "limits"}
    policy = Policy(**lists, limits=Limits(**question["policy"]["limits"]))
    job = replace(job, stdin=base64.b64decode(job.stdin))
    return json.dumps(asdict(asyncio.run(ran(question["level"], job, policy, tuple(question["own"])))))


if __name__ == "__main__":
    try:
        print(_main(json.load(sys.stdin)))
    except Fault as fault:
        print(f"{fault.id} {fault.message}", file=sys.stderr)
        sys.exit(1)
