"""Text documents in the encodings that people have."""

import os
import threading

import pytest

from app.core.documents import document_from_bytes, read, read_document
from app.core.documents.formats.extracted import clean
from app.core.plain import HOLD
from engine_bridge.errors import BridgeError, UsageError

CHINESE = (
    "人工智能模型可以在本地运行，速度取决于内存带宽。这份文件讨论了缓存、预填充和解码的关系。" * 4
)
JAPANESE = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。" * 4
TRADITIONAL = "這份文件討論了快取、預填和解碼的關係，並且說明記憶體頻寬如何決定速度。" * 4
KOREAN = "이 문서는 캐시와 디코딩의 관계를 설명합니다. 메모리 대역폭이 속도를 결정합니다. " * 4
RUSSIAN = (
    "Этот документ описывает кэш, предзаполнение и декодирование. Скорость зависит от памяти. "
)
POLISH = "Zażółć gęślą jaźń. Dokument opisuje pamięć podręczną i przepustowość łącza. "
FRENCH = "Le château était fermé; l'été s'achève à la forêt où Noël approche. Déjà vu, garçon! " * 4


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Plain ASCII.", "utf-8"),
        (CHINESE, "utf-8"),
        (FRENCH, "utf-8-sig"),
        (FRENCH, "utf-16"),
        (CHINESE, "utf-16-le-bom"),
        (FRENCH, "utf-16-le"),
        (FRENCH, "utf-16-be"),
        (CHINESE, "utf-32"),
        (CHINESE, "gb18030"),
        (TRADITIONAL, "big5"),
        (JAPANESE, "shift_jis"),
        (FRENCH, "latin-1"),
        (FRENCH, "cp1252"),
        (KOREAN, "euc_kr"),
        (RUSSIAN, "cp1251"),
        (POLISH, "cp1250"),
        ("été", "latin-1"),
        ("合同第七条：租金每月九百元。", "gb18030"),
    ],
)
def test_text_is_read_in_its_encoding(text, encoding, tmp_path):
    mark = b"\xff\xfe" if encoding.endswith("-bom") else b""
    path = tmp_path / "file.txt"
    path.write_bytes(mark + text.encode(encoding.removesuffix("-bom")))
    document = read_document(path)
    assert document.text == text
    assert document.characters == len(text)
    assert document.title == "file.txt"


LEGACY = [
    (CHINESE, "gb18030"),
    (TRADITIONAL, "big5"),
    (JAPANESE, "shift_jis"),
    (KOREAN, "euc_kr"),
    (FRENCH, "cp1252"),
]


@pytest.mark.parametrize(("text", "encoding"), [*LEGACY, (JAPANESE, "euc_jp")])
def test_long_text_keeps_its_encoding_wherever_the_judged_part_ends(text, encoding):
    for before in ("", "x", "xx", "xxx"):
        long = before + text * 1_000
        document = document_from_bytes(long.encode(encoding), "long.txt")
        assert (document.encoding, document.text == long) == (encoding, True)


@pytest.mark.parametrize(("text", "encoding"), LEGACY)
def test_a_broken_letter_does_not_turn_a_text_into_another_encoding(text, encoding):
    data = f"{text}\n".encode(encoding) * 20
    for broken in (data[:-2], data[:501] + b"\xff" + data[502:]):
        assert document_from_bytes(broken, "broken.txt").encoding == encoding


def test_hash_is_of_the_bytes():
    assert document_from_bytes(b"abc", "a").sha256.startswith("ba7816bf8f01cfea")


def test_line_ends_are_unified_and_nul_bytes_of_utf16_text_do_not_survive():
    assert document_from_bytes(b"a\r\nb\rc\n", "x").text == "a\nb\nc\n"
    assert "\0" not in document_from_bytes("a\0b".encode("utf-16"), "x").text


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0", "an image"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "an image"),
        (b"GGUF\x03\0\0\0", "a model file"),
        (b"\x7fELF\x02\x01", "a program"),
        (bytes(range(256)) * 8, "a binary file"),
    ],
)
def test_binary_file_is_named_with_a_cure(data, kind, tmp_path):
    (tmp_path / "thing").write_bytes(data)
    with pytest.raises(UsageError, match=f"thing is .*{kind}.*cannot be read") as told:
        read_document(tmp_path / "thing")
    assert ("tesseract" if kind == "an image" else "plain text") in told.value.cure


def test_one_line_of_any_length_is_cleaned_in_pieces_and_no_sequence_is_cut(monkeypatch):
    pieces = []

    def noted(text):
        pieces.append(len(text))
        return clean(text)

    monkeypatch.setattr(read, "clean", noted)
    plain, piece = '{"rent": 900}, ', read._PIECE
    title = "\x1b]0;" + "owned " * 500 + "\x07"
    text = (plain * piece)[: piece - 20] + title + plain * (2 * piece // len(plain)) + "\r\n"
    document = document_from_bytes(text.encode(), "leases.json")
    assert document.text == text.replace(title, "").replace("\r\n", "\n")
    assert len(pieces) > 2
    assert max(pieces) <= piece + 2 * HOLD, "the screen waits for each of them"


@pytest.mark.parametrize("data", [b"", b" \n\t ", b"\xef\xbb\xbf", b"\xff\xfe"])
def test_empty_file_is_refused(data, tmp_path):
    (tmp_path / "empty.txt").write_bytes(data)
    with pytest.raises(UsageError, match=r"empty\.txt is empty"):
        read_document(tmp_path / "empty.txt")


def test_missing_file_and_impossible_name_are_told_apart(tmp_path):
    with pytest.raises(UsageError, match="There is no file"):
        read_document(tmp_path / "missing")
    with pytest.raises(BridgeError, match="cannot be read"):
        read_document("a\0b")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_unreadable_file_is_named(tmp_path):
    (tmp_path / "secret").write_text("x")
    (tmp_path / "secret").chmod(0)
    with pytest.raises(BridgeError, match="may not be read"):
        read_document(tmp_path / "secret")


def test_huge_file_is_refused_before_it_is_read(tmp_path):
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(65 * 1024 * 1024)
    with pytest.raises(UsageError, match="larger than 64 MB"):
        read_document(tmp_path / "huge")


def test_pipe_is_read_like_a_file(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_bytes, args=(b"from a pipe",))
    writer.start()
    assert read_document(fifo).text == "from a pipe"
    writer.join()


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs a file without an end")
def test_a_file_without_an_end_is_refused_before_it_fills_the_memory():
    with pytest.raises(UsageError, match="larger than 64 MB"):
        read_document("/dev/zero")
