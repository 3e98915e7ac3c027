"""Hold the mechanical ceilings of the house over src/ and sdk/, and keep mocks and sleeps out of tests/.

    python scripts/shape.py [ROOT]

What is over a ceiling fails the check unless `scripts/shape.json` accepts it. That file maps the key of a
finding (`PATH WHAT`, as printed, without the line) to the number that is tolerated. It starts empty and may
only shrink: an entry that is not needed, or higher than what is measured, fails as well. Alarms fail nothing.

`# shape: table` on a line of its own among the first five, or on the line of a `def` or `class`, lifts the
ceilings of length and no others: this is a table or generated, and nobody reads it from top to bottom.
`# supervisor: REASON` on the line of an `except Exception` makes it one of the few places that may catch
everything. A handler that always raises again (it ends in a bare `raise`, and nothing leaves before) is free.
"""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import time
import tokenize
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOTS = ("src", "sdk")
TESTS = "tests"
KERNEL = "src/operant/kernel"

FILE_LINES, FILE_ALARM = 500, 300
FUNCTION_LINES, FUNCTION_ALARM = 60, 40
CLASS_LINES = 300
PARAMETERS = 6
COMPLEXITY = 10
NESTING = 3
KERNEL_CODE = 2000
FILE_CODE = {f"{KERNEL}/turn.py": 250}
SUPERVISORS = 4
NAME_WORDS = 3  # alarm only

TABLE = re.compile(r"#\s*shape:\s*table\b")
SUPERVISOR = re.compile(r"#.*\bsupervisor:\s*(?P<reason>\S.*)")
EVERYTHING = {"Exception", "BaseException"}
LOOPS = {"get_running_loop", "get_event_loop", "new_event_loop"}

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = Function | ast.ClassDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)
LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler)


@dataclass(frozen=True)
class Finding:
    """One measured thing: where it is, what was measured, how much, and how much may be."""

    path: str
    line: int
    what: str
    value: int
    ceiling: int
    alarm: bool = False

    @property
    def key(self) -> str:
        return f"{self.path} {self.what}"

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.what} is {self.value}, ceiling {self.ceiling}"


@dataclass(frozen=True)
class Supervisor:
    """A place that may catch everything, and why."""

    path: str
    line: int
    reason: str


@dataclass(frozen=True)
class Source:
    """One parsed file."""

    path: str
    text: str
    tree: ast.Module

    @cached_property
    def lines(self) -> list[str]:
        return self.text.removesuffix("\n").split("\n")  # not splitlines(): it knows newlines that Python does not

    @cached_property
    def code_lines(self) -> int:
        """Count the lines with code on them: no blank lines, comments or docstrings; an import is one line."""
        docstrings = {docstring_start(node) for node in ast.walk(self.tree)}
        lines: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type not in LAYOUT and token.start not in docstrings:
                lines.update(range(token.start[0], token.end[0] + 1))
        imports = [node for node in ast.walk(self.tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
        wrapped = {line for node in imports for line in range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)}
        return len(lines - wrapped)

    @property
    def is_test(self) -> bool:
        return self.path.startswith(f"{TESTS}/")

    @property
    def is_table(self) -> bool:
        return any(TABLE.match(line) for line in self.lines[:5])


def docstring_start(node: ast.AST) -> tuple[int, int] | None:
    """Return the row and column at which the docstring of a module, class or function starts."""
    if not isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Module)) or ast.get_docstring(node, clean=False) is None:
        return None
    return node.body[0].lineno, node.body[0].col_offset


# ---------------------------------------------------------------------------------------------- walking


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below a scope, without the insides of functions and classes defined in it."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, (*FUNCTIONS, ast.ClassDef)):
            yield from own_nodes(child)


def named_scopes(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Scope]]:
    """Yield every function and class with its dotted name, outermost first."""
    for child in own_nodes(node):
        if isinstance(child, (*FUNCTIONS, ast.ClassDef)):
            name = f"{prefix}{child.name}"
            yield name, child
            yield from named_scopes(child, f"{name}.")


