"""Write the types of all settings into the options modules of graphs and judges.

The modules are ``graphs/engine/options.py``, ``eval/judges/judge_options.py`` and
``eval/judges/gate_options.py``. A setting is declared once, in its class in ``state/settings``. Type
checkers need it again as a ``TypedDict``, for ``debate.build(n=2)``, ``create_judge("debate", n=2)``
and ``AnswerGate("debate", n=2)``. Run this after a change of a settings
class::

    python -m benchmarks.make_options          write the files (run `ruff format` afterwards)
    python -m benchmarks.make_options --check  exit with 1 if the files are outdated
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from jurygraph.graphs.engine.options import ProtocolName
from jurygraph.graphs.engine.registry import find_protocol
from jurygraph.state.settings import Settings, WrapperSettings
from jurygraph.state.settings.option_types import TypedAs

ROOT = Path(__file__).resolve().parents[1]
OPTIONS = ROOT / "graphs" / "engine" / "options.py"
JUDGE_OPTIONS = ROOT / "eval" / "judges" / "judge_options.py"
GATE_OPTIONS = ROOT / "eval" / "judges" / "gate_options.py"
BEGIN = (
    "# Written by benchmarks/make_options.py from state/settings. Do not edit below this line.\n"
)
END = "# End of what benchmarks/make_options.py writes.\n"
COMMON = "CommonOptions"


def protocol_names() -> list[str]:
    """Return the names of the bundled protocols."""
    return sorted(
        name for literal in get_args(ProtocolName) for name in get_args(literal) or [literal]
    )


def settings_class(name: str) -> type[Settings]:
    found: type[Settings] = find_protocol(name).protocol.settings
    return found


def own_fields(settings: type[Settings]) -> list[str]:
    """Return the names of the settings that not every protocol has."""
    return [field for field in settings.model_fields if field not in Settings.model_fields]


def class_names() -> dict[str, str]:
    """Return each protocol's options class; protocols with the same settings share one."""
    named: dict[str, str] = {}
    for name in sorted(protocol_names(), key=lambda name: len(settings_class(name).__mro__)):
        settings = settings_class(name)
        fields = own_fields(settings)
        same = (
            other
            for other in named
            if issubclass(settings, settings_class(other))
            and own_fields(settings_class(other)) == fields
        )
        shared = next(same, None)
        if not fields:
            named[name] = COMMON
        elif shared is not None:
            named[name] = named[shared]
        else:
            named[name] = settings.__name__.replace("Settings", "Options")
    return dict(sorted(named.items()))


def type_code(hint: Any) -> str:
    """Return a setting's type as callers give it, as Python source.

    >>> type_code(Annotated[int, "bounds"] | None)
    'int | None'
    """
    if get_origin(hint) is Annotated:
        plain, *marks = get_args(hint)
        chosen = [mark.code for mark in marks if isinstance(mark, TypedAs)]
        return chosen[0] if chosen else type_code(plain)
    if get_origin(hint) is Literal:
        values = ", ".join(
            f'"{value}"' if isinstance(value, str) else repr(value) for value in get_args(hint)
        )
        return f"Literal[{values}]"
    if get_origin(hint) in (Union, UnionType):
        return " | ".join(type_code(part) for part in get_args(hint))
    if hint is NoneType:
        return "None"
    if hint in (str, int, float, bool):
        return str(hint.__name__)
    raise TypeError(f"mark the field's type with TypedAs: nothing is known of {hint}")


def typed_fields(settings: type[Settings], names: list[str]) -> Iterator[str]:
    """Yield the line of each setting."""
    hints = get_type_hints(settings, include_extras=True)
    for name in names:
        yield f"    {name}: {type_code(hints[name])}\n"


def option_classes() -> str:
    """Return the source of all options classes."""
    named = class_names()
    common = [field for field in Settings.model_fields if field != "models"]
    parts = [
        f"class {COMMON}(TypedDict, total=False):\n"
        '    """The settings of every protocol; ``models`` is a separate argument of ``build``."""\n\n'
        "    model: Model\n",
        *typed_fields(Settings, common),
    ]
    inner_bases: list[str] = []
    for class_name in dict.fromkeys(named.values()):
        if class_name == COMMON:
            continue
        protocols = [name for name in named if named[name] == class_name]
        settings = settings_class(protocols[0])
        listed = " and ".join(f"``{name}``" for name in protocols)
        parts.append(
            f'\n\nclass {class_name}({COMMON}, total=False):\n    """The settings of {listed}."""\n\n'
        )
        parts += typed_fields(settings, own_fields(settings))
        if not issubclass(settings, WrapperSettings):
            inner_bases.append(class_name)
    bases = "".join(f"    {base},\n" for base in inner_bases)
    parts.append(
        f"\n\nclass InnerOptions(\n{bases}    total=False,\n):\n"
        '    """Settings of a protocol inside a wrapper. Give those of an inner wrapper as a dict."""\n\n'
        "    models: Models\n"
    )
    wrappers: list[str] = []
    types: dict[str, str] = {}
    for name, class_name in named.items():
        if class_name in inner_bases or class_name == COMMON:
            continue
        settings = settings_class(name)
        hints = get_type_hints(settings, include_extras=True)
        own = {field: type_code(hints[field]) for field in own_fields(settings)}
        # A setting of one name and two types can only be given under the name of the protocol.
        if all(types.get(field, code) == code for field, code in own.items()):
            wrappers.append(class_name)
            types.update(own)
    parts.append(
        f"\n\nclass RunSettings(InnerOptions, {', '.join(wrappers)}, total=False):\n"
        '    """The settings of a run: those of all its protocols, and those of one under its name."""\n\n'
    )
    parts += [f"    {name}: {class_name}\n" for name, class_name in named.items()]
    return "".join(parts)


