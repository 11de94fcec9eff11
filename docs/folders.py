# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The picture of the folders in docs/architecture.md: what each is for, and which others its modules import."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tilefold.layout.drawing.scene import Box, Group, Label, Line, Picture, Primitive, Shape, text_width, wrap_text

from tests.project.tree import PRODUCT, ROOT, docstring_of, imported_modules, module_name, product_files

ARCHITECTURE = Path(__file__).parent / "pictures" / "architecture.svg"
"""The file of the picture."""

_COLUMN = 216
"""The width of a subfolder's box, in pixels."""
_GAP = 10
_PAD = 12
_ARROW = 34
"""The room between two layers, in which the arrows are."""
_LINE = 15
_SIZE = 11
_GREY, _BLUE = "#5b6475", "#1d4f91"

_COLUMNS = {
    "tilefold": range(0, 4),
    "builder": range(0, 2),
    "compiler": range(0, 2),
    "passes": range(0, 2),
    "runtime": range(2, 4),
    "dialects": range(0, 4),
    "layout": range(0, 4),
    "base": range(0, 4),
}
"""The layers from top to bottom: each stands below the layers before it that share one of its columns."""
_FILLS = ("#eef3fb", "#fbf3e6", "#eef7ee", "#f6eefb", "#f0f4f4", "#f9f0f0", "#f2f2f2", "#f4f4ea")


@dataclass(frozen=True)
class Folder:
    """A folder that holds modules, by its path from the root: its purpose, its modules, and the folders it imports."""

    path: str
    purpose: str
    modules: tuple[str, ...]
    imports: tuple[str, ...]


def folders() -> Mapping[str, Folder]:
    """Every folder of the product by its path, read from the files and their imports."""
    files = {module_name(path): path for path in product_files()}
    imports, modules = defaultdict[str, set[str]](set), defaultdict[str, list[str]](list)
    for path in files.values():
        here = _folder(path)
        if not path.name.startswith("__"):
            modules[here].append(path.stem)
        for name in imported_modules(path):
            if name.partition(".")[0] == "tilefold":
                while name not in files:
                    name = name.rpartition(".")[0]
                imports[here].add(_folder(files[name]))
    paths = sorted(_folder(path) for path in files.values() if path.name == "__init__.py")
    return {
        path: Folder(
            path,
            " ".join(docstring_of(ROOT / path / "__init__.py").split("\n\n")[0].replace("`", "").split()),
            tuple(sorted(modules[path])),
            tuple(sorted(imports[path] - {path})),
        )
        for path in paths
    }


def layer_imports() -> Mapping[str, frozenset[str]]:
    """For each folder at the root those that its modules import, at any depth."""
    imports = {layer: set[str]() for layer in PRODUCT}
    for path, folder in folders().items():
        imports[_layer(path)] |= {_layer(other) for other in folder.imports}
    return {layer: frozenset(others - {layer}) for layer, others in imports.items()}


def picture() -> Picture:
    """The layers from top to bottom with their folders; an arrow leads to the layers that are imported."""
    known = folders()
    parts, bottoms = list[Primitive](), dict[int, float]()
    boxes = {layer: _layer_parts(layer, known) for layer in _COLUMNS}
    spans: dict[str, tuple[float, float]] = {}
    for layer, columns in _COLUMNS.items():
        top = max((bottoms[column] + _ARROW for column in columns if column in bottoms), default=_PAD)
        spans[layer] = top, top + boxes[layer][1]
        bottoms.update(dict.fromkeys(columns, top + boxes[layer][1]))
    for number, (layer, columns) in enumerate(_COLUMNS.items()):
        below = [spans[other][0] for other in _below(layer)]
        end = min(below) - _ARROW if below else spans[layer][1]  # beside a taller layer, a layer is as tall
        spans[layer] = spans[layer][0], end
        left, width = _across(columns)
        parts.append(Box(left, spans[layer][0], width, end - spans[layer][0], _FILLS[number], "#9aa3b2"))
        parts.append(Group(left, spans[layer][0], tuple(boxes[layer][0])))
    imports = layer_imports()
    for layer, direct in imports.items():
        for other in sorted(direct):
            if not any(other in imports[between] for between in direct):
                parts += _arrow(layer, other, spans)
    width = _across(range(4))[1] + 2 * _PAD
    title = "; ".join(f"{layer} imports {', '.join(sorted(imports[layer])) or 'no other layer'}" for layer in _COLUMNS)
    return Picture(title, width, max(bottoms.values()) + _PAD, tuple(parts))


def _layer(path: str) -> str:
    return path.partition("/")[0]


def _folder(path: Path) -> str:
    return path.relative_to(ROOT).parent.as_posix()


