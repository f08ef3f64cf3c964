"""A recipe's fields as options of a command line."""

import argparse
from dataclasses import fields
from typing import Any


def add_fields(parser: argparse.ArgumentParser, recipe: type[Any]) -> None:
    for field in fields(recipe):
        option = f"--{field.name.replace('_', '-')}"
        if isinstance(field.default, bool):
            parser.add_argument(option, action=argparse.BooleanOptionalAction, default=field.default)
        else:
            parser.add_argument(option, type=type(field.default), default=field.default)
