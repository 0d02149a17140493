"""All commands of the command line, as it is put together."""

import click


def iter_commands(
    group: click.Group, words: tuple[str, ...] = ()
) -> list[tuple[tuple[str, ...], click.Command]]:
    """Every command with the words that it is called by, groups too."""
    found: list[tuple[tuple[str, ...], click.Command]] = [(words, group)]
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            found += iter_commands(command, (*words, name))
        else:
            found.append(((*words, name), command))
    return found
