"""Turn a PDF with text into a resume: a small analyzer to begin with (see docs/guides/analyzer.md).

It needs pypdf (`pip install pypdf`). It finds the name, the email address and the phone number, and keeps
the text of each section as it is. It understands nothing else: no dates, no employers, no scanned pages.

python3 analyzer.py FILE
"""

import json
import logging
import re
import sys
from typing import Any

try:
    import pypdf
except ImportError:
    sys.exit("The analyzer needs pypdf: pip install pypdf")

# The person who sent the file gets what is written to standard error: only the reason, not pypdf's warnings.
logging.disable()

EMAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]*\w")
PHONE = re.compile(r"\+?\(?\d[\d ()./-]{6,18}\d")
HEADING = re.compile(
    r"(work |professional )?(experience|history)|education|(technical )?skills|languages|projects"
    r"|certificat(es|ions)|courses|publications|awards|volunteering|interests|references",
    re.IGNORECASE,
)
SUMMARY = re.compile(r"(professional )?(summary|profile)|about me", re.IGNORECASE)
MAX_CHARS = 10_000
"""How much text of a section is kept."""


def read_lines(path: str) -> list[str]:
    """Return the lines of the PDF's text that are not blank. Exit if there are none."""
    try:
        reader = pypdf.PdfReader(path)
        if reader.is_encrypted and not reader.decrypt(""):
            sys.exit("The PDF has a password. Remove it, and send the file again")
        text = "\n".join(page.extract_text() for page in reader.pages)
    except Exception:  # noqa: BLE001 - a damaged file can cause any error in pypdf
        sys.exit("The file is not a PDF, or is damaged")
    # A file can contain anything, but JSON in UTF-8 cannot.
    text = text.encode(errors="ignore").decode().replace("\0", "")
    lines = [line for line in map(str.strip, text.splitlines()) if line]
    if not lines:
        sys.exit("The PDF has no text; it may be a scan")
    return lines


def analyze(lines: list[str]) -> dict[str, Any]:
    """Return the resume in these lines: contact details at the top, then sections with headings."""
    header: dict[str, str] = {}
    parts: list[tuple[str, list[str]]] = [("", [])]
    for line in lines:
        is_contact = False
        for name, pattern in (("email", EMAIL), ("phone", PHONE)):
            if name not in header and len(parts) == 1 and (found := pattern.search(line)):
                header[name] = found[0]
                is_contact = True
        if HEADING.fullmatch(line) or SUMMARY.fullmatch(line):
            parts.append((line.title(), []))
        elif "name" not in header and not is_contact:
            header["name"] = line[:200]
        elif not is_contact:
            parts[-1][1].append(line)
    summaries, others = [], []
    for heading, texts in parts:
        text = "\n".join(texts)[:MAX_CHARS]
        if text and (not heading or SUMMARY.fullmatch(heading)):
            summaries.append({"text": text})
        elif text:
            others.append({"title": heading, "description": text})
    sections = {
        "summaries": {"column": 0, "order": 0, "items": summaries},
        "customs": {"column": 0, "order": 1, "name": "Resume", "items": others},
    }
    return {
        "header": header,
        "sections": {name: section for name, section in sections.items() if section["items"]},
    }


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Usage: analyzer.py FILE")
    if not sys.argv[1].lower().endswith(".pdf"):
        sys.exit("This analyzer reads only PDFs. Send the resume as a PDF")
    json.dump(analyze(read_lines(sys.argv[1])), sys.stdout)
