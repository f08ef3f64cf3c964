"""Commands apart from all else: the ladder of sandboxes, and the policies that say what they may touch."""

from contextd.adapters.sandbox.ladder import Ladder
from contextd.adapters.sandbox.policy_file import PolicyFile

__all__ = ["Ladder", "PolicyFile"]
