from server.openapi.answers import HEADERS, RATE_LIMITS, header_references, json_answer


def test_every_answer_bears_the_id_of_its_request() -> None:
    assert list(header_references()) == ["X-Request-Id"]
    assert HEADERS["X-Request-Id"]["required"]


def test_the_headers_of_an_answer_are_described_once_for_all() -> None:
    answer = json_answer("A page.", {"type": "object"}, {}, *RATE_LIMITS)
    for name, reference in answer["headers"].items():
        assert reference == {"$ref": f"#/components/headers/{name}"}
        assert name in HEADERS


def test_an_answer_has_its_schema_with_an_example() -> None:
    answer = json_answer("Done.", {"const": 1}, 1, links={"get": {}})
    assert answer["content"] == {"application/json": {"schema": {"const": 1}, "example": 1}}
    assert answer["links"] == {"get": {}}
