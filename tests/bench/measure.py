# SPDX-License-Identifier: Apache-2.0
#
# Runs a command and prints "SECONDS MEGABYTES": elapsed time and the largest
# resident size of it and of the processes it started. Standard library only.
import resource
import subprocess
import sys
import time

begin = time.perf_counter()
status = subprocess.run(sys.argv[1:], stdout=sys.stderr).returncode
seconds = time.perf_counter() - begin
megabytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
print(f"{seconds:.2f} {megabytes:.0f}")
sys.exit(status)
