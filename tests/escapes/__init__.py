"""Attacks on a sandbox: each is tried outside, where it must work, and inside, where it must not."""
