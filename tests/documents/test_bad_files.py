"""Hostile and damaged files: one sentence with a cure each, and a reader that lives on."""

import asyncio
import contextlib
import io
import json
import os
import random
import signal
import struct
import subprocess
import time
import zipfile
from pathlib import Path

import psutil
import pytest
import real_files as real

from app.core.documents import Document, document_from_bytes, extract, read, read_document
from app.core.documents.formats import kinds
from app.core.documents.reader import Reader
from engine_bridge.errors import BridgeError, UsageError


@pytest.fixture(scope="module")
def reader():
    with Reader(stall_s=20) as shared:
        yield shared


def refused(reader: Reader, path: Path, match: str) -> BridgeError:
    with pytest.raises(BridgeError, match=match) as told:
        read_document(path, reader=reader)
    assert told.value.cure
    assert told.value.reason.count(". ") == 0  # one sentence
    return told.value


@pytest.mark.parametrize("maker", [real.pdf, real.docx, real.xlsx, real.odt, real.epub, real.pptx])
def test_half_a_file_and_an_empty_one(maker, tmp_path, reader):
    path = real.make(maker, tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    refused(reader, path, f"^lease.{maker.__name__} ")
    path.write_bytes(b"")
    refused(reader, path, "is empty")


def test_a_pipe_without_and_with_a_writer(tmp_path, reader, monkeypatch):
    monkeypatch.setattr(read, "PIPE_PATIENCE_S", 0.2)
    os.mkfifo(tmp_path / "pipe.txt")
    refused(reader, tmp_path / "pipe.txt", "Nobody writes to the pipe")

    with subprocess.Popen(["sh", "-c", f"exec >{tmp_path}/pipe.txt; sleep 0.5; echo late"]):
        assert read_document(tmp_path / "pipe.txt", reader=reader).text == "late\n"


def test_a_terminal_is_not_read(reader):
    ours, theirs = os.openpty()
    try:
        os.write(ours, b"typed for somebody else\n")
        refused(reader, Path(os.ttyname(theirs)), "is a terminal")
        assert os.read(theirs, 100) == b"typed for somebody else\n"
    finally:
        os.close(ours)
        os.close(theirs)


def test_waiting_for_a_pipe_can_be_cancelled(tmp_path):
    os.mkfifo(tmp_path / "pipe.txt")

    async def give_up() -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(extract(tmp_path / "pipe.txt"), 0.3)

    began = time.monotonic()
    asyncio.run(give_up())
    assert time.monotonic() - began < read.PIPE_PATIENCE_S - 1


def test_encrypted_files(tmp_path, reader):
    refused(reader, real.pdf(tmp_path / "a.pdf", password="secret"), "a.pdf is encrypted")
    odt = real.rezip(
        real.make(real.odt, tmp_path),
        tmp_path / "b.odt",
        {"META-INF/manifest.xml": b"<manifest:file-entry><manifest:encryption-data/>"},
    )
    refused(reader, odt, "b.odt is encrypted")
    docx = bytearray(real.make(real.docx, tmp_path).read_bytes())
    at = docx.index(b"PK\x01\x02")
    docx[at + 8] |= 1  # what a ZIP program writes for an entry with a password
    (tmp_path / "c.docx").write_bytes(docx)
    refused(reader, tmp_path / "c.docx", "c.docx is encrypted")
    (tmp_path / "d.docx").write_bytes(compound_file("EncryptedPackage"))
    refused(reader, tmp_path / "d.docx", "d.docx is encrypted")
    (tmp_path / "e.doc").write_bytes(compound_file("WordDocument"))
    refused(reader, tmp_path / "e.doc", "e.doc is an old Office file")


def compound_file(stream: str) -> bytes:
    """The smallest file of the old Office format with one stream, written by hand."""
    free, end, fat = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)
    head += struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6) + bytes(6)
    head += struct.pack("<IIIIIIIII", 0, 1, 1, 0, 4096, end, 0, end, 0)
    head += struct.pack("<109I", 0, *[free] * 108)
    table = struct.pack("<128I", fat, end, end, *[free] * 125)

    def entry(name: str, kind: int, child: int, start: int, size: int) -> bytes:
        coded = name.encode("utf-16-le") + b"\0\0"
        return (
            coded.ljust(64, b"\0")
            + struct.pack("<HBBIII", len(coded), kind, 1, free, free, child)
            + bytes(36)
            + struct.pack("<IQ", start, size)
        )

    folder = entry("Root Entry", 5, 1, end, 0) + entry(stream, 2, free, 2, 4096) + bytes(256)
    return head + table + folder + bytes(512)


def test_archives_that_are_bombs_or_no_documents(tmp_path, reader):
    bomb = tmp_path / "bomb.docx"
    bomb.write_bytes(real.zip_bomb(520))
    assert bomb.stat().st_size < 1_000_000
    refused(reader, bomb, "would unpack to 520 MB in 1 files")
    with zipfile.ZipFile(tmp_path / "many.docx", "w") as archive:
        for number in range(kinds.MAX_ENTRIES + 1):
            archive.writestr(f"{number}", "")
    refused(reader, tmp_path / "many.docx", "in 20,001 files")
    with zipfile.ZipFile(tmp_path / "things.zip", "w") as archive:
        archive.writestr("a.txt", "text")
    assert "Unpack" in refused(reader, tmp_path / "things.zip", "is an archive").cure


