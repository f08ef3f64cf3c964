"""Filler for the rules' samples, so that no sample stands in the source as something a scanner reports."""


def mixed(length: int) -> str:
    """Letters of both cases and digits."""
    return _fill("k7Qz2mXv9RtB4wLsN8pYd3HcJ6fG", length)


def lower(length: int) -> str:
    return _fill("k7qz2mxv9rtb4wlsn8pyd3hcj6fg", length)


def upper(length: int) -> str:
    """Capitals and the digits of base32."""
    return _fill("K7QZ2MXV5RTB4WLSN6PYD3HCJ", length)


def letters(length: int) -> str:
    return _fill("kQzmXvRtBwLsNpYdHcJfGaUe", length)


def hexes(length: int) -> str:
    return _fill("9f3a7c1e5b0d8264", length)


def digits(length: int) -> str:
    return _fill("7391846205", length)


def uuid() -> str:
    return "-".join((hexes(8), "4b1d", "4c7e", "9a2f", hexes(12)))


def _fill(pattern: str, length: int) -> str:
    return (pattern * (length // len(pattern) + 1))[:length]
