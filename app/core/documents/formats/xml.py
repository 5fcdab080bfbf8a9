"""XML parts of documents: parsed without entities, files or networks, looked at by local name."""

from collections.abc import Iterator
from typing import Any


def parse(data: bytes, recover: bool = False) -> Any:
    """The root element. Raises lxml's XMLSyntaxError, also for nesting over 256.

    `recover` makes the best of what is no proper XML.
    """
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, remove_comments=True, recover=recover
    )
    return etree.fromstring(data, parser)


def children(element: Any, name: str = "*") -> Iterator[Any]:
    """The child elements, or those of a local name; none of None."""
    return iter(()) if element is None else element.iterchildren(f"{{*}}{name}")


def attribute(element: Any, name: str) -> str:
    """An attribute by its local name; empty where there is none, and of None."""
    if element is None:
        return ""
    for key, value in element.attrib.items():
        if key.rpartition("}")[2] == name:
            return str(value)
    return ""
