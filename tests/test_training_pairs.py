"""Pairs to train on, from a small repository with a history, by the scripts as a person runs them."""

import json
from pathlib import Path

import pytest

from clean import cleaned, marks_of
from held_out import CHOSEN_ON, MEASURED_ON, is_held_out
from pair import KINDS, Pair, read
from training_samples import make_repositories, script


@pytest.fixture(scope="module")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_repositories(tmp_path_factory.mktemp("training") / "repositories")


def test_a_folder_of_repositories_becomes_pairs(repositories: Path, tmp_path: Path) -> None:
    script("extract.py", repositories, tmp_path / "pairs")
    (line,) = (tmp_path / "pairs/repositories.jsonl").read_text().splitlines()
    assert json.loads(line)["repository"] == "shop"
    assert len(json.loads(line)["commit"]) == 40
    pairs = {
        pair.kind: pair for pair in read(tmp_path / "pairs/shop.jsonl.gz") if pair.language != "python"
    }
    assert set(pairs) == set(KINDS) - {"beside"}, "one test in ten is kept"
    assert pairs["doc"].query == "Total adds up the prices of everything in the cart"
    assert "adds up" not in pairs["doc"].document
    assert pairs["name"].query == "cart total price"
    assert "TotalPrice" not in pairs["name"].document
    assert pairs["error"].query.startswith("rate ")
    assert "%" not in pairs["error"].query
    assert pairs["change"].query == "count the price of items instead of their number"
    assert "sum += item.price" in pairs["change"].document
    assert "sum += 1" not in pairs["change"].document
    assert pairs["report"].query.startswith("Every cart with more than one kind")
    assert pairs["detail"].query == "Half a cent is rounded in favour of the shop"
    assert pairs["remark"].query == "goods that were returned do not count any more"
    assert "returned" not in pairs["remark"].document
    assert pairs["alike"].query != pairs["alike"].document
    assert pairs["prose"].query == "Cards are charged when the order leaves the house."


def test_a_docstring_is_asked_with_and_not_looked_for(repositories: Path, tmp_path: Path) -> None:
    script("extract.py", repositories, tmp_path / "pairs")
    found = [pair for pair in read(tmp_path / "pairs/shop.jsonl.gz") if pair.language == "python"]
    (doc,) = [pair for pair in found if pair.kind == "doc"]
    assert doc.query == "Read all settings of a service from a file"
    assert "Read all" not in doc.document
    assert "line.strip()" in doc.document


def test_what_is_held_out_is_banned_wherever_it_is_met(repositories: Path, tmp_path: Path) -> None:
    script("extract.py", repositories, tmp_path / "pairs")
    script("extract.py", repositories, tmp_path / "banned", "--held-out")
    assert (tmp_path / "banned/psf+requests.jsonl.gz").exists()
    counts = json.loads(
        script("clean.py", tmp_path / "pairs", tmp_path / "banned", tmp_path / "all.jsonl.gz")
    )
    kept = list(read(tmp_path / "all.jsonl.gz"))
    assert counts["pairs"] == len(kept) > 0
    assert "language python" not in counts, "the shop's copy of requests' code"
    assert counts["language go"] == sum(pair.language == "go" for pair in kept)


def test_equal_pairs_are_kept_once() -> None:
    one = Pair("doc", "a", "go", "adds two numbers of any kind", "func add(a, b int) int { return a + b }")
    copy = Pair("doc", "b", "go", "Adds two numbers of any kind.", "func Add(a,b int) int {return a+b}")
    other = Pair("name", "a", "go", "add", one.document)
    assert list(cleaned([one, copy, other], frozenset())) == [one, other]
    assert list(cleaned([one, other], marks_of([copy]))) == []


@pytest.mark.parametrize("repository", [*MEASURED_ON, *CHOSEN_ON])
def test_a_held_out_repository_is_known_by_its_folder(repository: str) -> None:
    owner, name = repository.split("/")
    for folder in (f"{owner}+{name}", f"{owner}_{name}", f"golang-github-{owner}-{name}-dev", name):
        assert is_held_out(folder), folder


@pytest.mark.parametrize(
    "name", ["labstack+echo", "pallets+click", "golang-github-spf13-viper-dev", "chip"]
)
def test_its_neighbours_are_not(name: str) -> None:
    assert not is_held_out(name)
