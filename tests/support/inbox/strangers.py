"""Files with odd names, and what lies in an inbox and is nobody's resume."""

NAMES = [
    b"line\nend.json",
    "smile \N{GRINNING FACE}.json".encode(),
    b"l" * 250 + b".json",
    "\N{HIRAGANA LETTER A}".encode() * 83 + b".json",
    b"-rf.json",
    b";$(touch evil).json",
    "right \N{RIGHT-TO-LEFT OVERRIDE}nosj.json".encode(),
    b"bad\xff.json",
    b"back\\slash.json",
    b"esc\x1b[31m.json",
    b"quote'\".json",
    b"UPPER.JSON",
    b" .json",
    b"%s%n.json",
]
