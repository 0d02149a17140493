from importer.options import Options
from resumes.settings import load_settings


def test_the_defaults_are_those_of_the_settings() -> None:
    settings, options = load_settings(), Options()
    assert (options.settle_s, options.scan_s, options.format) == (
        settings.settle_s,
        settings.scan_s,
        settings.format,
    )
