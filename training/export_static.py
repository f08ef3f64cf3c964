"""The trained table as the file that contextd reads: rows in 8 bits with a scale each."""

from pathlib import Path
from typing import Any, Final

import numpy as np

from adam import Tree

_MOST: Final = 127


def export(parameters: Tree, file: Path) -> None:
    """The same arrays give the same bytes."""
    rows = np.asarray(parameters["rows"], np.float32)
    scale = np.maximum(np.abs(rows).max(axis=1), 1e-9) / _MOST
    arrays: dict[str, Any] = {
        "E8": np.clip(np.round(rows / scale[:, None]), -_MOST, _MOST).astype(np.int8),
        "sc": scale.astype(np.float32),
        "gd": np.asarray(parameters["in_document"], np.float16),
        "gq": np.asarray(parameters["in_query"], np.float16),
        "pd": np.asarray(parameters["position"], np.float32),
        "al": np.float64(parameters["repetition"]),
    }
    np.savez(file, **arrays)
