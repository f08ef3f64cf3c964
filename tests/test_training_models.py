"""The whole way from pairs to models, by the scripts as a person runs them, on a small example."""

import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from ahead import ahead
from batches import Blocks, Shape, Variations
from contextd.adapters.code_static import CodeStatic
from contextd.adapters.shipped_files import SHIPPED
from corpus import Corpus, Ragged, offsets_of, packed
from measure import lead, ranks_by_set
from models import model_of
from pair import KINDS, Pair, PairKind
from pools import Pool, pools_of, write_pools
from training_samples import make_network, make_repositories, script

WORDS = "open close read write send count store find sort split join parse print load save copy".split()


def sentence(number: int) -> str:
    return " ".join(WORDS[(number >> (4 * place)) % 16] for place in range(3))


def made_pairs(count: int) -> Iterator[Pair]:
    """Each asks in words that its document has in another order, and is of one of four repositories."""
    kinds: tuple[PairKind, ...] = ("doc", "name", "remark", "error")
    for number in range(count):
        first, second, third = sentence(number * 37).split()
        code = f"func {third}{first.title()}(c *{second.title()}) {{ return c.{second}({first}, {third}) }}"
        repository = f"repository-{number * 4 // count}"
        yield Pair(kinds[number % 4], repository, "go", f"{first} the {second} and {third}", code)
        if number % 8 == 0:
            yield Pair("beside", repository, "go", "", f"func Test{number}(t *testing.T) {{ {code} }}")


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return packed(made_pairs(400))[0]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefghijklmnopqrstuvwxyz0123456789"]
    pieces += [f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz0123456789"]
    return make_network(tmp_path_factory.mktemp("published") / "minilm", pieces + WORDS)


def test_a_folder_of_repositories_becomes_two_models(tmp_path: Path, published: Path) -> None:
    repositories = make_repositories(tmp_path / "repositories")
    script("extract.py", repositories, tmp_path / "pairs")
    script("extract.py", repositories, tmp_path / "banned", "--held-out")
    script("clean.py", tmp_path / "pairs", tmp_path / "banned", tmp_path / "pairs.jsonl.gz")
    about = json.loads(script("corpus.py", tmp_path / "pairs.jsonl.gz", tmp_path / "corpus"))
    assert about["pairs"] > 8
    assert about["repositories"] == 1
    corpus, network = tmp_path / "corpus", tmp_path / "network.npz"
    script("tokenizer.py", corpus, tmp_path / "vocab.txt", "--pieces", "300")
    small = ("--pairs", "8", "--block", "4", "--beside", "2")
    tuning = ("train_minilm.py", corpus, published, network, *small, "--no-half", "--epochs", "1")
    script(*tuning, "--vectors", tmp_path / "vectors.npz")
    script("export_minilm.py", network, tmp_path / "network.onnx", "--blended", published)
    learning = ("train_static.py", corpus, tmp_path / "vocab.txt", published, tmp_path / "table.npz")
    script(*learning, *small, "--teacher", tmp_path / "vectors.npz", "--taught", "1")
    script("judged.py", repositories, tmp_path / "judged.gz", "--pairs", tmp_path / "banned")
    assert {pool.set for pool in pools_of(tmp_path / "judged.gz")} >= {"sentences", "words"}
    shown = script(
        "measure.py",
        tmp_path / "judged.gz",
        f"onnx:{tmp_path / 'network.onnx'}:{published / 'vocab.txt'}",
        f"minilm:{network}:{published}",
        f"static:{tmp_path / 'table.npz'}:{tmp_path / 'vocab.txt'}",
        "shipped:static",
    )
    assert "| sentences (" in shown


def test_what_is_learnt_is_found(tmp_path: Path, corpus: Corpus, published: Path) -> None:
    """Both models find documents of queries better after a few rounds than before any."""
    asked = [pair for pair in made_pairs(100) if pair.query]
    pool = Pool(
        "all",
        "",
        [pair.document for pair in asked],
        [pair.query for pair in asked],
        [[at] for at in range(len(asked))],
        ["doc"] * len(asked),
    )
    corpus.save(tmp_path / "corpus")
    script("tokenizer.py", tmp_path / "corpus", tmp_path / "vocab.txt", "--pieces", "200")
    small = ("--pairs", "64", "--block", "16", "--beside", "8")
    for epochs in ("0", "6"):
        network = (tmp_path / "corpus", published, tmp_path / f"network{epochs}.npz", *small, "--no-half")
        script("train_minilm.py", *network, "--epochs", epochs, "--rate", "0.001")
        table = (tmp_path / "corpus", tmp_path / "vocab.txt", published, tmp_path / f"table{epochs}.npz")
        script("train_static.py", *table, *small, "--epochs", epochs)
    found = {
        name: np.mean(ranks_by_set(model_of(name.format(tmp_path, published)), [pool])["all"])
        for name in (
            "minilm:{0}/network0.npz:{1}",
            "minilm:{0}/network6.npz:{1}",
            "static:{0}/table0.npz:{0}/vocab.txt",
            "static:{0}/table6.npz:{0}/vocab.txt",
        )
    }
    before, after, rough, learnt = found.values()
    assert after > before + 0.1
    assert learnt > rough + 0.05


def test_the_product_reads_a_table_as_training_wrote_it() -> None:
    texts = [
        "func (c *Context) BindJSON(obj any) error {\n\treturn nil\n}",
        "closeAll the the the sessions",
        "",
    ]
    table = model_of(f"static:{SHIPPED / 'code-static.npz'}:{SHIPPED / 'code-static.vocab.txt'}")
    model = CodeStatic()
    for text, trained, asked in zip(texts, table.documents(texts), table.queries(texts), strict=True):
        assert np.abs(model.document(model.pieces(text)) - trained).max() < 1e-4
        assert np.abs(model.query(text) - asked).max() < 1e-4


def test_eight_bits_say_nearly_what_the_network_says(tmp_path: Path, published: Path) -> None:
    from export_minilm import export, graph_of
    from network import parameters_of, weights_of
    from published_minilm import PublishedMiniLM, tensors_of

    tensors = tensors_of(published / "model.safetensors")
    again = weights_of(parameters_of(tensors))
    (tmp_path / "whole.onnx").write_bytes(graph_of(again).SerializeToString())
    export(again, tmp_path / "small.onnx")
    texts = ["open the store and read", "close"]
    own = np.stack([PublishedMiniLM(published).vector(text) for text in texts])
    for file, least in (("whole.onnx", 0.9999), ("small.onnx", 0.98)):
        vectors = model_of(f"onnx:{tmp_path / file}:{published / 'vocab.txt'}").documents(texts)
        assert np.sum(own * vectors, axis=1).min() > least, file
    session = onnxruntime.InferenceSession(tmp_path / "whole.onnx")
    ids = np.array([[2, 80, 81, 3, 0, 0], [2, 80, 81, 82, 83, 3]])
    masked = session.run(None, {"input_ids": ids, "attention_mask": (ids > 0).astype(np.int64)})[0]
    alone = session.run(None, {"input_ids": ids[:1, :4], "attention_mask": np.ones((1, 4), np.int64)})[0]
    assert np.abs(masked[0] - alone[0]).max() < 1e-5, "what is masked is not looked at"


def test_a_blend_lies_between_the_tuned_network_and_the_published_one(published: Path) -> None:
    from export_minilm import blended
    from network import parameters_of, weights_of
    from published_minilm import tensors_of

    begun = weights_of(parameters_of(tensors_of(published / "model.safetensors")))
    tuned = {name: each + 1 for name, each in begun.items()}
    for share, moved in ((0.0, 1.0), (0.2, 0.8), (1.0, 0.0)):
        for name, each in blended(tuned, begun, share).items():
            assert each == pytest.approx(begun[name] + moved, abs=1e-5)


def test_a_batch_has_blocks_of_one_repository_and_every_pair_comes_about_once(corpus: Corpus) -> None:
    blocks = Blocks(corpus, corpus.documents.lengths, [Shape(64, 100), Shape(256, 50)], 10)
    chance = np.random.default_rng(1)
    drawn = list(blocks.epoch(chance))
    rows = np.concatenate([each.rows for each in drawn])
    assert len(drawn) == blocks.batches_in_epoch()
    assert len(set(rows.tolist())) == len(rows) == 400
    for block in rows.reshape(-1, 10):
        assert len(set(corpus.repositories[block].tolist())) == 1
    assert all(corpus.kinds[row] != KINDS.index("beside") for row in rows)
    beside = blocks.beside(rows[:10], 5, chance)
    assert {KINDS[kind] for kind in corpus.kinds[beside]} == {"beside"}
    assert set(corpus.repositories[beside]) == set(corpus.repositories[rows[:10]])


def test_a_corpus_that_fills_no_batch_is_refused(corpus: Corpus) -> None:
    with pytest.raises(ValueError, match="does not fill one batch"):
        Blocks(corpus, corpus.documents.lengths, [Shape(256, 10_000)], 10)


def test_blocks_hold_what_lies_together(corpus: Corpus) -> None:
    near = np.zeros((len(corpus), 2), np.float16)
    near[:, 0] = np.arange(len(corpus)) % 2
    blocks = Blocks(corpus, corpus.documents.lengths, [Shape(256, 400)], 10)
    (drawn,) = blocks.epoch(np.random.default_rng(3), near)
    pure = [len(set(near[block, 0].tolist())) == 1 for block in drawn.rows.reshape(-1, 10)]
    assert np.mean(pure) > 0.8


def test_queries_are_varied_as_people_vary_them(corpus: Corpus) -> None:
    drawn = Variations(corpus).drawn(np.random.default_rng(1))
    assert len(drawn) == len(corpus)
    own, varied = corpus.queries.lengths, drawn.lengths
    asked = corpus.kinds != KINDS.index("beside")
    assert (varied[~asked] == 0).all()
    assert (varied[asked] > 0).mean() > 0.99
    assert 0.1 < (varied < own)[asked].mean() < 0.4
    named = corpus.kinds == KINDS.index("name")
    assert (
        drawn.take(np.flatnonzero(named)).stream == corpus.queries.take(np.flatnonzero(named)).stream
    ).all()


def test_rows_of_different_lengths_are_padded_and_skipped_into() -> None:
    rows = Ragged(np.arange(1, 8, dtype=np.uint16), offsets_of(np.array([3, 0, 4])))
    table, lengths = rows.padded(np.array([2, 0, 1]), 3)
    assert table.tolist() == [[4, 5, 6], [1, 2, 3], [0, 0, 0]]
    assert lengths.tolist() == [3, 3, 0]
    table, lengths = rows.padded(np.array([2, 0]), 3, np.array([2, 1]))
    assert table.tolist() == [[6, 7, 0], [2, 3, 0]]


def test_a_corpus_is_the_same_when_it_comes_back(tmp_path: Path, corpus: Corpus) -> None:
    corpus.save(tmp_path)
    again = Corpus.load(tmp_path)
    assert again.words == corpus.words
    for own, other in ((corpus.queries, again.queries), (corpus.documents, again.documents)):
        assert (own.stream == other.stream).all()
        assert (own.offsets == other.offsets).all()
    assert (again.tails == corpus.tails).all()


def test_an_interval_excludes_zero_only_where_one_is_better(tmp_path: Path) -> None:
    chance = np.random.default_rng(5)
    one = chance.random(400)
    better = lead((one + 0.1).tolist(), one.tolist()).split(" to ")
    assert [round(float(each), 3) for each in better] == [0.1, 0.1]
    low, high = map(float, lead(chance.random(400).tolist(), chance.random(400).tolist()).split(" to "))
    assert low < 0 < high
    pool = Pool("a", "b", ["x"], ["y"], [[0]], ["doc"])
    write_pools(tmp_path / "pools.gz", [pool])
    assert pools_of(tmp_path / "pools.gz") == [pool]


def test_of_equal_scores_the_answer_counts_as_the_last() -> None:
    class Blind:
        def documents(self, texts: list[str]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
            return np.ones((len(texts), 2), np.float32)

        queries = documents

    pool = Pool("a", "", ["x"] * 4, ["y"], [[0]], ["doc"])
    assert ranks_by_set(Blind(), [pool]) == {"a": [0.25]}  # type: ignore[arg-type]  # lists are sequences


def test_batches_come_in_order_and_a_failure_is_not_swallowed() -> None:
    assert list(ahead(math.sqrt, (each * each for each in range(200)))) == list(range(200))

    def broken() -> Iterator[int]:
        yield 1
        raise ValueError("lost")

    with pytest.raises(ValueError, match="lost"):
        list(ahead(str, broken()))
