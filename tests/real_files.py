"""A real file of every format, written by the libraries that people's programs are like.

Each says FACT and CHINESE, so that a test can look for them in whatever comes out.
"""

import email.message
import io
import json
import mailbox
import zipfile
from pathlib import Path

FACT = "The lease of Hazel House was signed on 14 March 2031."
CHINESE = "合同第七条：租金每月九百元。"
ROWS = [["clause", "rent"], ["7.2", "900"], ["7.3", "950"]]
HTML = (
    f"<html><head><title>Page</title><style>p {{color: red}}</style></head><body>"
    f"<nav><a href='/'>Menu</a></nav><h1>Lease</h1><p>{FACT}</p><p>{CHINESE}</p>"
    "<table><tr><th>clause</th><th>rent</th></tr><tr><td>7.2</td><td>900</td></tr></table>"
    "<script>alert('no')</script></body></html>"
)


def pdf(path: Path, pages: int = 3, password: str = "", scanned: tuple[int, ...] = ()) -> Path:
    """Page n says "Page n"; those in `scanned` (from 1) are a picture and nothing else."""
    from reportlab.lib.pdfencrypt import StandardEncryption
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.cidfonts import UnicodeCIDFont
    from reportlab.pdfgen.canvas import Canvas

    pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))
    encrypt = StandardEncryption(password, canPrint=0) if password else None
    canvas = Canvas(str(path), encrypt=encrypt)
    for number in range(1, pages + 1):
        if number in scanned:
            _picture_of(canvas, f"Page {number}. {FACT}")
        else:
            canvas.setFont("Helvetica", 12)
            canvas.drawString(72, 720, f"Page {number}. {FACT}")
            canvas.setFont("STSong-Light", 12)
            canvas.drawString(72, 700, CHINESE)
        canvas.showPage()
    canvas.save()
    return path


def _picture_of(canvas: object, text: str) -> None:
    from PIL import Image, ImageDraw, ImageFont
    from reportlab.lib.utils import ImageReader

    picture = Image.new("L", (1240, 1754), 255)
    ImageDraw.Draw(picture).text((100, 200), text, fill=0, font=ImageFont.load_default(36))
    canvas.drawImage(ImageReader(picture), 0, 0, 595, 842)  # type: ignore[attr-defined]


def docx(path: Path) -> Path:
    import docx

    document = docx.Document()
    document.add_heading("Lease", 1)
    document.add_paragraph(FACT)
    document.add_paragraph(CHINESE)
    document.add_paragraph("first point", style="List Bullet")
    table = document.add_table(0, 2)
    for row in ROWS:
        for shown, text in zip(table.add_row().cells, row, strict=True):
            shown.text = text
    document.save(str(path))
    return path


def pptx(path: Path) -> Path:
    from pptx import Presentation
    from pptx.util import Inches

    show = Presentation()
    for number in (1, 2):
        slide = show.slides.add_slide(show.slide_layouts[1])
        slide.shapes.title.text = f"Slide {number}"
        slide.placeholders[1].text = f"{FACT}\n{CHINESE}"
    slide.notes_slide.notes_text_frame.text = "say it slowly"
    table = slide.shapes.add_table(3, 2, Inches(1), Inches(4), Inches(4), Inches(1)).table
    for r, row in enumerate(ROWS):
        for c, text in enumerate(row):
            table.cell(r, c).text = text
    show.save(str(path))
    return path


def xlsx(path: Path) -> Path:
    import datetime

    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Rents"
    for row in ROWS:
        sheet.append(row)
    sheet.append([7.4, 1000, datetime.date(2031, 3, 14)])
    second = book.create_sheet("记录")
    second.append([FACT, CHINESE])
    book.save(path)
    return path


def odt(path: Path) -> Path:
    import odfdo

    document = odfdo.Document("text")
    document.body.clear()
    document.body.append(odfdo.Header(1, "Lease"))
    document.body.append(odfdo.Paragraph(FACT))
    document.body.append(odfdo.Paragraph(CHINESE))
    document.body.append(_odf_table())
    document.save(path)
    return path


def ods(path: Path) -> Path:
    import odfdo

    document = odfdo.Document("spreadsheet")
    document.body.clear()
    table = _odf_table()
    table.set_value("A5", FACT)
    table.set_value("B5", CHINESE)
    document.body.append(table)
    document.save(path)
    return path


def odp(path: Path) -> Path:
    import odfdo

    document = odfdo.Document("presentation")
    document.body.clear()
    for number in (1, 2):
        page = odfdo.DrawPage(f"page{number}", name=f"Slide {number}")
        frame = odfdo.Frame.text_frame(
            [f"Slide {number}", FACT, CHINESE], size=("7cm", "5cm"), position=("1cm", "1cm")
        )
        page.append(frame)
        document.body.append(page)
    document.save(path)
    return path


def _odf_table() -> object:
    import odfdo

    table = odfdo.Table("Rents", width=2, height=len(ROWS))
    for r, row in enumerate(ROWS):
        for c, text in enumerate(row):
            table.set_value((c, r), text)
    return table


