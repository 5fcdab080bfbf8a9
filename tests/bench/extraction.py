"""Reading documents: against the bare library on the same file, and how time grows with size.

Run by hand: `python tests/bench/extraction.py`. Ratios are of times in one run, best of three.
"""

import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from app.core.chat.prompt import documents_prompt
from app.core.citations import check_answer
from app.core.documents import Document, document_from_bytes, extract, read_document
from app.core.documents.reader import Reader
from app.core.quotes import _searchable

WORDS = [
    "lease",
    "house",
    "tenant",
    "signed",
    "rent",
    "clause",
    "month",
    "garden",
    "roof",
    "stairs",
    "water",
    "letter",
]


def best(work: Callable[[], object], times: int = 3) -> float:
    """Seconds of the fastest of some runs."""
    spent = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        spent.append(time.perf_counter() - began)
    return min(spent)


def paragraph(chance: random.Random) -> str:
    return " ".join(chance.choice(WORDS) + str(chance.randrange(99)) for _ in range(60))


def big_files(folder: Path) -> dict[str, Path]:
    """About 1 MB of text in each format."""
    import docx
    import openpyxl
    import real_files as real
    from pptx import Presentation
    from reportlab.pdfgen.canvas import Canvas

    chance = random.Random(7)
    paragraphs = [paragraph(chance) for _ in range(2_000)]
    canvas = Canvas(str(folder / "big.pdf"))
    for start in range(0, len(paragraphs), 5):
        for row, text in enumerate(paragraphs[start : start + 5]):
            for part in range(8):
                canvas.drawString(40, 800 - row * 100 - part * 12, text[part * 60 :][:60])
        canvas.showPage()
    canvas.save()
    letter = docx.Document()
    for number, text in enumerate(paragraphs):
        if number % 20 == 0:
            letter.add_heading(f"Section {number}", 2)
        letter.add_paragraph(text)
        if number % 40 == 0:
            table = letter.add_table(4, 4)
            for at, shown in enumerate(table._cells):
                shown.text = f"{number} and {at}"
    letter.save(str(folder / "big.docx"))
    show = Presentation()
    for start in range(0, len(paragraphs), 5):
        slide = show.slides.add_slide(show.slide_layouts[1])
        slide.placeholders[1].text = "\n".join(paragraphs[start : start + 5])
    show.save(str(folder / "big.pptx"))
    book = openpyxl.Workbook()
    for text in paragraphs:
        book.active.append(text.split())
    book.save(folder / "big.xlsx")
    body = "".join(f"<h2>Part</h2><p>{text}</p>" for text in paragraphs)
    (folder / "big.html").write_text(f"<html><body>{body}</body></html>")
    page = f"<html xmlns='http://www.w3.org/1999/xhtml'><body>{body}</body></html>"
    real.rezip(
        real.epub(folder / "small.epub"),
        folder / "big.epub",
        {"OEBPS/text/c 1.xhtml": page.encode()},
    )
    return {
        kind: folder / f"big.{kind}" for kind in ("pdf", "docx", "pptx", "xlsx", "html", "epub")
    }


def bare_pdf(path: Path) -> object:
    import pypdfium2

    return [page.get_textpage().get_text_range() for page in pypdfium2.PdfDocument(path)]


def bare_pypdf(path: Path) -> object:
    import pypdf

    return [page.extract_text() for page in pypdf.PdfReader(path).pages]


def bare_python_docx(path: Path) -> object:
    """Paragraphs and tables in their order, as its documentation does it."""
    import docx

    return [
        [[cell.text for cell in row.cells] for row in block.rows]
        if hasattr(block, "rows")
        else (block.style.name, block.text)
        for block in docx.Document(str(path)).iter_inner_content()
    ]


def bare_mammoth(path: Path) -> object:
    import mammoth

    with path.open("rb") as file:
        return mammoth.convert_to_html(file)


def bare_pptx(path: Path) -> object:
    from pptx import Presentation

    slides = Presentation(str(path)).slides
    return [shape.text_frame.text for slide in slides for shape in slide.shapes]


def bare_xlsx(path: Path) -> object:
    from python_calamine import CalamineWorkbook

    return CalamineWorkbook.from_path(str(path)).get_sheet_by_index(0).to_python()


def bare_openpyxl(path: Path) -> object:
    import openpyxl

    return list(openpyxl.load_workbook(path, read_only=True).active.values)


def bare_html(path: Path) -> object:
    import html_to_markdown

    return html_to_markdown.convert(path.read_text())


