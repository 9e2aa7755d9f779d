"""The ``protgraph`` command: its subcommands, and errors as one message on standard error.

Exit codes: 0 success; 1 partial success, or a failed check; 2 invalid options or input; 70 an error in protgraph or a
plugin (EX_SOFTWARE of ``sysexits.h``); 130 interrupted by Ctrl-C; 143 terminated by SIGTERM.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn, TextIO

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

from protgraph.cli.command_group import CommandGroup
from protgraph.cli.console import escape_unencodable
from protgraph.cli.error_report import print_error, print_fault, print_warning
from protgraph.cli.signals import exit_code, raise_on_signals
from protgraph.deferred_imports import defer_imports
from protgraph.errors import ComponentTypeError, ProtgraphError, ProtgraphWarning, suggest
from protgraph.registry import commands
from protgraph.registry.discovery import PLUGINS_VARIABLE
from protgraph.registry.provider import split_distribution

__all__ = ["COMMANDS", "app", "main"]

#: Groups of ``protgraph --help`` and their commands; those that are in no group follow under "More commands".
GROUPS = {
    "Ask a model about your structures": (
        "predict",
        "view",
        "pockets",
        "mutate",
        "scan",
        "design",
        "score",
        "compare",
        "embed",
        "search",
        "attention",
        "generate",
    ),
    "Data": ("fetch", "data", "featurize", "describe"),
    "Train and compare models": ("train", "recipe", "bench"),
    "Components and installation": ("list", "info", "doctor", "check", "verify", "replay", "new-plugin"),
}
#: Commands in the order of ``protgraph --help``; those that are not here, e.g. of other distributions, follow.
COMMANDS = tuple(name for names in GROUPS.values() for name in names)

_MORE = "More commands"
_HELP_OPTIONS = ["-h", "--help"]


@dataclass
class _Session:
    """State of one call of the command line."""

    debug: bool = False


def _set_debug(ctx: typer.Context, requested: bool) -> bool:
    session = ctx.find_root().obj
    if requested and isinstance(session, _Session):
        session.debug = True
    return requested


Debug = Annotated[
    bool,
    typer.Option("--debug", callback=_set_debug, is_eager=True, expose_value=False, help="Show tracebacks of errors."),
]


def _import_sources(sources: list[str] | None) -> None:
    for source in sources or ():
        from protgraph.registry import import_source

        import_source(source)


Import = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        metavar="FILE",
        callback=_import_sources,
        expose_value=False,
        help="Python file or module that registers components; repeat for more.",
    ),
]
#: Commands that use no registry name.
_WITHOUT_COMPONENTS = ("doctor", "fetch", "new-plugin")


class _LazyGroup(TyperGroup):
    """Group of the commands of the entry points ``protgraph.commands``; each is imported when it is used."""

    path: str = ""
    """Name of the group; "" for ``protgraph`` itself."""
    description = CommandGroup("", first=COMMANDS)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        default = self.description.default
        if default and (not args or args[0] not in (*self.list_commands(ctx), *_HELP_OPTIONS)):
            args = [default, *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        names = _commands_of(self.path)
        first = [name for name in self.description.first if name in names]
        return [*first, *(name for name in names if name not in first)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        registered = _commands_of(self.path).get(cmd_name)
        if registered is None:
            return None
        if cmd_name not in self.commands:
            command = _load(registered)
            command.name = cmd_name  # in a group: without the name of the group
            command.context_settings["help_option_names"] = _HELP_OPTIONS
            if not self.path:
                command.rich_help_panel = _panel(cmd_name)
            self.commands[cmd_name] = command
        return self.commands[cmd_name]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        names = self.list_commands(ctx)
        if args and not args[0].startswith("-") and args[0] not in names:
            hint = suggest(args[0], names)
            ctx.fail(f"No such command {args[0]!r}.{hint} '{ctx.command_path} --help' lists all commands.")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as e:
            code = exit_code(e)
            print_error("interrupted by Ctrl-C" if code == 130 else "terminated by SIGTERM")
            raise typer.Exit(code) from None


def _panel(command: str) -> str:
    """Return the title of the group of a command in ``protgraph --help``."""
    return next((title for title, names in GROUPS.items() if command in names), _MORE)


def _commands_of(group: str) -> dict[str, str]:
    """Return the names of the commands in a group, "" for the top level, and their names in the registry."""
    names: dict[str, str] = {}
    for registered in commands.names():
        distribution, bare = split_distribution(registered)
        prefix, _, name = bare.rpartition(".")
        if prefix == group:
            names[f"{distribution}/{name}" if distribution else name] = registered
        elif not group:  # a group that no distribution describes
            names.setdefault(prefix, prefix)
    return names


def _load(registered: str) -> Any:
    """Import a command or group; one that cannot be imported raises when it is used, so that others have their help."""
    try:
        if registered not in commands:
            return _group(registered, CommandGroup(f"Commands: {', '.join(_commands_of(registered))}."))
        command = commands.get(registered)
        if isinstance(command, CommandGroup):
            return _group(registered, command)
        return _single(registered, command)
    except ProtgraphError as e:
        return _BrokenCommand(registered, e)


class _BrokenCommand(TyperCommand):
    """Command that raises the error of its import, also for ``--help``."""

    def __init__(self, name: str, error: ProtgraphError) -> None:
        reason = f"{type(error.__cause__).__name__}: {error.__cause__}" if error.__cause__ else str(error)
        super().__init__(name, callback=_no_options, help=escape(f"Not available: {reason.splitlines()[0]}"))
        self.error = error

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        raise self.error


def _single(registered: str, function: Any) -> Any:
    """Return the command of a function, with its help as plain text: ``[fit]`` in it is a TOML table, not markup."""
    single = typer.Typer(add_completion=False, rich_markup_mode="rich")
    single.command(registered)(function)
    try:
        command = typer.main.get_command(single)
    except Exception as e:  # typer raises several types for a parameter that it cannot read from the command line
        source = commands.entry(registered).source
        raise ComponentTypeError(f"command {registered!r} of {source} is not a command of typer: {e}") from e
    command.params += _common_options(registered)
    _check_parameters(command)
    command.help = _unwrapped(command.help or "")
    documented: Any  # commands, options and arguments of typer have a help text
    for documented in (command, *command.params):
        if getattr(documented, "help", None):
            documented.help = escape(documented.help)
    return command


def _group(registered: str, description: CommandGroup) -> Any:
    group = typer.main.get_command(typer.Typer(cls=_LazyGroup, callback=_no_options, no_args_is_help=True))
    assert isinstance(group, _LazyGroup)
    group.name = group.path = registered
    group.description, group.help = description, _unwrapped(description.help)
    group.params = _common_options(registered)
    return group


def _no_options() -> None:
    """Do nothing; the subcommand does."""


def _common_options(name: str) -> list[Any]:
    """Return the options that every subcommand has, or every one that uses components."""
    single = typer.Typer(add_completion=False)

    @single.command()
    def command(import_: Import = None, debug: Debug = False) -> None:
        """Declare the options; the callbacks read them."""

    params = typer.main.get_command(single).params
    return params[1:] if name in _WITHOUT_COMPONENTS else params


def _unwrapped(text: str) -> str:
    r"""Join the lines of each paragraph, for the width of the terminal; those after ``\b`` keep their lines."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(part if part.startswith("\b") else part.replace("\n", " ") for part in paragraphs)


