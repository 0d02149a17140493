from server.openapi.open_paths import open_paths


def test_nothing_outside_the_api_needs_a_key() -> None:
    for item in open_paths().values():
        assert item["get"]["security"] == []
        assert "401" not in item["get"]["responses"]


def test_readiness_is_told_with_200_and_503() -> None:
    answers = open_paths()["/readyz"]["get"]["responses"]
    told = {
        status: answers[status]["content"]["application/json"]["example"]["status"]
        for status in ("200", "503")
    }
    assert told == {"200": "ready", "503": "not ready"}
