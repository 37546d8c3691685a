# SPDX-License-Identifier: Apache-2.0
"""`python -m trainc ARGUMENTS`: the compiler's command line."""
import os
import sys

from trainc.compiler import find_program

if __name__ == "__main__":
    program = find_program()
    os.execv(program, [program, *sys.argv[1:]])
