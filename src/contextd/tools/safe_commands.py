"""Commands in a sandbox, as an agent calls them."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from contextd.domain import limits
from contextd.domain.callers import Caller
from contextd.domain.sandboxing import Level
from contextd.services.known_fixes import KnownFix
from contextd.services.safe_commands import CommandAsk, Ran, SafeCommands
from contextd.tools.declaration import Example, Input, Output, tool
from contextd.tools.fields import NotBlank, ProjectPath, Score

_PROJECT = "/home/dev/shop"

EnvValue = Annotated[str, Field(max_length=limits.MAX_ENV_VALUE_LENGTH)]


class SafeBash(Input):
    command: Annotated[str, Field(min_length=1, max_length=limits.MAX_COMMAND_LENGTH), NotBlank] = Field(
        description="For bash -c"
    )
    project_path: ProjectPath = Field(description="Absolute path; all that the command may write to")
    cwd: Annotated[str, Field(max_length=limits.MAX_PATH_LENGTH)] = Field(
        "", description="Folder within the project to run in"
    )
    timeout_s: Annotated[int, Field(ge=1, le=limits.MAX_COMMAND_S)] | None = Field(
        None, description="By default 120, or what the policy gives"
    )
    env: Annotated[dict[str, EnvValue], Field(max_length=limits.MAX_ENV)] = Field(
        default_factory=dict, description="Variables to add"
    )
    stdin: Annotated[str, Field(max_length=limits.MAX_STDIN_LENGTH)] = ""


class FixTold(Output):
    id: str
    source: Literal["remediation", "pattern"]
    solution: str
    score: Score
    warning: str = ""


class CommandRan(Output):
    sparse: ClassVar[bool] = True

    exit_code: int = Field(description="124 when its time was over")
    stdout: str
    stderr: str
    duration_ms: float
    isolation: Level
    secrets_redacted: int
    timed_out: bool = False
    dropped_bytes: int = Field(0, description="printed beyond the limit, and lost")
    refused_hosts: list[str] = Field(default_factory=list, description="that the policy does not allow")
    known_fix: FixTold | None = Field(None, description="what helped before, if it failed")
    verified_fix: str = Field("", description="the fix that was told when this failed, and has helped")


@tool(
    toolset="safe",
    timeout_s=limits.COMMAND_S,
    keeps_time=True,
    destructive=True,
    not_for="reading a file: safe_read; changing one: safe_write; finding code: search_code",
    asked="run a shell command, tests, a build, git, in a sandbox",
    examples=(
        Example("run the tests", {"command": "go test ./...", "project_path": _PROJECT, "timeout_s": 120}),
        Example(
            "in a folder, with input", {"command": "wc -l", "project_path": _PROJECT, "stdin": "a\nb\n"}
        ),
    ),
)
async def safe_bash(commands: SafeCommands, ask: SafeBash, caller: Caller) -> CommandRan:
    """Run a bash command in a sandbox: no network, the project alone is writable, secrets are removed."""
    ran = await commands.run(
        CommandAsk(
            command=ask.command,
            project_path=ask.project_path,
            cwd=ask.cwd,
            timeout_s=ask.timeout_s,
            env=ask.env,
            stdin=ask.stdin,
        ),
        caller,
    )
    done = ran.finished
    return CommandRan(
        exit_code=done.exit_code,
        stdout=ran.stdout,
        stderr=ran.stderr,
        duration_ms=round(done.duration_ms, 1),
        isolation=done.level,
        secrets_redacted=ran.secrets,
        **_where_it_applies(ran),
    )


def _where_it_applies(ran: Ran) -> dict[str, Any]:
    done = ran.finished
    said = {
        "timed_out": done.timed_out,
        "dropped_bytes": done.dropped_bytes,
        "refused_hosts": list(done.refused_hosts),
        "known_fix": _told(ran.fix) if ran.fix else None,
        "verified_fix": ran.verified,
    }
    return {name: value for name, value in said.items() if value}


def _told(fix: KnownFix) -> FixTold:
    told = FixTold(id=fix.id, source=fix.source, solution=fix.solution, score=fix.score)
    return told.model_copy(update={"warning": fix.warning}) if fix.warning else told


TOOLS = (safe_bash,)
