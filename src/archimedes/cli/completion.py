"""Print what a shell needs to complete these commands.

Examples:
    eval "$(archimedes completion bash)"
    archimedes completion zsh > _archimedes

The scripts are read off the parser.
"""

from __future__ import annotations

import argparse


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("shell", choices=("bash", "zsh"), help="which shell")


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    print({"bash": bash, "zsh": zsh}[options.shell](options.parser), end="")
    return 0


def words(parser: argparse.ArgumentParser) -> dict[str, tuple[list[str], list[str]]]:
    """Return for each command its options, and the words that its arguments may be."""
    table = {}
    (commands,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    for name, own in commands.choices.items():
        flags = [s for action in own._actions for s in action.option_strings]
        values = [str(v) for a in own._actions if not a.option_strings for v in a.choices or ()]
        table[name] = (flags, values)
    return table


def _cases(parser: argparse.ArgumentParser, action: str) -> tuple[str, str]:
    """Return the commands, and a case for each that hands its words to an action of the shell."""
    table = words(parser)
    cases = (
        f"    {name}) {action.format(' '.join([*own[0], *own[1]]))} ;;"
        for name, own in table.items()
    )
    return " ".join(table), "\n".join(cases)


def bash(parser: argparse.ArgumentParser) -> str:
    """Return the script for bash."""
    names, cases = _cases(parser, 'words="{}"')
    return f"""\
_archimedes() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" words="{names} --help --version"
  if [ "$COMP_CWORD" -gt 1 ]; then
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  [ "${{#COMPREPLY[@]}}" -gt 0 ] || mapfile -t COMPREPLY < <(compgen -f -- "$current")
}}
complete -o filenames -F _archimedes archimedes
"""


def zsh(parser: argparse.ArgumentParser) -> str:
    """Return the script for zsh."""
    names, cases = _cases(parser, "compadd -- {}")
    return f"""\
#compdef archimedes
_archimedes() {{
  if (( CURRENT == 2 )); then
    compadd -- {names} --help --version
    return
  fi
  case "${{words[2]}}" in
{cases}
  esac
  _files
}}
compdef _archimedes archimedes
"""
