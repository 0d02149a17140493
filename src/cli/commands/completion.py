"""`resumes completion`: print the script with which a shell completes commands and options."""

import click
from click.shell_completion import get_completion_class

from cli.groups import command
from cli.output import put

VARIABLE = "_RESUMES_COMPLETE"


@command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a shell's completion script.

    \b
    bash  echo 'eval "$(resumes completion bash)"' >> ~/.bashrc
    zsh   echo 'eval "$(resumes completion zsh)"' >> ~/.zshrc
    fish  resumes completion fish > ~/.config/fish/completions/resumes.fish
    """
    shell_class = get_completion_class(shell)
    assert shell_class is not None
    script = shell_class(context.find_root().command, {}, "resumes", VARIABLE)
    # Fill in the template: source() would first run bash to check its version.
    put(script.source_template % script.source_vars())
