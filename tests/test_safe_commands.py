"""safe_bash: a command runs apart, its output is scrubbed and bounded, its failure recognised."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contextd.adapters.tokens import O200kCounter
from contextd.domain.answers import as_json
from contextd.domain.callers import Caller, Principal
from contextd.domain.errors import (
    BadFormat,
    BadPath,
    BranchTimedOut,
    Forbidden,
    OutOfRange,
    OutsideProject,
)
from contextd.domain.limits import KNOWN_FIX_TOKENS
from contextd.edge.call_pipeline import CallPipeline
from contextd.services.projects import project_at
from contextd.wiring import House

pytestmark = pytest.mark.anyio
HERE = Caller(session="tests")
TOKEN = "ghp_" + "k7Qz2mXv9RtBn4WcYs8LpDh3FgJ1aEoU6iKd"


@pytest.fixture
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Apart from the house's data folder, which no command sees."""
    root = tmp_path_factory.mktemp("projects") / "shop"
    (root / "src").mkdir(parents=True)
    return root


async def bash(pipeline: CallPipeline, project: Path, command: str, **more: Any) -> dict[str, Any]:
    arguments = {"command": command, "project_path": str(project), **more}
    return (await pipeline.call("safe_bash", arguments, HERE)).data


async def test_a_command_answers_with_its_output_its_code_and_its_isolation(
    pipeline: CallPipeline, project: Path
) -> None:
    ran = await bash(pipeline, project, "echo out; echo err >&2; exit 3")
    assert (ran["stdout"], ran["stderr"], ran["exit_code"]) == ("out\n", "err\n", 3)
    assert ran["isolation"] in ("bubblewrap", "landlock")
    assert ran["duration_ms"] > 0
    assert ran["secrets_redacted"] == 0


async def test_it_runs_in_the_folder_with_the_variables_and_the_input_that_were_given(
    pipeline: CallPipeline, project: Path
) -> None:
    ran = await bash(
        pipeline, project, 'pwd; echo "$WHO"; cat', cwd="src", env={"WHO": 'it\'s "me"\n'}, stdin="in\n"
    )
    assert ran["stdout"] == f'{project}/src\nit\'s "me"\n\nin\n'


async def test_what_it_writes_in_the_project_is_there_and_nothing_else_is(
    pipeline: CallPipeline, project: Path
) -> None:
    outside = project.parent / "outside"
    command = f"echo 1 > made; echo 2 > {outside}; echo 3 > /tmp/mine && cat /tmp/mine"
    assert (await bash(pipeline, project, command))["stdout"] == "3\n"
    assert (project / "made").read_text() == "1\n"
    assert not outside.exists()
    assert (await bash(pipeline, project, "cat /tmp/mine"))["exit_code"] == 1


async def test_a_command_that_takes_too_long_is_an_answer_with_what_it_had_printed(
    pipeline: CallPipeline, project: Path
) -> None:
    started = time.monotonic()
    ran = await bash(pipeline, project, "echo begun; sleep 60 & sleep 60", timeout_s=1)
    assert (ran["exit_code"], ran["timed_out"], ran["stdout"]) == (124, True, "begun\n")
    assert time.monotonic() - started < 20


async def test_what_runs_on_in_the_background_ends_with_the_call(
    pipeline: CallPipeline, project: Path
) -> None:
    started = time.monotonic()
    ran = await bash(pipeline, project, "(while :; do date > alive; sleep .05; done) & echo done")
    assert ran["stdout"] == "done\n"
    assert time.monotonic() - started < 20
    left = (project / "alive").read_text() if (project / "alive").exists() else None
    await asyncio.sleep(0.3)
    assert ((project / "alive").read_text() if (project / "alive").exists() else None) == left


async def test_secrets_in_what_it_prints_are_removed_and_counted(
    pipeline: CallPipeline, project: Path
) -> None:
    ran = await bash(pipeline, project, f"echo token {TOKEN}; echo {TOKEN} >&2")
    assert TOKEN not in ran["stdout"] + ran["stderr"]
    assert ran["stdout"].startswith("token [REDACTED:")
    assert ran["secrets_redacted"] == 2


