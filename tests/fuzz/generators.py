# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The generators of random kernels, by the names by which a search takes them."""

from tests.fuzz.copies import COPIES
from tests.fuzz.floats import FLOATS
from tests.fuzz.functions import FUNCTIONS
from tests.fuzz.integer_kernels import INTEGER_KERNELS
from tests.fuzz.integers import INTEGERS
from tests.fuzz.multiplications import MULTIPLICATIONS
from tests.fuzz.problem import Generator
from tests.fuzz.ragged import RAGGED, RECASTS
from tests.fuzz.tensor_instructions import TENSOR_INSTRUCTIONS
from tests.fuzz.tensor_memory import TENSOR_MEMORY

GENERATORS: dict[str, Generator] = {
    "copies": COPIES,
    "floats": FLOATS,
    "functions": FUNCTIONS,
    "integers": INTEGERS,
    "integer-kernels": INTEGER_KERNELS,
    "multiplications": MULTIPLICATIONS,
    "ragged": RAGGED,
    "recasts": RECASTS,
    "tensor-instructions": TENSOR_INSTRUCTIONS,
    "tensor-memory": TENSOR_MEMORY,
}