# ---------------------------------------------------------------------------------------------- measuring


def length(node: Scope) -> int:
    """Count the lines from `def` or `class` to the end, decorators left out."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def parameters(function: Function) -> int:
    """Count what a caller may pass, without `self` and `cls`."""
    spec = function.args
    positional = [*spec.posonlyargs, *spec.args]
    bound = bool(positional) and positional[0].arg in {"self", "cls"}
    stars = [star for star in (spec.vararg, spec.kwarg) if star]
    return len(positional) - bound + len(spec.kwonlyargs) + len(stars)


def complexity(function: Function) -> int:
    """Count the ways through: one, and one for each branch, loop, handler, case and comprehension filter."""
    ways = 1
    for node in own_nodes(function):
        if isinstance(node, BRANCHES):
            ways += 1
        elif isinstance(node, ast.comprehension):
            ways += len(node.ifs)
        elif isinstance(node, ast.Match):
            ways += sum(not is_default(case) for case in node.cases)
    return ways


def is_default(case: ast.match_case) -> bool:
    return isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and case.guard is None


def nesting(node: ast.AST, depth: int = 0) -> int:
    """Return how many blocks deep the deepest statement of a function stands."""
    deepest = depth
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (*FUNCTIONS, ast.ClassDef)):
            continue
        inner = depth + (isinstance(child, BLOCKS) and not is_elif(node, child))
        deepest = max(deepest, nesting(child, inner))
    return deepest


def is_elif(parent: ast.AST, child: ast.AST) -> bool:
    """Tell `elif` from an `if` inside `else`: only the former stands in its parent's column."""
    if not (isinstance(parent, ast.If) and isinstance(child, ast.If)):
        return False
    return parent.orelse == [child] and parent.col_offset == child.col_offset


# ---------------------------------------------------------------------------------------------- rules


def file_findings(source: Source) -> Iterator[Finding]:
    size = len(source.lines)
    if not source.is_table:
        yield Finding(source.path, 1, "length of file", size, FILE_LINES)
        yield Finding(source.path, 1, "length of file", size, FILE_ALARM, alarm=True)
    if ceiling := FILE_CODE.get(source.path):
        yield Finding(source.path, 1, "code lines of file", source.code_lines, ceiling)


def scope_findings(source: Source) -> Iterator[Finding]:
    for name, scope in named_scopes(source.tree):
        is_table = source.is_table or bool(TABLE.search(source.lines[scope.lineno - 1]))
        if isinstance(scope, ast.ClassDef):
            if not is_table:
                yield Finding(source.path, scope.lineno, f"length of class {name}", length(scope), CLASS_LINES)
        else:
            yield from function_findings(source.path, name, scope, is_table)


def function_findings(path: str, name: str, function: Function, is_table: bool) -> Iterator[Finding]:
    line = function.lineno
    if not is_table:
        what = f"length of function {name}"
        yield Finding(path, line, what, length(function), FUNCTION_LINES)
        yield Finding(path, line, what, length(function), FUNCTION_ALARM, alarm=True)
    yield Finding(path, line, f"number of parameters of {name}", parameters(function), PARAMETERS)
    yield Finding(path, line, f"complexity of {name}", complexity(function), COMPLEXITY)
    yield Finding(path, line, f"nesting of {name}", nesting(function), NESTING)
    words = len([word for word in function.name.split("_") if word])
    yield Finding(path, line, f"number of words in the name {name}", words, NAME_WORDS, alarm=True)


def ban_findings(source: Source) -> Iterator[Finding]:
    """Yield what must not occur at all, by the scope in which it stands."""
    bans = TEST_BANS if source.is_test else BANS
    for name, scope in [("the module", source.tree), *named_scopes(source.tree)]:
        for node in own_nodes(scope):
            broken = (what for what, occurs in bans.items() if occurs(source, node))
            yield from (Finding(source.path, line_of(node), f"number of {what} in {name}", 1, 0) for what in broken)


