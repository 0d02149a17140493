from server.openapi.api_paths import WITH_KEY, api_paths
from server.openapi.errors import ERRORS


def test_the_four_operations_are_there() -> None:
    operations = {
        (path, method)
        for path, item in api_paths().items()
        for method in item
        if method != "parameters"
    }
    assert operations == {
        ("/api/v1/resumes", "get"),
        ("/api/v1/resumes", "post"),
        ("/api/v1/resumes/{id}", "get"),
        ("/api/v1/resumes/{id}", "delete"),
    }


def test_every_operation_tells_of_what_any_request_with_a_key_can_meet() -> None:
    statuses = {str(each.status) for each in ERRORS if each.name in WITH_KEY}
    for item in api_paths().values():
        for method in item.keys() - {"parameters"}:
            assert statuses <= item[method]["responses"].keys()


def test_a_created_resume_leads_to_what_can_be_done_with_it() -> None:
    links = api_paths()["/api/v1/resumes"]["post"]["responses"]["201"]["links"]
    assert {link["operationId"] for link in links.values()} == {"getResume", "deleteResume"}
