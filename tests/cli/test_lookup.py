"""Another account's resume is not found."""

from tests.cli.conftest import CommandLine, a_resume, store_resumes


def test_a_resume_of_another_account_is_not_found(acme: CommandLine) -> None:
    [resume_id] = store_resumes(acme.home, a_resume())
    acme.succeeds("accounts", "create", "beta")

    for command in ("show", "delete", "export"):
        message = acme.fails(1, command, resume_id, "--account", "beta")
        assert f'Resume not found in account "beta": "{resume_id}"' in message
