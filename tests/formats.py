# SPDX-License-Identifier: Apache-2.0
"""How lit runs our tests, but for those of GoogleTest."""
import os
import resource

import lit.formats
import lit.Test
import lit.util


def processor_seconds():
    """Of all processes that this one has started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Measured:
    """Records the processor time of a test: how long it takes depends on what runs beside it."""

    def execute(self, test, litConfig):
        before = processor_seconds()
        result = super().execute(test, litConfig)
        result.addMetric("processor_seconds", lit.Test.RealMetricValue(processor_seconds() - before))
        return result


class ShellTest(Measured, lit.formats.ShTest):
    pass


class Table(lit.formats.TestFormat):
    """A test for each row of a table in a folder: `bash SCRIPT SCRATCH WORD...`, with the words of the row."""

    def __init__(self, table, script):
        self.table, self.script = table, script

    def getTestsInDirectory(self, testSuite, path_in_suite, litConfig, localConfig):
        with open(os.path.join(testSuite.getSourcePath(path_in_suite), self.table)) as file:
            rows = [line.split() for line in file if line.strip() and not line.startswith("#")]
        for words in rows:
            test = lit.Test.Test(testSuite, path_in_suite + (words[0],), localConfig)
            test.words = words
            yield test

    def execute(self, test, litConfig):
        script = os.path.join(os.path.dirname(test.getSourcePath()), self.script)
        command = ["bash", script, test.getExecPath()] + test.words
        output, errors, status = lit.util.executeCommand(command, env=test.config.environment)
        return lit.Test.Result(lit.Test.FAIL if status else lit.Test.PASS,
                               " ".join(command) + "\n" + output + errors)


class TableTest(Measured, Table):
    pass
