"""A module with mistakes in it."""

import os


def whole(path: str) -> Path:
    """Stands before the mistakes."""
    return Path(path)


class Shelf:
    """Holds a mistake."""

    def put(self, value)
        self.values.append(value)

    def get(self, key):
        return self.values[key]


LAST = 3


def after(shelf: Shelf) -> None:
    """Stands after them."""
    shelf.get(1
