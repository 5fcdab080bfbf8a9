"""Is this a whole GGUF file? Decided from its header, before an engine is started on it.

Layout: the GGUF specification in ggml's docs/gguf.md (magic, version, tensor count, key/value
count, key/values, tensor infos, padding, tensor data).
"""

import math
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MOST_TENSORS = 1 << 20
MOST_KEYS = 1 << 16
MOST_ITEMS = 1 << 24
"""Of an array of strings or arrays. Bounds the time that a damaged header can cost."""
MOST_DIMENSIONS = 8
STRING, ARRAY = 8, 9
SCALAR_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
DEFAULT_ALIGNMENT = 32


class NotAModelError(Exception):
    """Why a file is no usable GGUF, as the end of a sentence that begins with its name."""


@dataclass(frozen=True, slots=True)
class Header:
    version: int
    tensors: int
    keys: int
    needed_bytes: int
    """Where the last tensor ends: a smaller file is cut short."""


class _Reader:
    def __init__(self, data: mmap.mmap) -> None:
        self.data, self.at = data, 0

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize(form)
        return int(value)

    def skip(self, count: int) -> None:
        self.at += count
        if self.at > len(self.data):
            raise struct.error

    def string(self) -> bytes:
        length = self.number("Q")
        start = self.at
        self.skip(length)
        return self.data[start : self.at]

    def value(self, kind: int) -> None:
        """Pass over one value of a key."""
        if kind == STRING:
            self.string()
        elif kind == ARRAY:
            inner, count = self.number("I"), self.number("Q")
            if inner in SCALAR_BYTES:
                self.skip(SCALAR_BYTES[inner] * count)
            elif count > MOST_ITEMS:
                raise NotAModelError("has a damaged header")
            else:
                for _ in range(count):
                    self.value(inner)
        elif kind in SCALAR_BYTES:
            self.skip(SCALAR_BYTES[kind])
        else:
            raise NotAModelError(f"has a header with the unknown value type {kind}")


def read_header(path: Path) -> Header:
    """The header of a GGUF file, checked against the file's length.

    Raises NotAModelError, and OSError when the file cannot be read.
    """
    size = path.stat().st_size
    if size < len(MAGIC):
        raise NotAModelError("is empty" if size == 0 else "is cut short")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[: len(MAGIC)] != MAGIC:
            raise NotAModelError("is not a GGUF file")
        try:
            header = _parse(_Reader(data))
        except (struct.error, RecursionError) as error:
            raise NotAModelError("is cut short in its header") from error
    if header.needed_bytes > size:
        missing = header.needed_bytes - size
        raise NotAModelError(
            f"is cut short: {missing:,} of {header.needed_bytes:,} bytes are missing"
        )
    return header


def _parse(reader: _Reader) -> Header:
    reader.skip(len(MAGIC))
    version = reader.number("I")
    if version not in VERSIONS:
        raise NotAModelError(f"has the GGUF version {version}, which is not known here")
    tensors, keys = reader.number("Q"), reader.number("Q")
    if not 0 < tensors <= MOST_TENSORS or keys > MOST_KEYS:
        raise NotAModelError("has a damaged header")
    alignment = DEFAULT_ALIGNMENT
    for _ in range(keys):
        name, kind = reader.string(), reader.number("I")
        start = reader.at
        reader.value(kind)
        if name == b"general.alignment" and kind == 4:
            (alignment,) = struct.unpack_from("<I", reader.data, start)
    end = max(_tensor_end(reader) for _ in range(tensors))
    data_start = math.ceil(reader.at / max(1, alignment)) * max(1, alignment)
    return Header(version, tensors, keys, data_start + end)


def _tensor_end(reader: _Reader) -> int:
    """Where a tensor ends, in bytes from the start of the tensor data. A type that the `gguf`
    package does not know yet counts as empty: its file may be newer than we are."""
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

    reader.string()
    dimensions = reader.number("I")
    if dimensions > MOST_DIMENSIONS:
        raise NotAModelError("has a damaged header")
    elements = math.prod(reader.number("Q") for _ in range(dimensions))
    kind, offset = reader.number("I"), reader.number("Q")
    try:
        block, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
    except (ValueError, KeyError):
        return offset
    return offset + elements // block * block_bytes