BARE = {
    "pdf": [("pypdfium2", bare_pdf), ("pypdf", bare_pypdf)],
    "docx": [("python-docx", bare_python_docx), ("mammoth", bare_mammoth)],
    "pptx": [("python-pptx", bare_pptx)],
    "xlsx": [("python-calamine", bare_xlsx), ("openpyxl", bare_openpyxl)],
    "html": [("html-to-markdown", bare_html)],
}


def against_libraries(folder: Path) -> None:
    print("format   ours, warm   with start   bare library (ratio ours/bare)")
    with Reader() as reader:
        for kind, path in big_files(folder).items():
            once = best(lambda path=path: read_document(path))
            warm = best(lambda path=path: read_document(path, reader=reader))
            others = []
            for name, bare in BARE.get(kind, []):
                if name in ("pypdf", "mammoth") and not _has(name):
                    continue
                seconds = best(lambda bare=bare, path=path: bare(path))
                others.append(f"{name} {seconds:.3f} s ({warm / seconds:.2f})")
            size = len(read_document(path, reader=reader).text) / 1e6
            print(
                f"{kind:6} {warm:8.3f} s {once:10.3f} s   {size:.2f} MB text   {'; '.join(others)}"
            )


def _has(module: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(module) is not None


def long_word_texts(folder: Path) -> None:
    """The same Word text 1, 3 and 10 times over."""
    import zipfile

    import real_files as real

    source = folder / "big.docx"
    with zipfile.ZipFile(source) as archive:
        xml = archive.read("word/document.xml")
    start, end = xml.index(b"<w:body>") + 8, xml.rindex(b"<w:sectPr")
    print("\nMB of text in a Word file   s per MB")
    with Reader() as reader:
        for times in (1, 3, 10):
            long = {"word/document.xml": xml[:start] + xml[start:end] * times + xml[end:]}
            path = real.rezip(source, folder / f"{times}.docx", long)
            size = len(read_document(path, reader=reader).text) / 1e6
            spent = best(lambda path=path: read_document(path, reader=reader), 2)
            print(f"{size:10.1f} {spent / size:20.3f}")


ANSWER = "It says “{true}” and “the landlord keeps a green parrot”. [big.txt l.400] > {true}\n" * 20


def curve() -> None:
    print("\nMB of text   decode+clean   prompt marks   quote index   20 quotes+cites  (ms per MB)")
    chance = random.Random(11)
    line = [paragraph(chance) for _ in range(4_000)]
    for megabytes in (0.5, 1, 2, 5, 10):
        data = "\n".join(chance.choice(line) for _ in range(int(megabytes * 2_080))).encode()
        size = len(data) / 1e6
        document = document_from_bytes(data, "big.txt")
        answer = ANSWER.format(true=" ".join(document.text[len(data) // 2 :].split()[1:12]))

        def index(document: Document = document) -> None:
            _searchable.cache_clear()
            _searchable(document)

        steps = (
            best(lambda data=data: document_from_bytes(data, "big.txt")),
            best(lambda document=document: documents_prompt([document])),
            best(index),
            best(lambda answer=answer, document=document: check_answer(answer, [document])),
        )
        print(f"{size:10.1f}" + "".join(f"{1000 * spent / size:15.2f}" for spent in steps))


async def loop_delay(folder: Path) -> None:
    """How long the event loop is kept waiting at most while 10 MB of text are read beside it."""
    print("\nlongest wait of the event loop while a document is read beside it")
    print(f"{'nothing':14} {1000 * await _worst(asyncio.sleep(1)):6.1f} ms (what else runs here)")
    chance = random.Random(5)
    line = [paragraph(chance) for _ in range(4_000)]
    for name, encoding in (("10 MB UTF-8", "utf-8"), ("10 MB GB18030", "gb18030")):
        text = "\n".join(chance.choice(line) + "合同第七条" for _ in range(20_500))
        (folder / "ten.txt").write_bytes(text.encode(encoding))
        worst = await _worst(extract(folder / "ten.txt"))
        print(f"{name:14} {1000 * worst:6.1f} ms")
    for kind in ("pdf", "docx"):
        print(f"big.{kind:10} {1000 * await _worst(extract(folder / f'big.{kind}')):6.1f} ms")


async def _worst(work: Coroutine[None, None, object]) -> float:
    task = asyncio.create_task(work)
    worst = 0.0
    while not task.done():
        began = time.perf_counter()
        await asyncio.sleep(0.001)
        worst = max(worst, time.perf_counter() - began - 0.001)
    await task
    return worst


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        against_libraries(Path(name))
        long_word_texts(Path(name))
        curve()
        asyncio.run(loop_delay(Path(name)))
