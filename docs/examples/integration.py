"""Creates resumes from files, and lists all of the account: docs/tutorial.md explains it.

API=http://127.0.0.1:8000/api/v1/resumes KEY=enh_live_… python3 integration.py [FILE]...
"""

import hashlib
import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

API = os.environ.get("API", "")
KEY = os.environ.get("KEY", "")
TRY_AGAIN = (409, 429, 502, 503, 504)
TRIES = 10


def call(url: str, body: bytes | None = None, **headers: str) -> Any:
    """The answer's JSON. A request that met a busy service is sent again when it may be."""
    headers |= {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    for left in reversed(range(TRIES)):
        request = urllib.request.Request(url, body, headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code not in TRY_AGAIN or not left:
                raise SystemExit(f"{error.code}: {message_of(error)}") from None
            wait_s = wait_of(error)
        except (OSError, http.client.HTTPException) as error:
            # No answer: whether it was done is not known, so it has to be one that may be repeated.
            if not left:
                raise SystemExit(f"{url} does not answer: {error}") from None
            wait_s = 1
        except ValueError:
            raise SystemExit(f"{url} is no resume service: its answer is not JSON") from None
        time.sleep(wait_s)


def wait_of(error: urllib.error.HTTPError) -> int:
    """Seconds to wait; 1 where the answer, of a proxy perhaps, does not say."""
    told = error.headers.get("Retry-After", "")
    return int(told) if told.isdecimal() else 1


def message_of(error: urllib.error.HTTPError) -> str:
    """What is wrong in words: the service's own, or those of a proxy before it."""
    try:
        return str(json.load(error)["error"])
    except (ValueError, TypeError, KeyError):
        return error.reason


def create(path: Path) -> str:
    """The id of the resume that the file became: one resume, however often this is called."""
    body = path.read_bytes()
    headers = {"Idempotency-Key": hashlib.sha256(body).hexdigest()}
    resume_id: str = call(API, body, **headers)["id"]
    return resume_id


def iter_resumes() -> Iterator[dict[str, Any]]:
    """All resumes of the account, oldest first, a page at a time."""
    cursor = ""
    while cursor is not None:
        page = call(f"{API}?limit=100&cursor={cursor}")
        yield from page["resumes"]
        cursor = page["pagination"]["cursor"]


def misused(message: str) -> NoReturn:
    """Ends with the exit code for what is called wrongly."""
    print(message, file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    if not API or not KEY:
        misused("Set API to the address of the service, and KEY to an API key.")
    for name in sys.argv[1:]:
        try:
            print(f"{create(Path(name))}  created from {name}")
        except OSError as error:
            misused(f"Cannot read {name}: {error.strerror}")
    for resume in iter_resumes():
        print(f"{resume['id']}  {resume['title']}")