def _below(layer: str) -> Iterator[str]:
    later = list(_COLUMNS)[list(_COLUMNS).index(layer) + 1 :]
    return (other for other in later if set(_COLUMNS[other]) & set(_COLUMNS[layer]))


def _across(columns: range) -> tuple[float, float]:
    """Where a layer of these columns begins, and its width."""
    step = _COLUMN + _GAP
    between = 2 * _PAD + _GAP  # the two middle columns may be of two layers
    left = _PAD + columns[0] * step + (between if columns[0] >= 2 else 0)
    right = _PAD + columns[-1] * step + _COLUMN + (between if columns[-1] >= 2 else 0)
    return left, right - left + 2 * _PAD


def _layer_parts(layer: str, known: Mapping[str, Folder]) -> tuple[list[Primitive], float]:
    """The parts of a layer's box, from its corner, and its height."""
    width = _across(_COLUMNS[layer])[1]
    name = f"{layer}/"
    lines = wrap_text(known[layer].purpose, _SIZE, width - 3 * _PAD - text_width(name, 15))
    indent = 2 * _PAD + text_width(name, 15)
    parts: list[Primitive] = [Label(_PAD, 24, name, 15, anchor="start", bold=True)]
    parts += _text(lines, indent, 24, _GREY)
    y = 24 + (len(lines) - 1) * _LINE + 8
    if own := known[layer].modules:
        lines = wrap_text(", ".join(own), _SIZE, width - 2 * _PAD)
        parts += _text(lines, _PAD, y + _LINE, "#1f2430")
        y += len(lines) * _LINE + 8
    inside = [path for path in known if path.count("/") == 1 and _layer(path) == layer]
    per_row = len(inside) if len(inside) == len(_COLUMNS[layer]) + 1 == 5 else len(_COLUMNS[layer])
    column = (width - 2 * _PAD - (per_row - 1) * _GAP) / per_row
    for start in range(0, len(inside), per_row):
        row = [_folder_lines(path, known, column) for path in inside[start : start + per_row]]
        height = max(sum(len(lines) for lines, _ in block) for block in row) * _LINE + _LINE + 16
        for number, block in enumerate(row):
            x = _PAD + number * (column + _GAP)
            name = inside[start + number].partition("/")[2]
            parts.append(Box(x, y + 4, column, height - 4, "#ffffff", "#c3cad6"))
            parts.append(Label(x + 8, y + 20, f"{name}/", anchor="start", bold=True))
            at = y + 20 + _LINE
            for lines, colour in block:
                parts += _text(lines, x + 8, at, colour)
                at += len(lines) * _LINE
        y += height + 6
    return parts, y + 6


def _folder_lines(path: str, known: Mapping[str, Folder], width: float) -> list[tuple[list[str], str]]:
    """The texts of a subfolder: its purpose, its own folders, and its neighbours that it imports."""
    room = width - 16
    inner = [other for other in known if other.startswith(f"{path}/") and other.count("/") == 2]
    reached = {other for name in known if (name + "/").startswith(f"{path}/") for other in known[name].imports}
    neighbours = sorted({other.split("/")[1] for other in reached if other.startswith(f"{_layer(path)}/")})
    neighbours = [name for name in neighbours if f"{_layer(path)}/{name}" != path]
    texts = [(wrap_text(known[path].purpose, _SIZE, room), _GREY)]
    if inner:
        texts.append((wrap_text(" ".join(f"{name.rpartition('/')[2]}/" for name in inner), _SIZE, room), "#1f2430"))
    if neighbours:
        texts.append((wrap_text("\N{RIGHTWARDS ARROW} " + ", ".join(neighbours), _SIZE, room), _BLUE))
    return texts


def _text(lines: list[str], x: float, y: float, colour: str) -> list[Primitive]:
    return [Label(x, y + n * _LINE, line, _SIZE, colour, anchor="start") for n, line in enumerate(lines)]


def _arrow(layer: str, other: str, spans: Mapping[str, tuple[float, float]]) -> Iterator[Primitive]:
    """From a layer down to one that it imports, over the middle of the columns that they share."""
    shared = sorted(set(_COLUMNS[layer]) & set(_COLUMNS[other]))
    assert shared, f"{layer} imports {other}, which does not stand below it"
    left, width = _across(range(shared[0], shared[-1] + 1))
    x, start, end = left + width / 2, spans[layer][1], spans[other][0]
    assert start < end, f"{layer} imports {other}, which stands above it"
    yield Line((x, start), (x, end - 8), 3, _BLUE)
    yield Shape(((x - 7, end - 11), (x + 7, end - 11), (x, end)), _BLUE)
