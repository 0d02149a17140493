import inspect

from resumes import errors
from resumes.errors import ErrorCode, Issue, ResumesError


def raised_classes() -> list[type[ResumesError]]:
    return [
        cls
        for _, cls in inspect.getmembers(errors, inspect.isclass)
        if issubclass(cls, ResumesError) and "code" in vars(cls)
    ]


def test_every_code_has_exactly_one_class() -> None:
    codes = [cls.code for cls in raised_classes()]
    assert sorted(codes) == sorted(ErrorCode)


def test_every_class_is_in_the_tree_at_the_top_of_the_module() -> None:
    assert errors.__doc__ is not None
    for cls in raised_classes():
        assert cls.__name__ in errors.__doc__


def test_the_first_issue_is_the_message() -> None:
    error = errors.InvalidResume([Issue("a", "first"), Issue("b", "second")])
    assert (error.message, len(error.issues)) == ("first", 2)


def test_the_quota_message_states_the_number() -> None:
    assert errors.QuotaReached(max_resumes=5).message == (
        "Maximum resume limit reached. Your plan allows 5 resumes"
    )
    assert errors.QuotaReached(max_resumes=1).message.endswith("allows 1 resume")