def epub(path: Path, chapters: int = 2) -> Path:
    items = "".join(
        f'<item id="c{n}" href="text/c%20{n}.xhtml" media-type="application/xhtml+xml"/>'
        for n in range(1, chapters + 1)
    )
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(chapters, 0, -1))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        book.writestr(
            "META-INF/container.xml",
            '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
            '<rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
        )
        book.writestr(
            "OEBPS/book.opf",
            '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf">'
            f"<manifest>{items}</manifest><spine>{spine}</spine></package>",
        )
        for n in range(1, chapters + 1):
            book.writestr(
                f"OEBPS/text/c {n}.xhtml",
                '<?xml version="1.0" encoding="utf-8"?>'
                f'<html xmlns="http://www.w3.org/1999/xhtml"><body><h1>Chapter {n}</h1>'
                f"<p>{FACT}</p><p>{CHINESE}</p></body></html>",
            )
    return path


def html(path: Path) -> Path:
    path.write_text(HTML, encoding="utf-8")
    return path


def _mail(subject: str) -> email.message.EmailMessage:
    message = email.message.EmailMessage()
    message["From"] = "Ada <ada@example.org>"
    message["To"] = "bob@example.org"
    message["Subject"] = subject
    message["Date"] = "Fri, 14 Mar 2031 10:00:00 +0100"
    message.set_content(f"{FACT}\n{CHINESE}\n")
    message.add_alternative(HTML, subtype="html")
    message.add_attachment(b"\0\1", maintype="application", subtype="x", filename="plan.bin")
    return message


def eml(path: Path) -> Path:
    path.write_bytes(bytes(_mail("Mietvertrag für Hazel House")))
    return path


def mbox(path: Path) -> Path:
    box = mailbox.mbox(path)
    for number in (1, 2):
        box.add(_mail(f"Letter {number}"))
    box.close()
    return path


def ipynb(path: Path) -> Path:
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Lease\n", FACT]},
        {
            "cell_type": "code",
            "metadata": {},
            "execution_count": 1,
            "source": f"print('{CHINESE}')",
            "outputs": [
                {"output_type": "stream", "name": "stdout", "text": [CHINESE, "\n"]},
                {"output_type": "display_data", "metadata": {}, "data": {"image/png": "AAAA"}},
                {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": []},
            ],
        },
    ]
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}), encoding="utf-8")
    return path


def srt(path: Path) -> Path:
    path.write_text(
        f"1\n00:00:01,000 --> 00:00:04,000\n<i>{FACT}</i>\n\n"
        f"2\n00:01:05,500 --> 00:01:07,000\n{CHINESE}\n",
        encoding="utf-8",
    )
    return path


def vtt(path: Path) -> Path:
    path.write_text(
        f"WEBVTT\n\n00:00:01.000 --> 00:00:04.000\n{FACT}\n\n"
        f"00:01:05.500 --> 00:01:07.000\n{CHINESE}\n",
        encoding="utf-8",
    )
    return path


def ass(path: Path) -> Path:
    import pysubs2

    subtitles = pysubs2.SSAFile()
    subtitles.append(pysubs2.SSAEvent(1000, 4000, "{\\b1}" + FACT))
    subtitles.append(pysubs2.SSAEvent(65_500, 67_000, CHINESE))
    subtitles.save(str(path))
    return path


def rtf(path: Path) -> Path:
    coded = "".join(f"\\u{ord(letter)}?" for letter in CHINESE)
    path.write_text(f"{{\\rtf1\\ansi {{\\b Lease}}\\par {FACT}\\par {coded}\\par}}", "ascii")
    return path


def csv(path: Path) -> Path:
    path.write_text("\n".join(",".join(row) for row in [*ROWS, [FACT, CHINESE]]), encoding="utf-8")
    return path


def jsonl(path: Path) -> Path:
    lines = [json.dumps({"fact": text}, ensure_ascii=False) for text in (FACT, CHINESE)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def md(path: Path) -> Path:
    path.write_text(f"# Lease\n\n{FACT}\n\n{CHINESE}\n", encoding="utf-8")
    return path


PARSED = [pdf, docx, pptx, xlsx, odt, ods, odp, epub, html, eml, mbox, ipynb, srt, vtt, ass, rtf]
DECODED = [csv, jsonl, md]


def make(maker: object, folder: Path) -> Path:
    """The file of a format, in a folder."""
    name = maker.__name__  # type: ignore[attr-defined]
    return maker(folder / f"lease.{name}")  # type: ignore[operator]


def rezip(source: Path, target: Path, change: dict[str, bytes]) -> Path:
    """A copy of an archive with some of its files changed or added."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            new.writestr(entry.filename, change.get(entry.filename, old.read(entry)))
        for name in change.keys() - set(old.namelist()):
            new.writestr(name, change[name])
    return target


def zip_bomb(megabytes: int) -> bytes:
    """An archive of a thousandth of the size it unpacks to."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive,
        archive.open("word/document.xml", "w", force_zip64=True) as file,
    ):
        for _ in range(megabytes):
            file.write(bytes(1 << 20))
    return buffer.getvalue()
