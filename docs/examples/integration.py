"""Create resumes from files, then list all resumes of the account (see docs/tutorial.md).

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
    """Return the response's JSON. Retry while the service is busy or does not respond."""
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
            # No response: the request may have succeeded, so each request here must be safe to repeat.
            if not left:
                raise SystemExit(f"{url} does not answer: {error}") from None
            wait_s = 1
        except ValueError:
            raise SystemExit(f"{url} is not a resume service: its response is not JSON") from None
        time.sleep(wait_s)


def wait_of(error: urllib.error.HTTPError) -> int:
    """Return how many seconds to wait: 1 if the response has no Retry-After."""
    seconds = error.headers.get("Retry-After", "")
    return int(seconds) if seconds.isdecimal() else 1


def message_of(error: urllib.error.HTTPError) -> str:
    """Return the message from the service, or from a proxy in front of it."""
    try:
        return str(json.load(error)["error"])
    except (ValueError, TypeError, KeyError):
        return error.reason


def create(path: Path) -> str:
    """Create a resume from the file and return its ID. Repeated calls create only one."""
    body = path.read_bytes()
    headers = {"Idempotency-Key": hashlib.sha256(body).hexdigest()}
    resume_id: str = call(API, body, **headers)["id"]
    return resume_id


def iter_resumes() -> Iterator[dict[str, Any]]:
    """Yield all resumes of the account, oldest first, fetching page by page."""
    cursor = ""
    while cursor is not None:
        page = call(f"{API}?limit=100&cursor={cursor}")
        yield from page["resumes"]
        cursor = page["pagination"]["cursor"]


def fail_usage(message: str) -> NoReturn:
    """Print the message and exit with 2, the code for wrong usage."""
    print(message, file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    if not API or not KEY:
        fail_usage("Set API to the address of the service, and KEY to an API key.")
    for name in sys.argv[1:]:
        try:
            print(f"{create(Path(name))}  created from {name}")
        except OSError as error:
            fail_usage(f"Cannot read {name}: {error.strerror}")
    for resume in iter_resumes():
        print(f"{resume['id']}  {resume['title']}")
