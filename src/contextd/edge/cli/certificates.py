"""`contextd cert`: who may call over the network."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from contextd.adapters.certificates import CertificateAuthority


@click.group()
def cert() -> None:
    """Issue, list and revoke the certificates that gRPC clients on the network must show.

    The unix socket needs none: only you can reach it.
    """


@cert.command()
@click.option("--name", required=True, help="Whose it is; shown in logs and analytics.")
@click.option(
    "--project", "projects", multiple=True, help="Only this project; may be given more than once."
)
@click.option("--days", type=int, default=1, show_default=True, help="How long it is good, at most 30.")
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="A folder for ca.pem, client.pem and client.key.",
)
def issue(name: str, projects: tuple[str, ...], days: int, out: Path) -> None:
    """Make a certificate and its key; the key is written to the folder and kept nowhere else."""
    paths = tuple(str(Path(project).expanduser().absolute()) for project in projects)
    authority = _authority()
    pair = authority.issue(name, paths or None, days)
    out.mkdir(parents=True, exist_ok=True, mode=0o700)
    for file, text in (
        ("ca.pem", authority.root()),
        ("client.pem", pair.certificate),
        ("client.key", pair.key),
    ):
        _write_private(out / file, text)
    scope = ", ".join(paths) or "every project"
    click.echo(
        f"certificate {name} for {scope} in {out}, good until {pair.ends_at:%Y-%m-%d %H:%M} UTC", err=True
    )


@cert.command(name="list")
def list_certificates() -> None:
    """List the certificates that are good, by name."""
    known = list(_authority().ledger)
    if not known:
        click.echo("there are none: 'contextd cert issue --name NAME --out DIR' makes one", err=True)
    for each in known:
        scope = ", ".join(each.projects) if each.projects else "every project"
        click.echo(f"{each.name:20s} until {each.ends_at:%Y-%m-%d %H:%M} UTC  {scope}")


@cert.command()
@click.argument("name")
def revoke(name: str) -> None:
    """Revoke a certificate; a running daemon follows at once."""
    if not _authority().ledger.revoke(name):
        raise click.ClickException(f"there is no certificate named {name}: 'contextd cert list' shows them")
    click.echo(f"revoked {name}", err=True)


def _write_private(path: Path, data: bytes) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)


def _authority() -> "CertificateAuthority":
    from contextd.adapters.certificates import CertificateAuthority
    from contextd.adapters.clock import SystemClock
    from contextd.settings import load_settings

    return CertificateAuthority(load_settings().data_dir / "pki", SystemClock())
