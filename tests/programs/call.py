# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tilefold.cutlass tests/programs/call.py -- FILE FUNCTION NAME=VALUE ...`: calls a function of a library's
tests, whose own parameters are too large for the simulator. Values are expressions of Python in the names of the file.
In place of FUNCTION there may be an expression, which must not be False; it may name torch.
"""

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path


def main(path: str, function: str, arguments: list[str]) -> None:
    """Imports the file as its tests are, with the library's folder first on the path, and calls the function."""
    file = Path(path).resolve()
    library = next((folder for folder in file.parents if (folder / "tests").is_dir()), file.parent)
    sys.path[:0] = [str(library), str(file.parent)]
    spec = spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    if not function.isidentifier():
        names = {"torch": import_module("torch"), **vars(module)}
        if eval(function, names) is False:
            sys.exit(f"this is false: {function}")
        return
    split = (argument.split("=", 1) for argument in arguments)
    getattr(module, function)(**{name: eval(value, vars(module)) for name, value in split})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