async def test_a_secret_that_arrives_in_pieces_is_removed_all_the_same(
    pipeline: CallPipeline, project: Path
) -> None:
    ran = await bash(pipeline, project, f"printf {TOKEN[:9]}; sleep .2; printf {TOKEN[9:]}")
    assert TOKEN[9:] not in ran["stdout"]
    assert ran["secrets_redacted"] == 1


async def test_what_the_projects_own_files_keep_secret_is_known_in_any_form(
    pipeline: CallPipeline, project: Path
) -> None:
    (project / ".env").write_text("DB_PASSWORD=blueHorse-staple-42\n")
    command = '. ./.env; echo "as it is: $DB_PASSWORD"; echo "packed: $(printf %s "$DB_PASSWORD" | base64)"'
    ran = await bash(pipeline, project, command)
    assert "blueHorse" not in ran["stdout"]
    assert "Ymx1ZUhvcnNl" not in ran["stdout"]
    assert ran["secrets_redacted"] == 2
    (project / ".env").write_text("DB_PASSWORD=greenMule-clamp-77\n")
    again = await bash(pipeline, project, command)
    assert "greenMule" not in again["stdout"]


async def test_the_daemons_own_environment_is_not_the_commands(
    pipeline: CallPipeline, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_PRIVATE_THING", "blue-horse")
    ran = await bash(pipeline, project, "env; cat /proc/*/environ | tr '\\0' '\\n'")
    assert "blue-horse" not in ran["stdout"]


async def test_a_long_output_is_cut_with_its_end_and_its_errors_kept(
    pipeline: CallPipeline, project: Path
) -> None:
    command = "seq 1 20000; echo 'error: no such function: frobnicate'; seq 1 20000; echo the end; exit 1"
    answer = await pipeline.call("safe_bash", {"command": command, "project_path": str(project)}, HERE)
    assert answer.tokens_used <= 2_000
    assert answer.truncated
    assert answer.data["exit_code"] == 1
    assert "error: no such function: frobnicate\n" in answer.data["stdout"]
    assert answer.data["stdout"].endswith("the end\n")
    (ref,) = answer.refs
    found = (await pipeline.call("ref_get", {"ref": ref, "pattern": "^12345$"}, HERE)).data
    assert found["matches"] == 2


async def test_a_caller_that_wants_to_know_is_told_how_it_goes(
    pipeline: CallPipeline, project: Path
) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total, message))

    command = f"echo {TOKEN}; for n in $(seq 300); do echo step $n; sleep .005; done"
    arguments = {"command": command, "project_path": str(project)}
    await pipeline.call("safe_bash", arguments, replace(HERE, progress=progress))
    assert told
    assert all(total == 120 for _, total, _ in told)
    assert not any(TOKEN in (message or "") for _, _, message in told)


async def test_a_call_that_is_given_up_leaves_nothing_running(
    pipeline: CallPipeline, project: Path
) -> None:
    begun = asyncio.Event()

    async def progress(done: float, total: float | None, message: str | None) -> None:
        if message:
            begun.set()

    command = "while :; do date +%N | tee alive; sleep .02; done"
    arguments = {"command": command, "project_path": str(project)}
    call = asyncio.create_task(pipeline.call("safe_bash", arguments, replace(HERE, progress=progress)))
    async with asyncio.timeout(20):
        await begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    left = (project / "alive").read_text()
    await asyncio.sleep(0.3)
    assert (project / "alive").read_text() == left


async def test_a_branch_whose_time_is_over_ends_its_command(pipeline: CallPipeline, project: Path) -> None:
    ask = {"description": "Try it", "prompt": "Try it", "timeout_s": 1}
    branch = (await pipeline.call("branch", ask, HERE)).data["branch_id"]
    with pytest.raises(BranchTimedOut):
        await bash(pipeline, project, "sleep 60", branch_id=branch)


# --- bad input --------------------------------------------------------------------------


