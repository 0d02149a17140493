"""The document of the interface: valid OpenAPI, and true of the service; and the page that shows it."""

import copy
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx
import jsonschema_rs
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from resumes import analyzer
from resumes.analyzer import DEFAULT_FORMAT, Format
from resumes.analyzer.findings import MAX_REPORTED
from resumes.analyzer.kinds import Added
from resumes.analyzer.schema import DATE_RANGE, HEADER, SECTION_TYPES, STYLE
from resumes.errors import ErrorCode, ResumesError
from resumes.store import forgotten
from resumes.store.forgotten import Subject
from resumes.store.stored_resumes import DEFAULT_LIMIT, MAX_LIMIT
from server.openapi import SWAGGER_UI, build_document
from server.request import STATUSES
from server.routes import ListQuery
from tests.support import pages
from tests.support.api.bombs import valid
from tests.support.api.builders import RESUMES, Client, a_body, a_resume
from tests.support.api.refused import iter_all, iter_resumes
from tests.support.api.serving import Place
from tests.support.documents import DOCUMENTS

DOCUMENT = build_document()
ERRORS: dict[str, Any] = DOCUMENT["components"]["responses"]


def parts(value: Any, path: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object within a value, with its place."""
    if isinstance(value, dict):
        yield path, value
        for name, member in value.items():
            yield from parts(member, f"{path}/{name}")
    elif isinstance(value, list):
        for position, entry in enumerate(value):
            yield from parts(entry, f"{path}/{position}")


def resolved(part: Any, document: dict[str, Any] = DOCUMENT) -> Any:
    """The part itself, or what it refers to within the document."""
    while isinstance(part, dict) and "$ref" in part:
        found: Any = document
        for step in part["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        part = found
    return part


def is_valid(schema: Any, value: Any) -> bool:
    """Whether the value is what a schema of the document allows."""
    root = {**schema, "components": DOCUMENT["components"]}
    return jsonschema_rs.Draft202012Validator(root).is_valid(value)


def check_answer(path: str, method: str, answer: httpx.Response) -> None:
    """The operation's document tells of such an answer: status, headers, type and body."""
    described = resolved(DOCUMENT["paths"][path][method]["responses"][str(answer.status_code)])
    for name, reference in described["headers"].items():
        header = resolved(reference)
        assert name in answer.headers or not header.get("required"), name
        if name in answer.headers:
            value: Any = answer.headers[name]
            value = int(value) if header["schema"]["type"] == "integer" else value
            assert is_valid(header["schema"], value), name
    ours = ("x-r", "retry", "www-", "allow", "idempotent", "etag", "content-disposition")
    own = {name for name in answer.headers if name.startswith(ours)}
    assert own <= {name.lower() for name in described["headers"]}
    if "content" not in described:
        assert not answer.content
        return
    media_type = answer.headers["Content-Type"].partition(";")[0]
    body = answer.json() if media_type == "application/json" else answer.text
    assert is_valid(described["content"][media_type]["schema"], body), body


@pytest.mark.slow
def test_the_document_is_valid_openapi_3_1() -> None:
    import schemathesis  # which takes a second, in every process that collects tests

    assert DOCUMENT["openapi"].startswith("3.1.")
    assert schemathesis.openapi.from_dict(DOCUMENT).validate() is None


def examples() -> list[Any]:
    """Every example that has a schema beside it: its place, the schema, the example."""
    found = []
    for path, part in parts(DOCUMENT):
        if "example" in part and "schema" in part:
            found.append(pytest.param(part["schema"], part["example"], id=path))
        # In a field's schema; a field may have that name itself.
        if isinstance(part.get("examples"), list):
            found += [pytest.param(part, each, id=f"{path}/examples") for each in part["examples"]]
    return found


@pytest.mark.parametrize(("schema", "example"), examples())
def test_every_example_is_valid(schema: dict[str, Any], example: Any) -> None:
    assert is_valid(schema, example)


RELEASED = Path(__file__).parents[1] / "data" / "api-1.0.0.json"
"""What `relied_on` found in the document of that release."""


def relied_on(document: dict[str, Any]) -> dict[str, list[str]]:
    """By place, the parameters, statuses, headers and fields that a client of /api/v1 may rely on."""
    found = {}
    for place, value in parts(document):
        if re.match("#/paths//api/v1/|#/components/(headers|responses|schemas)/", place):
            if re.search("(?<!schema)/(responses|headers|properties)$", place):
                found[place] = sorted(value)
            if isinstance(taken := value.get("parameters"), list):
                names = [resolved(each, document)["name"] for each in taken]
                found[f"{place}/parameters"] = sorted(names)
            if isinstance(always := value.get("required"), list):
                found[f"{place}/required"] = sorted(always)
    return found


def test_nothing_that_release_1_0_0_had_is_gone() -> None:
    released = json.loads(RELEASED.read_text(encoding="utf-8"))
    now = relied_on(DOCUMENT)

    gone = {place: {*names} - {*now.get(place, ())} for place, names in released.items()}
    assert [(place, names) for place, names in gone.items() if names] == []


def test_every_field_that_release_1_0_0_did_not_know_may_hold_anything_in_a_store() -> None:
    released = json.loads(RELEASED.read_text(encoding="utf-8"))
    groups = {"Header": HEADER, "Style": STYLE, "DateRange": DATE_RANGE}
    for name, one in SECTION_TYPES.items():
        place = f"{name[0].upper()}{name[1:]}Section"
        groups |= {place: one.kind, f"{place}/properties/items/items": one.item}
    for place, group in groups.items():
        known = released.get(f"#/components/schemas/{place}/properties", group.fields)
        for field in group.fields.keys() - {*known}:
            is_added = isinstance(group.fields[field], Added)
            assert is_added, f"analyzer/schema.py: make {field} of {place} `Added`"


def test_every_parameter_of_the_list_is_described(repository: Path) -> None:
    taken = map(resolved, DOCUMENT["paths"][RESUMES]["get"]["parameters"])
    told = {each["name"] for each in taken if each["in"] == "query"}
    page = pages.chapter(repository / "docs" / "api.md", "list-get-apiv1resumes")
    for name in {*ListQuery._fields} | told:
        assert name in told, f"add {name} to src/server/interface.json"
        assert name in ListQuery._fields, f"add {name} to ListQuery in src/server/routes.py"
        assert f"`{name}`" in page, f"add {name} to docs/api.md, List"


def status_of(name: str) -> int:
    """The status that an error's answer has, and its example."""
    answer = ERRORS[name]["content"]["application/json"]
    status: int = answer["schema"]["properties"]["status"]["const"]
    assert answer["example"]["status"] == status
    return status


def test_an_error_stands_at_its_status_and_every_domain_error_has_one() -> None:
    for _, part in parts(DOCUMENT["paths"]):
        for status, answer in part.get("responses", {}).items():
            if name := answer.get("$ref", "").removeprefix("#/components/responses/"):
                assert status_of(name) == int(status)
    assert set(STATUSES) == set(ErrorCode)
    assert set(STATUSES.values()) <= {status_of(name) for name in ERRORS}


def test_the_limits_of_pages_and_issues_are_those_of_the_service() -> None:
    limit = DOCUMENT["components"]["parameters"]["Limit"]
    assert limit["schema"]["default"] == DEFAULT_LIMIT
    assert f"1 to {MAX_LIMIT} " in limit["description"]
    page = DOCUMENT["components"]["schemas"]["Page"]["properties"]
    assert page["resumes"]["maxItems"] == MAX_LIMIT
    assert page["pagination"]["properties"]["limit"]["maximum"] == MAX_LIMIT
    error = DOCUMENT["components"]["schemas"]["Error"]["properties"]
    assert error["issues"]["maxItems"] == MAX_REPORTED


# Answers


def test_every_recorded_refusal_is_as_described() -> None:
    recorded = (Path(__file__).parents[1] / "data" / "refusals.jsonl").read_text(encoding="utf-8")
    seen = set()
    for (_, sent), line in zip(iter_all(), recorded.splitlines(), strict=True):
        _, status, _, *head, _, body = json.loads(line)
        method, path = re.split("[ ?]", sent.decode("latin-1"))[:2]
        path = re.sub(rf"(?<={RESUMES})/[^/]+", "/{id}", path)
        operations = resolved(DOCUMENT["paths"].get(path, {}))
        if method != "HEAD" and '"error":"Not Found"' not in body:  # there is something
            if method.lower() not in operations:  # 405, or no HTTP: described wherever there is one
                path, method = (path, "GET") if "get" in operations else (RESUMES, "POST")
            fields = [
                ("content-type", "application/json"),
                *(tuple(one.split(": ")) for one in head),
            ]
            answer = httpx.Response(int(status[9:12]), headers=fields, content=body)
            check_answer(path, method.lower(), answer)
            seen.add(answer.status_code)
    assert seen == {400, 401, 403, 404, 405, 413, 414, 415, 422, 431, 501}


def test_what_is_answered_to_a_life_of_a_resume_is_as_described(
    client: Client, place: Place
) -> None:
    forgotten.remember(place.store, [Subject.of_email("gone@example.org")])
    one, pdf, word = (f"{RESUMES}/{{id}}{suffix}" for suffix in ("", "/pdf", "/docx"))
    for replayed in (None, "true"):
        created = client.post(a_body(mood="calm"), Idempotency_Key="once")
        assert created.headers.get("Idempotent-Replayed") == replayed
        assert created.json()["warnings"]
        check_answer(RESUMES, "post", created)
    long = client.create(valid(1024 * 1024))
    path = f"{RESUMES}/{(resume_id := created.json()['id'])}"
    drawn = client.request("GET", f"{path}/pdf?layout=single&paper=letter&anonymous=true")
    auth = {"Authorization": f"Bearer {client.key}"}
    known = auth | {"If-None-Match": drawn.headers["ETag"]}
    for status, method, described, answer in (
        (201, "post", RESUMES, long),
        (200, "get", RESUMES, client.page()),
        (200, "get", one, shown := client.request("GET", path)),
        (304, "get", one, client.request("GET", path, headers=auth | {"If-None-Match": "*"})),
        (200, "get", pdf, drawn),
        (304, "get", pdf, client.request("GET", str(drawn.url), headers=known)),
        (200, "get", pdf, client.request("GET", f"{path}/pdf", headers=known)),
        (422, "get", pdf, client.request("GET", f"{RESUMES}/{long.json()['id']}/pdf")),
        (400, "get", pdf, client.request("GET", f"{path}/pdf?layout=round")),
        (200, "get", word, client.request("GET", f"{path}/docx?anonymous=true")),
        (400, "get", word, client.request("GET", f"{path}/docx?layout=single")),
        (200, "put", one, client.put(resume_id, a_body(mood="glad"))),
        (412, "put", one, client.put(resume_id, a_body(), If_Match=shown.headers["ETag"])),
        (404, "put", one, client.put("x", a_body())),
        (400, "put", one, client.put(resume_id, b"{")),
        (403, "put", one, client.put(resume_id, a_body(header={"email": "gone@example.org"}))),
        (412, "delete", one, client.delete(resume_id, If_Match=shown.headers["ETag"])),
        (200, "delete", one, client.request("DELETE", path)),
        (404, "get", pdf, client.request("GET", f"{path}/pdf")),
    ):
        assert answer.status_code == status
        check_answer(described, method, answer)
    for path in ("/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"):
        check_answer(path, "get", client.request("GET", path, headers={}))


def test_rate_limits_are_as_described(a_place: Callable[..., Place]) -> None:
    client = a_place(rate_limit=True, rate_per_minute=3).client()
    answers = [client.page() for _ in range(8)]
    created = client.create(a_resume())
    metrics = client.request("GET", "/metrics").text

    refused = [answer.status_code for answer in (*answers, created)].count(429)
    assert f"\nresumes_rate_limited_total {refused}.0\n" in metrics
    assert {answer.status_code for answer in answers} == {200, 429}
    for answer in answers:
        assert "X-RateLimit-Remaining" in answer.headers
        check_answer(RESUMES, "get", answer)
    assert created.status_code == 429
    check_answer(RESUMES, "post", created)


# The schema


EXTRA = "hobbies"
FORMAT = Format(extra_section_types=frozenset({EXTRA}))
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [
        *(None, True, False, 0, 1, 2, 2.0, 3, -1, 0.5, 5, 6, "0", "", "x", [], {}, [[]], [5]),
        *("x" * 20_000, "x" * 20_001, "\N{GRINNING FACE}" * 20_000, "\N{GRINNING FACE}" * 20_001),
        *(["x"] * 200, ["x"] * 201, [None] * 201, [{}] * 500, [{}] * 501),
        *("#123", "#1234", "#abcdef", "#12", "#12345", "#abcdef\n", "#12\u0663", "123456"),
        *({"column": 0}, {"column": 2}, {"column": 0, "items": [5]}, "multicolumn", "double"),
        *("coverLetter", " COVER LETTER\n", "cover-letter 2", "1c.o.v.e.r.letter"),
        *("coverxletter", "coverlettersx", "coverletterss", "coverlette", "resume"),
    ]
)
"""Values that are wrong in some places and right in others, or at a limit."""
NAMES = ("type", "kind", "documentType", "isCoverLetter", "cover_letters", "coverxletter", EXTRA,
         "education", "column", "items", "layout", "text", "tags")  # fmt: skip


