"""`resumes delete`."""

from tests.cli.conftest import CommandLine, a_resume, store_resumes


def test_a_deleted_resume_is_gone_and_its_place_free(acme: CommandLine) -> None:
    [ada, bo] = store_resumes(acme.home, a_resume("Ada"), a_resume("Bo"))

    deleted = acme("delete", ada, "--account", "acme")

    assert deleted.stderr == f'Resume {ada} of account "acme" is gone.\n'
    assert acme.answers("delete", bo, "--json") == {"deleted": bo}
    assert acme.answers("accounts", "show", "acme", "--json")["resumes"] == 0
    assert "Resume not found" in acme.fails(1, "delete", ada)
