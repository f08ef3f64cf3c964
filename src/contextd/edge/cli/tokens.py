"""`contextd token`: who may use the daemon."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from contextd.domain.ports import TokenVault


@click.group()
def token() -> None:
    """Make, list and revoke the tokens that callers must send.

    Once there is one, the daemon serves nobody without a token.
    """


@token.command()
@click.option("--name", required=True, help="Whose it is; shown in logs and analytics.")
@click.option(
    "--project", "projects", multiple=True, help="Only this project; may be given more than once."
)
def create(name: str, projects: tuple[str, ...]) -> None:
    """Make a token and print it, this once."""
    paths = tuple(str(Path(project).expanduser().absolute()) for project in projects)
    secret = _vault().create(name, paths or None)
    scope = ", ".join(paths) or "every project"
    click.echo(f"token {name} for {scope}; it is not shown again:", err=True)
    click.echo(secret)


@token.command(name="list")
def list_tokens() -> None:
    """List the tokens by name; their secrets are not kept."""
    tokens = list(_vault())
    if not tokens:
        click.echo("there are no tokens: 'contextd token create --name NAME' makes one", err=True)
    for known in tokens:
        scope = ", ".join(known.projects) if known.projects else "every project"
        click.echo(f"{known.name:20s} {known.created_at:%Y-%m-%d %H:%M}  {scope}")


@token.command()
@click.argument("name")
def revoke(name: str) -> None:
    """Revoke a token; a running daemon follows at once."""
    if not _vault().revoke(name):
        raise click.ClickException(f"there is no token named {name}: 'contextd token list' shows them")
    click.echo(f"revoked {name}", err=True)


def _vault() -> "TokenVault":
    from contextd.adapters.token_vault import TokenFile
    from contextd.settings import load_settings

    return TokenFile(load_settings().data_dir / "tokens.json")