def judge_name(class_name: str) -> str:
    return "BaselineJudge" if class_name == COMMON else class_name.replace("Options", "Judge")


def judge_classes() -> str:
    """Return the source of the arguments of ``create_judge`` by protocol, and of its overloads."""
    named = class_names()
    parts = []
    for class_name in dict.fromkeys(named.values()):
        protocols = " and ".join(f"``{name}``" for name in named if named[name] == class_name)
        parts.append(
            f"class {judge_name(class_name)}(WithModels, options.{class_name}):\n"
            f'    """The arguments of all judges and the settings of {protocols}."""\n\n\n'
        )
    parts.append(
        "class MakesJudge(Protocol[Made_co]):\n"
        '    """Takes the arguments of ``create_judge``; a graph has its settings already."""\n\n'
        "    @overload\n"
        "    def __call__(self, judge: None = None, /, **options: Unpack[SingleJudge]) -> Made_co: ...\n"
    )
    for class_name in dict.fromkeys(named.values()):
        names = ", ".join(f'"{name}"' for name in named if named[name] == class_name)
        parts.append(
            "    @overload\n    def __call__(\n"
            f"        self, judge: Literal[{names}], /, **options: Unpack[{judge_name(class_name)}]\n"
            "    ) -> Made_co: ...\n"
        )
    parts.append(
        "    @overload\n    def __call__(\n"
        "        self, judge: ModuleType | AnyGraph, /, **options: Unpack[JudgeOptions]\n    ) -> Made_co: ...\n"
    )
    return "".join(parts)


def gate_classes() -> str:
    """Return the source of the arguments of ``AnswerGate`` by protocol, and of its overloads."""
    named = class_names()
    parts = []
    overloads = []
    for class_name in dict.fromkeys(named.values()):
        judge = judge_name(class_name)
        gate = judge.replace("Judge", "Gate")
        of = [name for name in named if named[name] == class_name]
        listed = " and ".join(f"``{name}``" for name in of)
        parts.append(
            f"class {gate}(GateOptions, options.{judge}):\n"
            f'    """The arguments of all gates and the settings of {listed}."""\n\n\n'
        )
        names = ", ".join(f'"{name}"' for name in of)
        overloads.append(
            "    @overload\n    def __init__(\n"
            f"        self, judge: Literal[{names}], aspect: Rated = None, /, "
            f"**options: Unpack[{gate}]\n    ) -> None: ...\n"
        )
    parts.append(
        "class TakesGateOptions:\n"
        '    """Takes the arguments of ``AnswerGate``; a graph has its settings already."""\n\n'
    )
    return "".join((*parts, *overloads))


def written(file: Path, block: str) -> str:
    """Return a file's text with the block between the marks replaced."""
    text = file.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{block}\n\n{END}{after}"


def all_files() -> dict[Path, str]:
    return {
        OPTIONS: written(OPTIONS, option_classes()),
        JUDGE_OPTIONS: written(JUDGE_OPTIONS, judge_classes()),
        GATE_OPTIONS: written(GATE_OPTIONS, gate_classes()),
    }


def is_same_code(file: Path, text: str) -> bool:
    """Return whether a file has this code, in whatever layout the formatter has given it."""
    return ast.dump(ast.parse(file.read_text(encoding="utf-8"))) == ast.dump(ast.parse(text))


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the types of all settings.")
    parser.add_argument(
        "--check", action="store_true", help="only compare; exit with 1 if a file differs"
    )
    check = parser.parse_args().check
    different = {file: text for file, text in all_files().items() if not is_same_code(file, text)}
    for file, text in different.items():
        print(file.relative_to(ROOT))
        if not check:
            file.write_text(text, encoding="utf-8")
    return int(check and bool(different))


if __name__ == "__main__":
    sys.exit(main())
