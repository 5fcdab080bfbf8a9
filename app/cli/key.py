"""`ling-chat key URL`: keep the API key of a server, without it ever being in an argv."""

import sys

import click


@click.command()
@click.argument("url")
@click.option("--forget", is_flag=True, help="Delete the key instead.")
def key(url: str, forget: bool) -> None:
    """Keep the API key of the server at URL in the keyring.

    Asks for it without showing it, or reads it from a pipe.
    """
    from engine_bridge import secrets
    from engine_bridge.chat.web import normal_url
    from engine_bridge.errors import UsageError

    name = secrets.server_key(normal_url(url))
    if forget:
        secrets.forget(name)
        click.echo("The key is forgotten.")
        return
    if sys.stdin.isatty():
        value = str(click.prompt("Key", hide_input=True, err=True))
    else:
        value = sys.stdin.readline()
    if not value.strip():
        raise UsageError("The key is empty.", "Type or pipe it in.")
    click.echo(f"The key is kept in {secrets.store(name, value)}.")
