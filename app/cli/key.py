"""`ling-chat key hub|URL`: keep a secret, without it ever being in an argv."""

import sys

import click

from app.core.i18n import _

HUB = "hub"


@click.command()
@click.argument("what", metavar="hub|URL")
@click.option("--forget", is_flag=True, help="Delete it instead.")
def key(what: str, forget: bool) -> None:
    """Keep the model hub's token (`hub`), or the API key of the server at this URL, in the keyring.

    Asks for it without showing it, or reads it from a pipe.
    """
    from app.core.i18n import shown
    from engine_bridge import secrets
    from engine_bridge.chat.web import normal_url
    from engine_bridge.errors import UsageError

    name = secrets.HUB_TOKEN if what == HUB else secrets.server_key(normal_url(what))
    if forget:
        secrets.forget(name)
        click.echo(_("The key is forgotten."))
        return
    if sys.stdin.isatty():
        value = str(click.prompt(_("Key"), hide_input=True, err=True))
    else:
        value = sys.stdin.readline()
    if not value.strip():
        raise UsageError(_("The key is empty."), _("Type or pipe it in."))
    where = secrets.store(name, value)
    click.echo(_("The key is kept in {where}.").format(where=shown(where)))