@st.composite
def nearly_resumes(draw: st.DrawFn) -> Any:
    """Documents that are resumes but for the few values that were put in."""
    document = {"": copy.deepcopy(draw(DOCUMENTS))}
    for _ in range(draw(st.sampled_from([0, 1, 1, 1, 2]))):
        place = draw(st.sampled_from([*inner(document)]))
        if isinstance(place, list):
            name: Any = draw(st.integers(0, len(place) - 1))
        else:
            name = draw(st.sampled_from([*place]) | st.sampled_from(NAMES))
        place[name] = copy.deepcopy(draw(ODD))
    return document[""]


def inner(value: Any) -> Iterator[Any]:
    """Every object, and every array that is not empty, within a value."""
    if isinstance(value, dict | list):
        if value:
            yield value
        for member in value.values() if isinstance(value, dict) else value:
            yield from inner(member)


def schema_of(accepted: Format, name: str = "Resume") -> jsonschema_rs.Draft202012Validator:
    """A validator of one of the components."""
    components = build_document(accepted)["components"]
    reference = {"$ref": f"#/components/schemas/{name}"}
    return jsonschema_rs.Draft202012Validator({**reference, "components": components})


SCHEMA = schema_of(FORMAT)


def is_accepted(document: Any, accepted: Format = FORMAT) -> bool:
    """Whether create accepts the document."""
    try:
        analyzer.parse(json.dumps(document).encode(), accepted)
    except ResumesError:
        return False
    return True


