"""`resumes completion`: the script that makes a shell complete our commands, names and ids."""

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from cli.commands import command
from cli.output import put

SHELLS: dict[str, type[ShellComplete]] = {
    "bash": BashComplete,
    "zsh": ZshComplete,
    "fish": FishComplete,
}
VARIABLE = "_RESUMES_COMPLETE"


@command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a shell's completion script.

    \b
    bash  echo 'eval "$(resumes completion bash)"' >> ~/.bashrc
    zsh   echo 'eval "$(resumes completion zsh)"' >> ~/.zshrc
    fish  resumes completion fish > ~/.config/fish/completions/resumes.fish
    """
    script = SHELLS[shell](context.find_root().command, {}, "resumes", VARIABLE)
    # The template alone: source() of bash first runs bash to ask for its version.
    put(script.source_template % script.source_vars())
