"""Remediations end to end: saved, counted, found again, by every client at once."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from contextd.domain.callers import Caller, Principal
from contextd.domain.errors import Conflict, Invalid
from contextd.domain.ids import drawer_of
from contextd.domain.ports import Outcome
from contextd.domain.records import SHARED, Entry, Record
from contextd.edge.call_pipeline import CallPipeline, pipeline_of
from contextd.services.archive import Archive
from contextd.services.projects import project_at
from contextd.services.remediations import Draft, Remediations
from contextd.settings import RateLimit, Settings
from contextd.wiring import House, build, open_house
from running import KEYWORD_ONLY, Daemon, Session, Stdio, running_daemon, running_stdio, structured

REFUSED = "dial tcp 127.0.0.1:8080: connect: connection refused"
TRACE = (
    'Traceback (most recent call last):\n  File "/srv/shop/cart.py", line {line}, in total\nKeyError: {key}'
)

_numbers = itertools.count()


def word() -> str:
    """A word that no other test uses: all tests share one drawer."""
    return "z" + "".join("abcdefghij"[int(digit)] for digit in f"{next(_numbers):05}")


def error(name: str) -> str:
    return f"{name} {name[::-1]} refused to start"


# --- through the daemon ---------------------------------------------------------------


@pytest.fixture
def session(daemon: Daemon) -> Session:
    return daemon.session()


def save(session: Session, message: str, solution: str, **more: Any) -> dict[str, Any]:
    asked = {"error_message": message, "error_type": "StartError", "solution": solution, **more}
    return structured(session.call("remediation_save", **asked))


def search(session: Session, message: str, **more: Any) -> dict[str, Any]:
    return structured(session.call("remediation_search", error_message=message, **more))


def refusal(session: Session, tool: str, **arguments: Any) -> dict[str, Any]:
    result = session.call(tool, **arguments)["result"]
    assert result["isError"]
    body: dict[str, Any] = result["structuredContent"]
    return body


def test_an_error_that_comes_back_is_found_with_its_solution(session: Session) -> None:
    saved = save(
        session,
        REFUSED,
        "Start the server: ./server",
        error_type="ConnectionError",
        severity="medium",
        tags=["networking", "server"],
        context={"root_cause": "nothing listens"},
        project_path="/srv/shop",
    )
    assert saved["id"].startswith("rm-shared-")
    assert drawer_of(saved["id"]) == "shared"
    assert saved["merged"] is False
    assert saved["seen_count"] == 1
    answer = search(session, "2025/01/02 03:04:05 dial tcp 10.9.8.7:5432: connect: connection refused")
    assert answer["query"].startswith("2025/01/02")
    assert answer["semantic"] is True
    best = answer["results"][0]
    assert best["id"] == saved["id"]
    assert best["solution"] == "Start the server: ./server"
    assert best["string_score"] == 1
    assert best["semantic_score"] > 0.95
    assert best["match_score"] == pytest.approx(0.7 * best["semantic_score"] + 0.3, abs=1e-3)
    assert best["error_type_match"] is True
    assert best["stack_trace_match"] is False
    assert best["context"] == {"root_cause": "nothing listens"}
    assert best["tags"] == ["networking", "server"]
    assert (best["usage_count"], best["success_rate"]) == (0, None)


def test_a_part_of_an_error_finds_it(session: Session) -> None:
    save(session, REFUSED, "Start the server: ./server")
    found = search(session, "connection refused", limit=5, min_score=0.6)["results"]
    assert "Start the server: ./server" in [each["solution"] for each in found]


def test_the_same_solution_of_the_same_error_is_counted_and_not_kept_twice(session: Session) -> None:
    name = word()
    first = save(session, f"{error(name)} after 3 s", "Turn it off  and ON", tags=["a"])
    again = save(
        session, f"{error(name)} after 12 s", "turn it off\nand on", tags=["b", "a"], severity="high"
    )
    other = save(session, f"{error(name)} after 12 s", "replace it")
    assert again["id"] == first["id"] != other["id"]
    assert (again["merged"], again["seen_count"]) == (True, 2)
    assert (other["merged"], other["seen_count"]) == (False, 1)
    assert again["created_at"] == first["created_at"]
    assert again["solution"] == "Turn it off  and ON"
    found = {each["id"]: each for each in search(session, error(name))["results"]}
    assert found[first["id"]]["tags"] == ["a", "b"]
    assert found[first["id"]]["seen_count"] == 2
    assert list(found)[:2] == [first["id"], other["id"]]


def test_two_clients_that_save_the_same_are_both_counted(daemon: Daemon) -> None:
    name = word()

    def client(number: int) -> list[int]:
        session = daemon.session()
        return [
            save(session, f"{error(name)} on port {n}", "restart", tags=[f"t{number}"])["seen_count"]
            for n in range(5)
        ]

    with ThreadPoolExecutor(2) as clients:
        counts = [count for counted in clients.map(client, range(2)) for count in counted]
    assert sorted(counts) == list(range(1, 11))
    found = search(daemon.session(), f"{error(name)} on port 7")["results"][0]
    assert found["seen_count"] == 10
    assert sorted(found["tags"]) == ["t0", "t1"]


def test_two_processes_on_one_folder_count_together(tmp_path: Path) -> None:
    def saved_by(client: Stdio) -> list[int]:
        asked = {"error_message": REFUSED, "error_type": "E", "solution": "start it"}
        return [client.call("remediation_save", **asked)["seen_count"] for _ in range(5)]

    with (
        running_stdio(tmp_path, **KEYWORD_ONLY) as one,
        running_stdio(tmp_path, **KEYWORD_ONLY) as two,
        ThreadPoolExecutor(2) as clients,
    ):
        counts = [count for counted in clients.map(saved_by, (one, two)) for count in counted]
    assert sorted(counts) == list(range(1, 11))


def test_frames_and_types_in_common_are_told(session: Session) -> None:
    name = word()
    save(
        session,
        f"KeyError: no {name} in the cart",
        "use get",
        error_type="builtins.KeyError",
        stack_trace=TRACE.format(line=12, key=name),
    )
    trace = TRACE.format(line=99, key="other")
    best = search(session, f"KeyError: a {name} is not in the cart", stack_trace=trace)["results"][0]
    assert best["solution"] == "use get"
    assert best["stack_trace_match"] is True
    assert best["error_type_match"] is True
    assert best["string_score"] < 1
    elsewhere = trace.replace("cart.py", "pay.py")
    other = search(session, f"ValueError: a {name} is not in the cart", stack_trace=elsewhere)["results"][0]
    assert other["solution"] == "use get"
    assert (other["stack_trace_match"], other["error_type_match"]) == (False, False)


def test_tags_narrow_a_search_and_all_must_be_there(session: Session) -> None:
    name = word()
    save(session, error(name), "both", tags=[f"{name}-go", f"{name}-db"])
    save(session, error(name), "one", tags=[f"{name}-go"])

    def solutions(*tags: str) -> set[str]:
        return {each["solution"] for each in search(session, error(name), tags=list(tags))["results"]}

    assert solutions(f"{name}-go") == {"both", "one"}
    assert solutions(f"{name}-go", f"{name}-db") == {"both"}
    assert solutions(f"{name}-rust") == set()


def test_the_least_score_is_held_and_scores_fall(session: Session) -> None:
    name = word()
    for number, text in enumerate((error(name), f"{name} would not start", f"{name} is a bird")):
        save(session, text, f"solution {number}")
    everything = search(session, error(name), min_score=0, limit=100)
    scores = [each["match_score"] for each in everything["results"]]
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] < 0.9 <= scores[0]
    assert everything["total"] == len(scores)
    strict = search(session, error(name), min_score=0.9)
    assert all(each["match_score"] >= 0.9 for each in strict["results"])
    assert strict["total"] == len(strict["results"]) >= 1


def test_total_counts_what_the_limit_leaves_out(session: Session) -> None:
    name = word()
    for number in range(7):
        save(session, f"{error(name)} at {number}", f"way {'i' * number} out", tags=[name])
    answer = search(session, error(name), limit=3, tags=[name])
    assert len(answer["results"]) == 3
    assert answer["total"] == 7


def test_detail_shortens_what_is_long_and_references_name_it_alone(session: Session) -> None:
    name = word()
    save(session, error(name), "step " * 100, context={"k": "v"})
    answers = [search(session, error(name), detail=detail) for detail in ("refs", "preview", "full")]
    refs, preview, full = (answer["results"][0] for answer in answers)
    assert set(refs) == {"id", "error_message", "error_type", "match_score"}
    assert refs["error_message"] == error(name)[:60]
    assert set(answers[0]) - {"tokens_used"} == {"results", "total", "semantic"}
    assert [len(each["solution"]) for each in (preview, full)] == [200, 500]
    assert [each["context"] for each in (preview, full)] == [{}, {"k": "v"}]
    assert set(preview) == set(full)


def test_facts_of_the_first_save_stay_when_there_are_too_many(session: Session) -> None:
    name = word()
    for letter, count in (("a", 48), ("b", 50)):
        save(session, error(name), "fix", context={f"{letter}{number}": letter for number in range(count)})
    context = search(session, error(name))["results"][0]["context"]
    assert [letter for letter in "ab" for key in context if key.startswith(letter)] == ["a"] * 48 + [
        "b"
    ] * 2


def test_clients_that_save_one_pattern_at_once_make_one(daemon: Daemon) -> None:
    name = word()

    def client(number: int) -> str:
        saved = save(daemon.session(), error(name), f"way {number * 'i'} out", save_as_pattern=True)
        id: str = saved["pattern_id"]
        return id

    with ThreadPoolExecutor(3) as clients:
        assert len(set(clients.map(client, range(3)))) == 1


def test_a_secret_is_neither_kept_nor_answered(daemon: Daemon, session: Session) -> None:
    secret = "ghp_" + "b3C4" * 9
    message = f"{error(word())}: clone failed for token='{secret}'"
    save(session, message, f"export TOKEN={secret}", stack_trace=f'File "a.py", line 1, in {secret}')
    answer = session.rpc(
        "tools/call", {"name": "remediation_search", "arguments": {"error_message": message}}
    )
    assert secret not in answer.text
    assert answer.json()["result"]["structuredContent"]["total"] >= 1
    files = [path for path in daemon.data_dir.rglob("*") if path.is_file()]
    assert not any(secret.encode() in path.read_bytes() for path in files)


def test_it_is_found_from_every_project_and_the_mark_inside_is_not_shown(session: Session) -> None:
    name = word()
    save(session, error(name), "fix", project_path="/srv/one")
    found = search(session, error(name))
    assert found["results"][0]["solution"] == "fix"
    assert "fingerprint:" not in str(found)
    assert "/srv/one" not in str(found)


GOOD_SAVE = {"error_message": "e", "error_type": "t", "solution": "s"}


@pytest.mark.parametrize(
    ("tool", "changed", "code", "field"),
    [
        ("remediation_save", {"error_message": None}, "VAL_001", "error_message"),
        ("remediation_save", {"error_type": None}, "VAL_001", "error_type"),
        ("remediation_save", {"solution": None}, "VAL_001", "solution"),
        ("remediation_save", {"error_message": " \n"}, "VAL_003", "error_message"),
        ("remediation_save", {"error_message": "x" * 10_001}, "VAL_003", "error_message"),
        ("remediation_save", {"error_type": "x" * 201}, "VAL_003", "error_type"),
        ("remediation_save", {"error_type": ""}, "VAL_003", "error_type"),
        ("remediation_save", {"solution": "x" * 20_001}, "VAL_003", "solution"),
        ("remediation_save", {"solution": "  "}, "VAL_003", "solution"),
        ("remediation_save", {"stack_trace": "x" * 50_001}, "VAL_003", "stack_trace"),
        ("remediation_save", {"severity": "huge"}, "VAL_005", "severity"),
        ("remediation_save", {"tags": ["x"] * 21}, "VAL_003", "tags"),
        ("remediation_save", {"tags": ["x" * 51]}, "VAL_003", "tags"),
        ("remediation_save", {"tags": ["usb", "fingerprint:scanner"]}, "VAL_009", "tags"),
        ("remediation_save", {"error_message": "a b", "save_as_pattern": True}, "VAL_000", "error_message"),
        (
            "remediation_save",
            {"error_message": "x y 12345", "save_as_pattern": True},
            "VAL_000",
            "error_message",
        ),
        ("remediation_save", {"context": {"k": "x" * 1_001}}, "VAL_003", "context"),
        ("remediation_save", {"project_path": "/srv/../etc"}, "VAL_007", "project_path"),
        ("remediation_save", {"solution": 7}, "VAL_002", "solution"),
        ("remediation_save", {"extra": 1}, "VAL_006", "extra"),
        ("remediation_search", {"error_message": None}, "VAL_001", "error_message"),
        ("remediation_search", {"error_message": "  "}, "VAL_003", "error_message"),
        ("remediation_search", {"error_message": "x" * 10_001}, "VAL_003", "error_message"),
        ("remediation_search", {"stack_trace": "x" * 50_001}, "VAL_003", "stack_trace"),
        ("remediation_search", {"limit": 0}, "VAL_004", "limit"),
        ("remediation_search", {"limit": 101}, "VAL_004", "limit"),
        ("remediation_search", {"min_score": 1.1}, "VAL_004", "min_score"),
        ("remediation_search", {"min_score": -0.1}, "VAL_004", "min_score"),
        ("remediation_search", {"detail": "all"}, "VAL_005", "detail"),
        ("remediation_search", {"tags": "go"}, "VAL_002", "tags"),
    ],
)
def test_a_bad_field_is_named_with_what_to_give(
    session: Session, tool: str, changed: dict[str, Any], code: str, field: str
) -> None:
    good = GOOD_SAVE if tool == "remediation_save" else {"error_message": "e"}
    asked = {name: value for name, value in {**good, **changed}.items() if value is not None}
    body = refusal(session, tool, **asked)
    assert (body["category"], body["code"], body["details"]["field"]) == ("validation", code, field)


def test_the_longest_that_is_allowed_is_taken(daemon: Daemon) -> None:
    answer = daemon.tool(
        "remediation_save",
        error_message=("x.y:1 failed 'a' " * 600)[:10_000],
        error_type="t" * 200,
        solution="s" * 20_000,
        stack_trace=('  File "a.py", line 1, in f\n' * 2_000)[:50_000],
        severity="critical",
    )
    assert answer.status_code == 200, answer.text


def test_the_older_paths_reach_both_tools(daemon: Daemon) -> None:
    name = word()
    saved = httpx2.post(
        f"{daemon.url}/mcp/remediation/save", json={**GOOD_SAVE, "error_message": error(name)}
    )
    assert saved.json()["result"]["seen_count"] == 1
    found = httpx2.post(f"{daemon.url}/mcp/remediation/search", json={"error_message": error(name)})
    assert found.json()["result"]["results"][0]["id"] == saved.json()["result"]["id"]


@pytest.fixture(scope="module")
def without_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    folder = tmp_path_factory.mktemp("words")
    with running_daemon(folder, CONTEXTD_RATE_LIMIT="off", **KEYWORD_ONLY) as started:
        yield started


def test_without_a_model_strings_decide_and_the_answer_says_so(without_model: Daemon) -> None:
    session = without_model.session()
    save(session, REFUSED, "start it")
    save(session, "dial tcp 127.0.0.1:80: i/o timeout", "open the firewall")
    answer = search(session, REFUSED.replace("127.0.0.1:8080", "10.0.0.1:1"), min_score=0)
    assert answer["semantic"] is False
    assert [each["solution"] for each in answer["results"]] == ["start it", "open the firewall"]
    assert [each["semantic_score"] for each in answer["results"]] == [0, 0]
    assert all(each["match_score"] == each["string_score"] for each in answer["results"])
    assert answer["results"][0]["match_score"] == 1


# --- in process -----------------------------------------------------------------------


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    settings = Settings(data_dir=tmp_path, rate_limit=RateLimit(on=False))
    async with open_house(build(settings)) as opened:
        yield opened


@pytest.fixture
def remediations(house: House) -> Remediations:
    service = house.services[Remediations]
    assert isinstance(service, Remediations)
    return service


HERE = Caller(session="tests")


async def call(pipeline: CallPipeline, name: str, /, **arguments: Any) -> dict[str, Any]:
    return (await pipeline.call(name, arguments, HERE)).data


@pytest.mark.anyio
async def test_both_tools_go_all_the_way(house: House) -> None:
    pipeline = pipeline_of(house)
    assert (await call(pipeline, "remediation_search", error_message="nothing yet")) == {
        "results": [],
        "query": "nothing yet",
        "total": 0,
        "semantic": True,
    }
    saved = await call(pipeline, "remediation_save", **GOOD_SAVE, context={"a": 1})
    for detail in ("refs", "preview", "full"):
        found = await call(
            pipeline, "remediation_search", error_message="e", stack_trace="e\n" * 3_000, detail=detail
        )
        assert [each["id"] for each in found["results"]] == [saved["id"]]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("detail", "kept_out"),
    [
        ("full", ""),
        ("preview", "s" * 100 + '{"a": 1}'),
        ("refs", '{"solution":"' + "s" * 300),
    ],
)
async def test_what_a_shorter_answer_leaves_out_is_counted(
    house: House, detail: str, kept_out: str
) -> None:
    pipeline, caller = pipeline_of(house), Caller(session="tests")
    message = {"error_message": "the pump refused"}
    await call(
        pipeline, "remediation_save", **message, error_type="E", solution="s" * 300, context={"a": 1}
    )
    await pipeline.call("remediation_search", {**message, "detail": detail}, caller)
    told = "".join(caller.tally.kept_out)
    assert told.startswith(kept_out)
    assert bool(told) == bool(kept_out)


@pytest.mark.anyio
async def test_outcomes_are_told_with_a_match(house: House, remediations: Remediations) -> None:
    saved = await remediations.save(Draft(REFUSED, "E", "start it"), HERE)
    now = house.clock.now()
    outcomes = remediations._outcomes
    await outcomes.note([Outcome(saved.record.id, now, good) for good in (True, True, False, None)])
    found = await call(pipeline_of(house), "remediation_search", error_message=REFUSED)
    assert found["results"][0]["usage_count"] == 4
    assert found["results"][0]["success_rate"] == pytest.approx(0.6667)


@pytest.mark.anyio
async def test_an_exact_match_comes_first_also_before_a_better_score(remediations: Remediations) -> None:
    await remediations.save(Draft("KeyError: 'zygote'", "KeyError", "by analogy"), HERE)
    await remediations.save(Draft("KeyError: 'orders' is not a column", "KeyError", "by words"), HERE)
    found = await remediations.search("KeyError: 'orders'", HERE, min_score=0.0)
    assert [match.record.fields["solution"] for match in found.matches] == ["by analogy", "by words"]
    assert found.matches[0].string_score == 1


@pytest.mark.anyio
async def test_an_exact_match_is_found_among_any_number_of_others(remediations: Remediations) -> None:
    wanted = await remediations.save(Draft("the pump refused to start", "E", "prime it"), HERE)
    drafts = [Draft(f"pump {'a' * n} refused to start", "E", f"no {n}") for n in range(1, 80)]
    await asyncio.gather(*(remediations.save(draft, HERE) for draft in drafts))
    found = await remediations.search("ERROR: the pump refused to start", HERE, limit=1)
    assert found.matches[0].record.id == wanted.record.id


@pytest.mark.anyio
async def test_the_path_says_for_which_project_a_call_is_counted(remediations: Remediations) -> None:
    mine, theirs = project_at("/srv/mine"), project_at("/srv/theirs")
    for path, key in (("/srv/mine", mine.key), ("/srv/theirs", SHARED.key), (None, SHARED.key)):
        caller = Caller(Principal("ci", frozenset({mine.key})))
        await remediations.save(Draft("e", "t", "s", project_path=path), caller)
        assert caller.tally.project is not None
        assert caller.tally.project.key == key
    assert theirs.key != mine.key


@pytest.mark.anyio
async def test_what_was_missing_is_filled_in_and_what_is_there_stays(remediations: Remediations) -> None:
    first = await remediations.save(Draft("e", "t", "s", context={"a": 1}), HERE)
    trace = TRACE.format(line=1, key="'x'")
    again = await remediations.save(
        Draft("e", "other", "s", context={"a": 2, "b": 3}, severity="low", stack_trace=trace), HERE
    )
    fields = again.record.fields
    assert (fields["error_type"], fields["severity"]) == ("t", "low")
    assert fields["context"] == {"a": 1, "b": 3}
    assert fields["frames"]
    assert again.record.updated_at > first.record.updated_at
    assert again.record.created_at == first.record.created_at


@pytest.mark.anyio
async def test_many_at_once_are_all_counted(remediations: Remediations) -> None:
    saved = await asyncio.gather(
        *(remediations.save(Draft("e", "t", "s", tags=(f"t{n}",)), HERE) for n in range(12))
    )
    assert sorted(each.seen_count for each in saved) == list(range(1, 13))
    assert sorted(each.merged for each in saved) == [False] + [True] * 11
    (match,) = (await remediations.search("e", HERE, min_score=0.0)).matches
    assert set(match.record.tags) == {f"t{n}" for n in range(12)}


@pytest.mark.anyio
async def test_whoever_never_gets_a_turn_is_told_to_try_again(house: House) -> None:
    class Crowded(Archive):
        async def swap(self, record: Record, old: Record | None) -> Record | None:
            return None

    archive = Crowded(house.store, house.embeddings, house.scrubber, house.telemetry, house.clock)
    known = house.services[Remediations]
    assert isinstance(known, Remediations)
    crowded = Remediations(archive, known._outcomes, known._patterns)
    with pytest.raises(Conflict):
        await crowded.save(Draft("e", "t", "s"), HERE)


@pytest.mark.anyio
async def test_a_record_without_a_vector_is_weighed_by_its_string(
    house: House, remediations: Remediations
) -> None:
    saved = await remediations.save(Draft(REFUSED, "E", "start it"), HERE)
    kept = await house.store.get(SHARED, saved.record.id)
    assert kept is not None
    await house.store.put([Entry(replace(kept, updated_at=house.clock.now()), None)])
    (match,) = (await remediations.search(REFUSED, HERE)).matches
    assert (match.semantic_score, match.string_score, match.match_score) == (0, 1, 1)


@pytest.mark.anyio
async def test_a_remediation_may_be_a_pattern_too(house: House) -> None:
    pipeline = pipeline_of(house)
    arguments = {
        "error_message": "frobnicator: the sprocket bus refused its handshake",
        "error_type": "FrobError",
        "solution": "Reset the sprocket bus: frobctl reset",
        "context": {"root_cause": "The bus sleeps after an hour.", "category": "configuration"},
        "save_as_pattern": True,
    }
    saved = (await pipeline.call("remediation_save", arguments, Caller())).data
    assert saved["pattern_id"].startswith("pat-")
    listed = (
        await pipeline.call("list_patterns", {"limit": 100, "category": "configuration"}, Caller())
    ).data
    assert saved["pattern_id"] in [pattern["id"] for pattern in listed["patterns"]]
    asked = {"error_message": arguments["error_message"]}
    diagnosed = (await pipeline.call("troubleshoot", asked, Caller())).data
    assert diagnosed["root_cause"] == "The bus sleeps after an hour."


@pytest.mark.anyio
async def test_an_error_without_words_of_its_own_makes_no_pattern_and_nothing_is_kept(house: House) -> None:
    pipeline = pipeline_of(house)
    arguments = {"error_message": "0x1234", "error_type": "E", "solution": "s", "save_as_pattern": True}
    with pytest.raises(Invalid):
        await pipeline.call("remediation_save", arguments, Caller())
    search = {"error_message": "0x1234", "min_score": 0.0}
    assert (await pipeline.call("remediation_search", search, Caller())).data["results"] == []