app = typer.Typer(
    cls=_LazyGroup,
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": _HELP_OPTIONS},
)


def _print_version(requested: bool) -> None:
    if requested:
        from protgraph import __version__

        typer.echo(f"protgraph {__version__}")
        raise typer.Exit


def _use_no_plugins(requested: bool) -> None:
    """Leave out other distributions, also in worker processes, before any command is looked up."""
    if requested:
        os.environ[PLUGINS_VARIABLE] = ""


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    no_plugins: Annotated[
        bool,
        typer.Option(
            "--no-plugins",
            callback=_use_no_plugins,
            is_eager=True,
            help="Use the components of protgraph alone, not those of other installed packages.",
        ),
    ] = False,
    debug: Debug = False,
) -> None:
    """Binding sites, effects of mutations and sequence design from protein structures; train and compare graph models.

    \b
    Examples:
      protgraph predict ligand_site 1ubq.cif
      protgraph list trained_models
      protgraph train gat --data pdb_core --task secondary_structure
      protgraph COMMAND --help
    """


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit the process with its exit code."""
    defer_imports(only_applies_models=False)
    escape_unencodable()
    if not faulthandler.is_enabled() and sys.__stderr__ is not None:
        faulthandler.enable(sys.__stderr__)  # a segmentation fault in a plugin is located
    command = typer.main.get_command(app)
    session = _Session()
    try:
        with warnings.catch_warnings(), raise_on_signals():
            _show_warnings()
            command.main(args=None if args is None else list(args), prog_name="protgraph", obj=session)
    except (ProtgraphError, OSError) as e:
        _exit(e, 2, print_error, debug=session.debug)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as e:  # noqa: BLE001 - the last resort: shown as a fault, with its place
        _exit(e, 70, print_fault, debug=session.debug)


def _show_warnings() -> None:
    """Print warnings of protgraph as one line each, and the deprecations of names, which Python hides."""
    warnings.filterwarnings("default", message=".* is now called ", category=DeprecationWarning)
    warnings.filterwarnings("always", category=ProtgraphWarning)
    warnings.filterwarnings("ignore", ".torch.jit.script. is deprecated", FutureWarning)  # e3nn 0.6, from torch 2.15
    show = warnings.showwarning

    def show_ours(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, ProtgraphWarning):
            print_warning(message)
        else:
            show(message, category, filename, lineno, file, line)

    warnings.showwarning = show_ours


def _exit(e: BaseException, code: int, show: Callable[[BaseException], None], *, debug: bool) -> NoReturn:
    """Print an error, with its traceback if wanted, and exit."""
    if debug:
        traceback.print_exception(e)
    show(e)
    sys.exit(code)


if __name__ == "__main__":
    main()


# --- values of parameters: an empty one is an error, and an error names the value ------------------------------------

_MAY_BE_EMPTY = ("unknown",)  # '' means that no text marks an unknown label


def _check_parameters(command: Any) -> None:
    """Make a command refuse empty values, and name a value of the wrong type in its error.

    An empty value is usually an unset variable of the shell: ``--data "$FOLDER"``. As a path it would be the current
    folder, and as a selection of residues all of them.
    """
    for parameter in command.params:
        parameter.process_value = _Checked(parameter)


class _Checked:
    """``process_value`` of one parameter, with the checks."""

    def __init__(self, parameter: Any) -> None:
        self.parameter = parameter
        self.process = parameter.process_value

    def __call__(self, ctx: Any, value: Any) -> Any:
        values = list(value) if isinstance(value, list | tuple) else [value]
        source = ctx.get_parameter_source(self.parameter.name)
        is_given = source is not None and source.name != "DEFAULT"
        if "" in values and is_given and self.parameter.name not in _MAY_BE_EMPTY:
            raise typer.BadParameter(
                "'' is empty. Give a value; if it comes from a variable of the shell, set it.",
                ctx=ctx,
                param=self.parameter,
            )
        try:
            return self.process(ctx, value)
        except typer.BadParameter as e:
            texts = [repr(v) for v in values if isinstance(v, str)]
            if texts and not any(text.strip("'") in e.message for text in texts):
                e.message = f"{', '.join(texts)}. {e.message}"
            raise