async def test_bad_input_is_refused_before_anything_runs(pipeline: CallPipeline, project: Path) -> None:
    (project / "out").symlink_to("/")
    with pytest.raises(OutsideProject, match="cwd leads out of the project"):
        await bash(pipeline, project, "touch ran", cwd="out")
    with pytest.raises(OutsideProject):
        await bash(pipeline, project, "touch ran", cwd="..")
    with pytest.raises(BadPath, match="cwd is not a folder"):
        await bash(pipeline, project, "touch ran", cwd="nowhere")
    with pytest.raises(BadPath, match="project_path is not a folder"):
        await bash(pipeline, project / "nowhere", "touch ran")
    with pytest.raises(BadFormat, match="env holds a name"):
        await bash(pipeline, project, "touch ran", env={"A=B": "1"})
    with pytest.raises(OutOfRange, match=r"more than the project's policy gives \(120\)"):
        await bash(pipeline, project, "touch ran", timeout_s=121)
    assert not (project / "ran").exists()


async def test_a_token_for_another_project_runs_nothing(pipeline: CallPipeline, project: Path) -> None:
    stranger = Caller(Principal("ci", frozenset({project_at("/elsewhere").key})))
    with pytest.raises(Forbidden):
        arguments = {"command": "touch ran", "project_path": str(project)}
        await pipeline.call("safe_bash", arguments, stranger)
    assert not (project / "ran").exists()


# --- fixes that are known ---------------------------------------------------------------

ERROR = "zorblax: fatal error: the flux capacitor at port {port} is not aligned"


async def test_a_fix_that_is_known_comes_with_the_failure_and_is_credited_when_the_command_passes(
    pipeline: CallPipeline, house: House, project: Path
) -> None:
    saved = await pipeline.call(
        "remediation_save",
        {
            "error_message": ERROR.format(port=8080),
            "error_type": "FluxError",
            "solution": "Run `zorblax align` before the build. " + "It takes a while. " * 200,
        },
        HERE,
    )
    command = f"test -e aligned || {{ echo '{ERROR.format(port=9999)}' >&2; exit 1; }}"
    failed = await bash(pipeline, project, command)
    assert failed["known_fix"]["id"] == saved.data["id"]
    assert failed["known_fix"]["source"] == "remediation"
    assert failed["known_fix"]["solution"].startswith("Run `zorblax align` before the build.")
    assert O200kCounter().count(as_json(failed["known_fix"])) <= KNOWN_FIX_TOKENS
    (project / "aligned").touch()
    assert "verified_fix" not in await bash(pipeline, project, "true")
    passed = await bash(pipeline, project, command)
    assert passed["verified_fix"] == saved.data["id"]
    assert "verified_fix" not in await bash(pipeline, project, command)
    found = await pipeline.call("remediation_search", {"error_message": ERROR.format(port=1)}, HERE)
    (hit,) = found.data["results"]
    assert (hit["usage_count"], hit["success_rate"]) == (1, 1.0)


async def test_another_error_gets_no_fix_that_is_not_its_own(pipeline: CallPipeline, project: Path) -> None:
    await pipeline.call(
        "remediation_save",
        {"error_message": ERROR.format(port=1), "error_type": "FluxError", "solution": "Align it."},
        HERE,
    )
    failed = await bash(pipeline, project, "echo 'the moon is full' >&2; exit 1")
    assert "known_fix" not in failed


async def test_a_pattern_of_the_pack_helps_where_nothing_was_saved(
    pipeline: CallPipeline, project: Path
) -> None:
    failed = await bash(
        pipeline, project, "echo \"ModuleNotFoundError: No module named 'requests'\" >&2; exit 1"
    )
    assert failed["known_fix"]["source"] == "pattern"
    assert O200kCounter().count(as_json(failed["known_fix"])) <= KNOWN_FIX_TOKENS


async def test_a_fix_that_may_destroy_says_so(pipeline: CallPipeline, project: Path) -> None:
    await pipeline.call(
        "remediation_save",
        {
            "error_message": ERROR.format(port=1),
            "error_type": "FluxError",
            "solution": "Clear it:\n```\nrm -rf ~/\n```",
        },
        HERE,
    )
    failed = await bash(pipeline, project, f"echo '{ERROR.format(port=2)}' >&2; exit 1")
    assert "May destroy data" in failed["known_fix"]["warning"]