def test_a_size_that_lies_unpacks_no_further(tmp_path, reader):
    """An entry that says it is 10 bytes and holds 50 MB."""
    data = bytearray(real.zip_bomb(50))
    for mark, offset in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        at = data.rindex(mark)
        data[at + offset : at + offset + 4] = struct.pack("<I", 10)
    (tmp_path / "liar.docx").write_bytes(data)
    refused(reader, tmp_path / "liar.docx", "^liar.docx ")


def test_a_sheet_of_too_many_cells_takes_no_more_than_its_memory(tmp_path, reader):
    """Two cells in opposite corners: 17 billion between them."""
    import openpyxl

    book = openpyxl.Workbook()
    book.active["A1"], book.active["XFD1048576"] = "a", "b"
    book.save(tmp_path / "wide.xlsx")
    refused(reader, tmp_path / "wide.xlsx", "wide.xlsx .*(memory|crash|damaged)")
    assert real.FACT in read_document(real.make(real.pdf, tmp_path), reader=reader).text


def test_text_nested_without_end(tmp_path, reader):
    deep = tmp_path / "deep.html"
    deep.write_text("<div>" * 200_000 + "treasure")
    refused(reader, deep, "^deep.html is nested too deeply")
    deep.write_text("<p>A beginning.</p>" + "<div>" * 200_000 + "treasure")
    document = read_document(deep, reader=reader)
    assert document.text == "A beginning.\n"
    assert "nested too deeply" in document.note
    book = tmp_path / "deep.ipynb"
    book.write_text("[" * 200_000)
    refused(reader, book, "nested too deeply|damaged")
    xml = b"<w:document>" + b"<w:p>" * 100_000
    docx = real.make(real.docx, tmp_path)
    refused(
        reader,
        real.rezip(docx, tmp_path / "deep.docx", {"word/document.xml": xml}),
        "^deep.docx ",
    )


def test_entities_that_grow_without_end(tmp_path, reader):
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    xml = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY l0 "ha">{laughs}]><x>&l9;</x>'
    for maker, part in ((real.docx, "word/document.xml"), (real.epub, "META-INF/container.xml")):
        source = real.make(maker, tmp_path)
        target = tmp_path / f"laughs.{maker.__name__}"
        refused(reader, real.rezip(source, target, {part: xml.encode()}), "^laughs")


def test_a_file_that_names_another_shows_nothing_of_it(tmp_path, reader):
    secret = tmp_path / "secret.txt"
    secret.write_text("the password is swordfish")
    xml = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY s SYSTEM "file://{secret}">]>'
    page = f"{xml}<html xmlns='http://www.w3.org/1999/xhtml'><body><p>a&s;b</p></body></html>"
    book = real.rezip(
        real.make(real.epub, tmp_path), tmp_path / "x.epub", {"OEBPS/text/c 1.xhtml": page.encode()}
    )
    assert "swordfish" not in read_document(book, reader=reader).text


def test_wrong_names(tmp_path, reader):
    """What a file is decides; its name only where many look alike."""
    (tmp_path / "a.pdf").write_text("plain text")
    assert read_document(tmp_path / "a.pdf", reader=reader).text == "plain text"
    (tmp_path / "b.docx").write_bytes(real.make(real.pdf, tmp_path).read_bytes())
    assert read_document(tmp_path / "b.docx", reader=reader).kind == "pdf"
    (tmp_path / "c.ipynb").write_text("no json")
    refused(reader, tmp_path / "c.ipynb", "c.ipynb is damaged or not what its name says")


def test_a_huge_file_is_refused_before_it_is_read(tmp_path, reader):
    with open(tmp_path / "huge.pdf", "wb") as file:
        file.write(b"%PDF-1.7")
        file.truncate(513 * 1024 * 1024)
    refused(reader, tmp_path / "huge.pdf", "larger than 512 MB")


# The worker process itself


def endless(tmp_path: Path) -> Path:
    """A PDF long enough to be stopped in."""
    return real.pdf(tmp_path / "long.pdf", pages=3_000)


def test_a_worker_that_is_killed_costs_one_sentence_and_the_next_file_is_read(tmp_path):
    with Reader() as reader:
        read_document(real.make(real.md, tmp_path), reader=reader)
        assert reader.pid is None  # plain text needs no worker
        read_document(real.make(real.srt, tmp_path), reader=reader)
        first = psutil.Process(reader.pid)
        first.kill()
        first.wait()
        assert real.FACT in read_document(real.make(real.pdf, tmp_path), reader=reader).text
        first = psutil.Process(reader.pid)

        def crash(_progress):
            first.send_signal(signal.SIGSEGV)

        with pytest.raises(BridgeError, match="made its reader crash"):
            reader.read(endless(tmp_path), "long.pdf", crash)
        assert real.FACT in read_document(tmp_path / "lease.pdf", reader=reader).text
        last = psutil.Process(reader.pid)
    assert not last.is_running()


