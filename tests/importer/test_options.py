from importer.options import Options
from importer.parts import Limits
from resumes.analyzer import Format
from resumes.settings import load_settings


def test_the_defaults_are_those_of_the_settings() -> None:
    settings, options = load_settings(), Options()
    for name in (
        "settle_s",
        "scan_s",
        "poll",
        "done_keep_days",
        "on_import",
        "format",
        "max_file_bytes",
    ):
        assert getattr(options, name) == getattr(settings, name)


def test_the_limits_are_those_of_one_resume_and_of_a_file_of_several() -> None:
    options = Options(format=Format(max_bytes=10), max_file_bytes=20)
    assert options.limits == Limits(max_bytes=10, max_file_bytes=20)