def line_of(node: ast.AST) -> int:
    return getattr(node, "lineno", 1)


def catches_everything(source: Source, node: ast.AST) -> bool:
    if is_suppress(node):
        return True
    return is_broad(node) and not raises_again(node) and supervisor_reason(source, node) is None


def is_broad(node: ast.AST) -> bool:
    if not isinstance(node, ast.ExceptHandler):
        return False
    return node.type is None or names_everything(node.type)


def names_everything(expression: ast.expr) -> bool:
    if isinstance(expression, ast.Tuple):
        return any(names_everything(part) for part in expression.elts)
    return called(expression) in EVERYTHING


def is_suppress(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and called(node.func) == "suppress" and any(map(names_everything, node.args))


def raises_again(handler: ast.AST) -> bool:
    if not isinstance(handler, ast.ExceptHandler):
        return False
    leaves = any(isinstance(node, (ast.Return, ast.Break, ast.Continue)) for node in own_nodes(handler))
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None and not leaves


def supervisor_reason(source: Source, node: ast.AST) -> str | None:
    match = SUPERVISOR.search(source.lines[line_of(node) - 1])
    return match["reason"] if match else None


def swallows(source: Source, node: ast.AST) -> bool:
    return isinstance(node, ast.ExceptHandler) and all(is_nothing(statement) for statement in node.body)


def is_nothing(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def starts_loose_task(source: Source, node: ast.AST) -> bool:
    if not (isinstance(node, ast.Call) and called(node.func) in {"create_task", "ensure_future"}):
        return False
    if isinstance(node.func, ast.Name):
        return True
    owner = node.func.value if isinstance(node.func, ast.Attribute) else node.func
    name = called(owner.func if isinstance(owner, ast.Call) else owner)
    return name == "asyncio" or name in LOOPS or name.endswith("loop")


def mocks(source: Source, node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == "unittest.mock" or (
            node.module == "unittest" and any(alias.name == "mock" for alias in node.names)
        )
    return isinstance(node, ast.Import) and any(alias.name == "unittest.mock" for alias in node.names)


def sleeps(source: Source, node: ast.AST) -> bool:
    """Tell a call of `sleep`; `sleep(0)` only lets others run, and is free."""
    if not (isinstance(node, ast.Call) and called(node.func) == "sleep"):
        return False
    return not (len(node.args) == 1 and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0)


def called(expression: ast.expr) -> str:
    """Return the last name of `a`, `a.b` or `a.b.c`."""
    if isinstance(expression, ast.Attribute):
        return expression.attr
    return expression.id if isinstance(expression, ast.Name) else ""


BANS: dict[str, Callable[[Source, ast.AST], bool]] = {
    "handlers that catch everything": catches_everything,
    "handlers that swallow": swallows,
    "tasks that nobody holds": starts_loose_task,
}
TEST_BANS: dict[str, Callable[[Source, ast.AST], bool]] = {"mocks": mocks, "sleeps": sleeps}


def find_supervisors(sources: Iterable[Source]) -> list[Supervisor]:
    found: list[Supervisor] = []
    for source in sources:
        elsewhere = source.is_test or str(source.path).startswith("sdk/")  # an SDK runs in the processes of others
        for node in [] if elsewhere else ast.walk(source.tree):
            reason = supervisor_reason(source, node) if is_broad(node) else None
            if reason:
                found.append(Supervisor(source.path, line_of(node), reason))
    return found


# ---------------------------------------------------------------------------------------------- the whole


def read_sources(root: Path) -> list[Source]:
    """Parse every Python file of the roots; SyntaxError names the first that does not parse."""
    return [parse(path.read_text("utf-8"), path.relative_to(root).as_posix()) for path in find_files(root)]


def find_files(root: Path) -> Iterator[Path]:
    """Yield the sources, and those tests that pytest collects: a fake server may well sleep."""
    for name, pattern in [*((name, "*.py") for name in ROOTS), (TESTS, "test_*.py"), (TESTS, "conftest.py")]:
        yield from (path for path in sorted((root / name).rglob(pattern)) if not hidden(path, root))


def parse(text: str, path: str) -> Source:
    return Source(path, text, ast.parse(text, filename=path))


def hidden(path: Path, root: Path) -> bool:
    return any(part.startswith(".") or part == "node_modules" for part in path.relative_to(root).parts)


def kernel_code(sources: list[Source]) -> int:
    """Count the kernel's code; its tables (records, ports, points, syscalls) are declarations and do not count."""
    return sum(source.code_lines for source in sources if source.path.startswith(f"{KERNEL}/") and not source.is_table)


def measure(sources: list[Source]) -> list[Finding]:
    """Return what is over a ceiling, one finding a thing. Tests have bans and no ceilings."""
    findings = [
        finding
        for source in sources
        for rule in ((ban_findings,) if source.is_test else (file_findings, scope_findings, ban_findings))
        for finding in rule(source)
    ]
    findings.append(Finding(KERNEL, 1, "code lines of the kernel", kernel_code(sources), KERNEL_CODE))
    findings.extend(
        Finding(extra.path, extra.line, "number of supervisors of the house", number, SUPERVISORS)
        for number, extra in enumerate(find_supervisors(sources), 1)
    )
    over = [finding for finding in findings if finding.value > finding.ceiling]
    broken = {finding.key for finding in over if not finding.alarm}
    return [finding for finding in over if not (finding.alarm and finding.key in broken)]


def weigh(violations: list[Finding], accepted: dict[str, int]) -> list[str]:
    """Return the complaints: what the ratchet does not cover, and what it covers without need."""
    by_key: dict[str, list[Finding]] = defaultdict(list)
    for finding in violations:
        by_key[finding.key].append(finding)
    complaints: list[str] = []
    totals: dict[str, int] = {}
    for key, group in by_key.items():
        totals[key] = max(len(group), *(finding.value for finding in group))
        if totals[key] > accepted.get(key, 0):
            complaints.extend(map(str, group))
    for key, tolerated in accepted.items():
        if key not in totals:
            complaints.append(f"scripts/shape.json: {key!r} is not needed any more: remove the entry")
        elif totals[key] < tolerated:
            complaints.append(f"scripts/shape.json: {key!r} is {totals[key]} by now: lower the entry from {tolerated}")
    return complaints


def read_ratchet(root: Path) -> dict[str, int]:
    path = root / "scripts" / "shape.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def summary(sources: list[Source], findings: list[Finding], accepted: int, seconds: float) -> str:
    supervisors = len(find_supervisors(sources))
    files = sum(not source.is_test for source in sources)
    alarms = sum(finding.alarm for finding in findings)
    return (
        f"shape: {files} files, kernel {kernel_code(sources)} of {KERNEL_CODE} code lines, "
        f"{supervisors} of {SUPERVISORS} supervisors, {alarms} alarms, {accepted} accepted, {seconds:.2f} s"
    )


def main(arguments: list[str]) -> int:
    began = time.perf_counter()
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    try:
        sources = read_sources(root)
    except SyntaxError as error:
        print(f"{error.filename}:{error.lineno} cannot be parsed: {error.msg}")
        return 1
    findings = measure(sources)
    accepted = read_ratchet(root)
    complaints = weigh([finding for finding in findings if not finding.alarm], accepted)
    for finding in findings:
        if finding.alarm:
            print(f"alarm: {finding}")
    for supervisor in find_supervisors(sources):
        print(f"supervisor: {supervisor.path}:{supervisor.line} {supervisor.reason}")
    for complaint in complaints:
        print(complaint)
    print(summary(sources, findings, len(accepted), time.perf_counter() - began))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