def test_a_worker_that_hangs_is_given_up(tmp_path):
    with Reader(stall_s=0.5) as reader:
        read = []

        def stop(progress):
            if not read:
                psutil.Process(reader.pid).suspend()
            read.append(progress)

        reader._stall_s = 20
        read_document(real.make(real.srt, tmp_path), reader=reader)
        reader._stall_s = 0.5
        with pytest.raises(BridgeError, match=r"given up after 0\.5 s without an answer"):
            reader.read(endless(tmp_path), "long.pdf", stop)
        assert reader.pid is None


async def test_cancelling_ends_the_process_at_once(tmp_path):
    before = set(psutil.Process().children(recursive=True))
    told = asyncio.Event()
    task = asyncio.create_task(extract(endless(tmp_path), lambda _: told.set()))
    await asyncio.wait_for(told.wait(), 20)
    task.cancel()
    began = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - began < 5
    assert set(psutil.Process().children(recursive=True)) <= before


def test_a_worker_ends_with_who_started_it(tmp_path):
    import subprocess
    import sys

    code = (
        "import sys, time; from pathlib import Path\n"
        "from app.core.documents.reader import Reader\n"
        "r = Reader(); r.read(Path(sys.argv[1]), 'a.srt'); print(r.pid, flush=True); time.sleep(60)"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", code, str(real.make(real.srt, tmp_path))],
        stdout=subprocess.PIPE,
        text=True,
    )
    worker = psutil.Process(int(owner.stdout.readline()))
    owner.kill()
    owner.wait()
    owner.stdout.close()
    with contextlib.suppress(psutil.NoSuchProcess):
        worker.wait(10)
    assert not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE


# Fuzz


def mutations(data: bytes, seed: int):
    """Truncated, with flipped bits, with pieces doubled, removed, and filled with rubbish."""
    chance = random.Random(seed)
    size = len(data)
    for _ in range(4):
        yield data[: chance.randrange(size)]
        flipped = bytearray(data)
        for _ in range(chance.choice((1, 8, 64))):
            flipped[chance.randrange(size)] ^= 1 << chance.randrange(8)
        yield bytes(flipped)
        start = chance.randrange(size)
        end = min(size, start + chance.randrange(1, 400))
        yield data[:start] + data[end:]
        yield data[:end] + data[start:]
        yield data[:start] + chance.randbytes(end - start) + data[end:]


def inner_mutations(data: bytes, seed: int):
    """The same inside the biggest parts of an archive, which a damaged archive hides."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    xml = [name for name in parts if name.endswith(("xml", "opf", "rels")) and parts[name]]
    chosen = random.Random(seed).sample(sorted(xml), min(3, len(xml)))
    for name in chosen:
        for changed in list(mutations(parts[name], seed))[:7]:
            buffer = io.BytesIO()
            with zipfile.ZipFile(buffer, "w") as archive:
                for other, content in parts.items():
                    archive.writestr(other, changed if other == name else content)
            yield buffer.getvalue()


def outcome(data: bytes, title: str, reader: Reader) -> str:
    """What the user sees: a document's text, or the sentence that refuses it."""
    try:
        document = document_from_bytes(data, title, reader=reader)
    except BridgeError as told:
        return f"{told.reason} {told.cure}"
    assert isinstance(document, Document)
    assert list(document.pages) == sorted(document.pages)
    assert all(0 <= at <= len(document.text) for at in document.pages)
    json.dumps(document.text).encode()
    return document.text + document.note


@pytest.mark.parametrize("maker", real.PARSED, ids=lambda maker: maker.__name__)
def test_no_damage_does_more_than_a_sentence(maker, tmp_path, reader):
    data = real.make(maker, tmp_path).read_bytes()
    damaged = list(mutations(data, 31))
    if data.startswith(b"PK"):
        damaged += inner_mutations(data, 31)
    for changed in damaged:
        text = outcome(changed, f"f.{maker.__name__}", reader)
        assert not set(text) & {chr(n) for n in (*range(9), *range(11, 32), *range(127, 160))}
    workers = [each for each in psutil.Process().children(recursive=True) if is_worker(each)]
    assert len(workers) <= 1


def is_worker(process: psutil.Process) -> bool:
    return "app.core.documents.worker" in process.cmdline()


def test_usage_errors_stay_usage_errors(tmp_path, reader):
    with pytest.raises(UsageError):
        read_document(real.pdf(tmp_path / "p.pdf", password="x"), reader=reader)
    (tmp_path / "half.pdf").write_bytes(b"%PDF-1.7\n")
    with pytest.raises(BridgeError) as told:
        read_document(tmp_path / "half.pdf", reader=reader)
    assert told.value.exit_code == 1
