"""A small repository with a history, a very small network, and the scripts of `training/` as they run."""

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
LAYERS, SIZE, WIDE, PLACES = 2, 64, 128, 256
GO = """package cart

import "fmt"

// Total adds up the prices of everything in the cart. Half a cent is rounded in favour of the shop.
func (c *Cart) TotalPrice(rate float64) (int, error) {
	if rate < 0 {
		return 0, fmt.Errorf("rate %f of cart %s is negative", rate, c.name)
	}
	sum := 0
	// goods that were returned do not count any more
	for _, item := range c.items {
		sum += item.price
	}
	return sum, nil
}

// A shopping basket with its goods and its owner.
type Cart struct {
	name  string
	items []Item
	owner Customer
}

func TestTotalPrice(t *testing.T) {
	cart := Cart{name: "full", items: goods()}
	total, err := cart.TotalPrice(1.5)
	require.NoError(t, err)
	require.Equal(t, 12, total)
}
"""
PYTHON = '''def read_settings(path):
    """Read all settings of a service from a file."""
    with open(path) as lines:
        return dict(line.strip().split("=", 1) for line in lines if line.strip())
'''
PROSE = """# Shop

## Paying by card

Cards are charged when the order leaves the house. Until then the amount is only reserved, and a customer
who cancels sees nothing on the bill of that month.
"""


def make_repositories(folder: Path) -> Path:
    """One that may be learnt from, and one that may not."""
    for name in ("shop", "psf+requests"):
        (folder / name).mkdir(parents=True)
        (folder / name / "settings.py").write_text(PYTHON)
    shop = folder / "shop"
    (shop / "README.md").write_text(PROSE)
    (shop / "cart.go").write_text(GO.replace("sum += item.price", "sum += 1"))
    git(shop, "init", "--quiet")
    git(shop, "add", ".")
    git(shop, "commit", "--quiet", "-m", "first")
    (shop / "cart.go").write_text(GO)
    subject = "fix(cart): count the price of items instead of their number (#12)"
    reason = "Every cart with more than one kind of goods was far too cheap since the last release."
    git(shop, "commit", "--quiet", "-am", subject, "-m", reason)
    return folder


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, timeout=30)


def script(name: str, *words: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, ROOT / "training" / name, *words],
        env={**os.environ, "PYTHONPATH": str(ROOT / "bench"), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return done.stdout


def make_network(folder: Path, vocabulary: list[str]) -> Path:
    """As all-MiniLM-L6-v2 is published, of another size and of no use."""
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    chance = np.random.default_rng(1)
    shapes = {
        "embeddings.word_embeddings.weight": (len(vocabulary), SIZE),
        "embeddings.position_embeddings.weight": (PLACES, SIZE),
        "embeddings.token_type_embeddings.weight": (2, SIZE),
    }
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        for part in ("query", "key", "value"):
            shapes[f"{name}.attention.self.{part}.weight"] = (SIZE, SIZE)
        shapes[f"{name}.attention.output.dense.weight"] = (SIZE, SIZE)
        shapes[f"{name}.intermediate.dense.weight"] = (WIDE, SIZE)
        shapes[f"{name}.output.dense.weight"] = (SIZE, WIDE)
    tensors = {name: chance.normal(0, 0.1, shape).astype("<f4") for name, shape in shapes.items()}
    for name, shape in shapes.items():
        if name.startswith("encoder."):
            tensors[name.replace("weight", "bias")] = np.zeros(shape[0], "<f4")
    norms = ["embeddings.LayerNorm"]
    for layer in range(LAYERS):
        norms += [f"encoder.layer.{layer}.{part}.LayerNorm" for part in ("attention.output", "output")]
    for name in norms:
        tensors[f"{name}.weight"], tensors[f"{name}.bias"] = np.ones(SIZE, "<f4"), np.zeros(SIZE, "<f4")
    write_safetensors(folder / "model.safetensors", tensors)
    return folder


def write_safetensors(
    file: Path, tensors: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]
) -> None:
    header: dict[str, object] = {}
    start = 0
    for name, tensor in tensors.items():
        end = start + tensor.nbytes
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [start, end]}
        start = end
    head = json.dumps(header).encode()
    body = b"".join(tensor.tobytes() for tensor in tensors.values())
    file.write_bytes(struct.pack("<Q", len(head)) + head + body)
