"""The ``protgraph`` command: its subcommands, and errors as one message on standard error.

Exit codes: 0 success; 1 partial success, or a failed check; 2 invalid options or input; 70 an error in protgraph or a
plugin (EX_SOFTWARE of ``sysexits.h``); 130 interrupted by Ctrl-C; 143 terminated by SIGTERM.
"""

from __future__ import annotations

import faulthandler
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from protgraph.cli.console import escape_unencodable
from protgraph.cli.error_report import print_error, print_fault, print_warning
from protgraph.cli.parameters import check_parameters
from protgraph.cli.signals import exit_code, raise_on_signals
from protgraph.deferred_imports import defer_imports
from protgraph.errors import ProtgraphError, ProtgraphWarning, suggest

__all__ = ["COMMANDS", "app", "main"]

#: Subcommand → its function, or the table of a group of commands. The docstring is the help text; the module has no
#: heavy imports at the top.
COMMANDS = {
    "list": "protgraph.cli.list_info:list_command",
    "info": "protgraph.cli.list_info:info_command",
    "doctor": "protgraph.cli.doctor:doctor_command",
    "describe": "protgraph.cli.describe:describe_command",
    "fetch": "protgraph.cli.fetch:fetch_command",
    "featurize": "protgraph.cli.featurize:featurize_command",
    "export": "protgraph.cli.export:export_command",
    "data": "protgraph.cli.data:SUBCOMMANDS",
    "train": "protgraph.cli.train:train_command",
    "recipe": "protgraph.cli.recipe:recipe_command",
    "predict": "protgraph.cli.predict:predict_command",
    "embed": "protgraph.cli.predict:embed_command",
    "search": "protgraph.cli.search:search_command",
    "attention": "protgraph.cli.attention:attention_command",
    "generate": "protgraph.cli.generate:generate_command",
    "design": "protgraph.cli.design:design_command",
    "score": "protgraph.cli.score:score_command",
    "compare": "protgraph.cli.compare:compare_command",
    "mutate": "protgraph.cli.mutate:mutate_command",
    "scan": "protgraph.cli.scan:scan_command",
    "view": "protgraph.cli.view:view_command",
    "bench": "protgraph.cli.bench:SUBCOMMANDS",
    "check": "protgraph.cli.check:check_command",
    "new-plugin": "protgraph.cli.new_plugin:new_plugin_command",
}


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
    """Command group that imports each subcommand when it is used."""

    table: Mapping[str, str] = COMMANDS
    default: str = ""
    """Subcommand of a call without one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if self.default and (not args or args[0] not in (*self.table, "--help")):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.table:
            return None
        if cmd_name not in self.commands:
            self.commands[cmd_name] = _load(cmd_name, self.table)
        return self.commands[cmd_name]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in self.table:
            hint = suggest(args[0], self.table)
            ctx.fail(f"No such command {args[0]!r}.{hint} '{ctx.command_path} --help' lists all commands.")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as e:
            code = exit_code(e)
            print_error("interrupted by Ctrl-C" if code == 130 else "terminated by SIGTERM")
            raise typer.Exit(code) from None


def _load(name: str, table: Mapping[str, str] = COMMANDS) -> Any:
    """Import one subcommand, with its help as plain text: ``[fit]`` in it is a TOML table, not markup."""
    from importlib import import_module

    from rich.markup import escape

    module, _, attribute = table[name].partition(":")
    found = getattr(import_module(module), attribute)
    if isinstance(found, Mapping):
        return _group(name, found, import_module(module))
    single = typer.Typer(add_completion=False, rich_markup_mode="rich")
    single.command(name)(found)
    command = typer.main.get_command(single)
    command.params += _common_options(name)
    check_parameters(command)
    command.help = _unwrapped(command.help or "")
    for part in (command, *command.params):
        if getattr(part, "help", None):
            part.help = escape(part.help)
    return command


def _group(name: str, table: Mapping[str, str], module: ModuleType) -> Any:
    """Return a group of commands that imports each of them when it is used; ``module`` has its help and default."""
    text = module.GROUP_HELP
    group = typer.main.get_command(typer.Typer(cls=_LazyGroup, callback=_no_options, no_args_is_help=True))
    group.name, group.table, group.help = name, table, _unwrapped(text)
    group.params, group.default = _common_options(name), getattr(module, "DEFAULT", "")
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


app = typer.Typer(cls=_LazyGroup, no_args_is_help=True, add_completion=False, rich_markup_mode="rich")


def _print_version(requested: bool) -> None:
    if requested:
        from protgraph import __version__

        typer.echo(f"protgraph {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Plugin-based graph learning on protein structures: featurization, equivariant layers, benchmarks.

    \b
    Examples:
      protgraph list layers
      protgraph train gat --data pdb_core --task secondary_structure
      protgraph COMMAND --help
    """


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit the process with its exit code.

    Parameters
    ----------
    args : sequence of str, optional
        Arguments after ``protgraph``; those of the process by default.
    """
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

    def show_ours(message: Warning | str, category: type[Warning], *place: Any, **options: Any) -> None:
        if issubclass(category, ProtgraphWarning):
            print_warning(message)
        else:
            show(message, category, *place, **options)

    warnings.showwarning = show_ours


def _exit(e: BaseException, code: int, show: Callable[[BaseException], None], *, debug: bool) -> NoReturn:
    """Print an error, with its traceback if wanted, and exit."""
    if debug:
        traceback.print_exception(e)
    show(e)
    sys.exit(code)


if __name__ == "__main__":
    main()
