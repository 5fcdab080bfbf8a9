"""`ling-chat sessions`: conversations, found, read, carried out and in."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.core.i18n import _, ngettext
from app.core.plain import plain

if TYPE_CHECKING:
    from app.core.sessions.records import SessionInfo
    from app.core.sessions.store import SessionStore

FORMATS = ("md", "json", "html")


@click.group()
def sessions() -> None:
    """List, search, read, export, import, rename and delete conversations.

    ID is the beginning of a session's id, as `list` shows it; `last` is the one changed last.
    """


@sessions.command("list")
@click.option("-n", "--limit", type=click.IntRange(1), default=20, show_default=True, metavar="N")
@click.option(
    "--offset", type=click.IntRange(0), default=0, metavar="N", help="Leave out the first N."
)
@click.option("--deleted", is_flag=True, help="Those in the trash.")
@click.option("--json", "as_json", is_flag=True, help="An array of objects.")
def list_(limit: int, offset: int, deleted: bool, as_json: bool) -> None:
    """The sessions, the latest first."""
    with _store() as store:
        found = store.recent(limit, offset, deleted=deleted)
        if as_json:
            _write_json([_as_object(each) for each in found])
        for each in [] if as_json else found:
            click.echo(_line(each))
        rest = store.count(deleted=deleted) - offset - len(found)
        if rest > 0 and not as_json:
            click.echo(ngettext("{n} more", "{n} more", rest).format(n=rest), err=True)


@sessions.command()
@click.argument("query", nargs=-1, required=True)
@click.option("-n", "--limit", type=click.IntRange(1), default=20, show_default=True, metavar="N")
@click.option("--json", "as_json", is_flag=True, help="An array of objects.")
def search(query: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Sessions with all words of QUERY in one message, or in the title.

    A word may be the beginning of a longer one. Exits with 1 where nothing was found.
    """
    with _store() as store:
        hits = store.search(" ".join(query), limit)
    if as_json:
        _write_json(
            [
                _as_object(hit.session)
                | {"turn": hit.turn, "snippet": hit.snippet.text, "marks": hit.snippet.marks}
                for hit in hits
            ]
        )
    for hit in [] if as_json else hits:
        click.echo(_line(hit.session))
        if hit.turn:
            click.echo(f"          {plain(hit.snippet.text)}")
    if not hits:
        sys.exit(1)


@sessions.command()
@click.argument("id", default="last")
@click.option("--json", "as_json", is_flag=True, help="Everything, all branches too.")
def show(id: str, as_json: bool) -> None:
    """A session as Markdown."""
    click.echo(_exported(id, kind="json" if as_json else "md"), nl=False)


@sessions.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--all", "everything", is_flag=True, help="Every session that is not in the trash.")
@click.option("--format", "kind", type=click.Choice(FORMATS), help="Else by the file's name.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A file instead of stdout.")
def export(ids: tuple[str, ...], everything: bool, kind: str | None, output: Path | None) -> None:
    """Sessions as Markdown, as one HTML page, or as JSON, which `import` reads."""
    from app.core.output import write
    from engine_bridge.errors import UsageError

    by_name = {".html": "html", ".htm": "html", ".json": "json"}
    kind = kind or by_name.get(output.suffix.lower() if output else "", "md")
    if everything:
        with _store() as store:
            ids = tuple(each.key for each in store.recent(sys.maxsize))
    if kind == "html" and len(ids) > 1:
        raise UsageError(_("One HTML page holds one session."), _("Export them one by one."))
    text = _exported(*(ids or ("last",)), kind=kind)
    if output is None:
        click.echo(text, nl=False)
        return
    write(output, text)


@sessions.command("import")
@click.argument(
    "paths", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path)
)
@click.option("--json", "as_json", is_flag=True, help="An array of the new ids.")
def import_(paths: tuple[Path, ...], as_json: bool) -> None:
    """Sessions from JSON of `export`, or from a ChatGPT export (conversations.json, or its ZIP).

    All are taken, as new sessions, or where anything is wrong none.
    """
    from app.core.sessions.importing import read
    from engine_bridge.errors import UsageError

    incoming = []
    for path in paths:
        found = read(path)
        if not found:
            raise UsageError(
                _("There is no session in {path}.").format(path=path),
                _("Nothing was imported; export it again."),
            )
        incoming += found
    with _store() as store:
        keys = store.put(incoming)
    if as_json:
        _write_json(keys)
    else:
        click.echo(
            ngettext("{n} session imported", "{n} sessions imported", len(keys)).format(n=len(keys))
        )


@sessions.command()
@click.argument("id")
@click.argument("title")
def rename(id: str, title: str) -> None:
    """Give a session another title."""
    with _store() as store:
        store.rename(_find(store, id).key, title)


@sessions.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--now", is_flag=True, help="For good, with all else that is in the trash.")
def delete(ids: tuple[str, ...], now: bool) -> None:
    """Move sessions to the trash, from where `restore` brings them back for 30 days."""
    from app.core.sessions.store import TRASH_DAYS

    with _store() as store:
        for each in [_find(store, id) for id in ids]:
            store.delete(each.key)
            if not now:
                click.echo(
                    _(
                        "{key} is in the trash for {n} days: ling-chat sessions restore {key}"
                    ).format(key=each.key, n=TRASH_DAYS),
                    err=True,
                )
        if now:
            store.purge(older_than_days=0)


@sessions.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
def restore(ids: tuple[str, ...]) -> None:
    """Bring sessions back from the trash."""
    with _store() as store:
        for each in [_find(store, id) for id in ids]:
            store.restore(each.key)


@contextmanager
def _store() -> "Iterator[SessionStore]":
    from app.core.sessions.store import SessionStore

    store = SessionStore.open()
    if store.notice:
        click.echo(f"ling-chat: {plain(store.notice)}", err=True)
    try:
        yield store
    finally:
        store.close()


def _find(store: "SessionStore", id: str) -> "SessionInfo":
    from engine_bridge.errors import UsageError

    if id != "last":
        return store.find(id)
    if found := store.recent(1):
        return found[0]
    raise UsageError(_("There is no session yet."), _('Begin one: ling-chat ask --save "Hello"'))


def _exported(*ids: str, kind: str) -> str:
    import json

    from app.core.sessions import exchange, export

    with _store() as store:
        infos = [_find(store, id) for id in ids]
        found = [(info, store.load(info.key), store.documents(info.key)) for info in infos]
    if kind == "json":
        return json.dumps(exchange.to_json(found), ensure_ascii=False, indent=1) + "\n"
    write = export.to_html if kind == "html" else export.to_markdown
    return "\n".join(write(*each) for each in found)


def _line(info: "SessionInfo") -> str:
    import time

    changed = time.strftime("%Y-%m-%d %H:%M", time.localtime(info.changed))
    return f"{info.key}  {changed}  {info.messages:>4}  {plain(info.title)}"


def _as_object(info: "SessionInfo") -> dict[str, object]:
    from dataclasses import asdict

    found = asdict(info)
    return {"id": found.pop("key"), **found}


def _write_json(found: object) -> None:
    import json

    click.echo(json.dumps(found, ensure_ascii=False))