@given(nearly_resumes())
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_schema_accepts_what_the_service_accepts_and_nothing_else(document: Any) -> None:
    # No schema can limit the size of a whole document.
    assume(len(json.dumps(document)) <= FORMAT.max_bytes)
    assert SCHEMA.is_valid(document) == is_accepted(document)


def test_the_schema_refuses_every_resume_that_the_service_is_recorded_to_refuse() -> None:
    refused = {name: sent.partition(b"\r\n\r\n")[2] for name, sent in iter_resumes()}
    assert len(refused) > 90
    assert [name for name, body in refused.items() if SCHEMA.is_valid(json.loads(body))] == []


def test_the_schema_knows_a_third_column_and_section_types_that_are_admitted() -> None:
    third = {"header": {}, "sections": {"skills": {"column": 2}}}
    assert SCHEMA.is_valid(third | {"style": {"layout": "multicolumn"}})
    extra = {"header": {}, "sections": {EXTRA: {"column": 0, "items": ["chess", None]}}}
    assert SCHEMA.is_valid(extra)
    assert not schema_of(DEFAULT_FORMAT).is_valid(extra)
    # Letters of other alphabets are where it is stricter.
    letter = {"header": {}, "sections": {}, "kind": "cover\u00e9letter"}
    assert is_accepted(letter)
    assert not SCHEMA.is_valid(letter)


