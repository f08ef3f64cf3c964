"""Judges what a shell command may destroy."""

from contextd.domain.command_risk.prose import told_in
from contextd.domain.command_risk.verdict import Risk, assess

__all__ = ["Risk", "assess", "told_in"]