# The page that describes the API, and what it loads (docs/api.md, Description)


TYPES = {
    "": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json",
}  # fmt: skip
"""Those that a browser insists on, by the suffix of the path."""
PATHS = [
    "/openapi.json", "/docs", "/docs/", "/docs/docs.js", "/docs/docs.css",
    f"/docs/{SWAGGER_UI}/swagger-ui-bundle.js", f"/docs/{SWAGGER_UI}/swagger-ui.css",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_what_describes_the_api_needs_no_key_and_can_only_be_got(client: Client, path: str) -> None:
    for _ in range(2):
        answer = client.request("GET", path, headers=[])
        assert answer.status_code == 200
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Content-Type"].startswith(TYPES[Path(path).suffix])
        assert int(answer.headers["Content-Length"]) == len(answer.content) > 0
        # A browser keeps only what has a version in its path.
        assert ("immutable" in answer.headers["Cache-Control"]) == (SWAGGER_UI in path)
    head = client.request("HEAD", path, headers=[])
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["Content-Length"] == answer.headers["Content-Length"]
    for method in ("POST", "OPTIONS"):
        refused = client.request(method, path, headers=[])
        assert (refused.status_code, refused.headers["Allow"]) == (405, "GET")


@pytest.mark.parametrize("prefix", ["/", "/cv/", "/hr/r%C3%A9sum%C3%A9s/v%202/"])
def test_every_link_stays_below_the_path_that_a_proxy_puts_the_service_under(
    client: Client, prefix: str
) -> None:
    """A proxy takes the prefix away, so what is linked has it."""
    base = f"https://example.test{prefix}"

    def links_of(path: str) -> set[str]:
        answer = client.request("GET", f"/{path}", headers=[])
        if path:
            found = re.findall('(?:src|href)="([^"#]+)', answer.text)
            script = next(urljoin(base + path, link) for link in found if link.endswith("docs.js"))
            found = [link for link in found if link != "data:,"]
            found.append(urljoin(script, "../openapi.json"))  # as docs.js says
        else:
            found = [*answer.json().values()]
        return {urljoin(base + path, link).removeprefix(base) for link in found}

    assert links_of("") == {"docs", "openapi.json"}
    assert links_of("docs") == links_of("docs/") == {path[1:] for path in PATHS} - {"docs", "docs/"}
    (server,) = client.request("GET", "/openapi.json", headers=[]).json()["servers"]
    assert urljoin(f"{base}openapi.json", server["url"]) == base


def test_the_document_in_the_repository_is_the_one_that_is_served(
    client: Client, repository: Path
) -> None:
    written = (repository / "openapi.json").read_bytes()
    assert client.request("GET", "/openapi.json").content == written, "run `make openapi`"


def test_the_page_may_load_nothing_but_what_the_service_has(client: Client) -> None:
    answer = client.request("GET", "/docs", headers=[])

    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert not re.search(r"<script>|<style|\s(style|on\w+)=", answer.text)  # which it holds back
