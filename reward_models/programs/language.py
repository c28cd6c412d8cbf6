"""The reward language: one Python function over named signals, cut down until it cannot hurt.

```
def reward(tip, red_cube_pos, action):
    gap = norm(tip - red_cube_pos)
    return {"near": near(gap, 0.05), "effort": -0.01 * dot(action, action)}
```

A program speaks of ONE row: ``tip`` is a vector of three numbers, ``gap`` one number. ``tip[:, 2]``
and ``axis=-1`` are read as numpy users mean them, so the same text may be written for a batch.

``parse`` answers with a syntax tree made of an allow-list of nodes alone; whatever Python grows
next is refused by default. Nothing of the author's text is ever executed: ``lower`` turns the tree
into our own representation and ``runtime`` prints our own source from that.
"""

from __future__ import annotations

import ast
import difflib
import math
import os
import re
import warnings
from typing import Any

from reward_models.programs.diagnostics import Diagnostic, Refused

MAX_CHARS = 8_000
MAX_BRACKETS = 40  # nesting depth of brackets, counted before Python's parser sees the text
MAX_NODES = 1_200
MAX_DEPTH = 60  # of the tree; a sum of 50 terms has 50
MAX_COMPONENTS = 16
MAX_INT = 10**9
MAX_FLOAT = 1e12
MAX_EXPONENT = 8

CONSTANTS = {"pi": math.pi}
RESERVED = CONSTANTS.keys() | {"np", "numpy", "reward"}
_COMPONENT = re.compile(r"[a-z][a-z0-9_]{0,39}")
_COOKIE = re.compile(r"^[ \t\f]*#.*?coding[:=]")  # as Python's own reader looks for it
_SIGNS = re.compile(r"(?:[-+~][\s\\]*){9}")
_CHAIN = re.compile(r"(?:\.\s*\w+\s*){9}")
# A comment or a text, whichever comes first; one that is not closed is Python's to refuse.
_ASIDE = re.compile(
    r"""
    \#[^\n]* | \"{3} (?:\\.|[^\\])*? (?:\"{3}|\Z) | '{3} (?:\\.|[^\\])*? (?:'{3}|\Z)
    | "(?:\\.|[^"\\\n])*"? | '(?:\\.|[^'\\\n])*'?
    """,
    re.VERBOSE | re.DOTALL,
)
_FORMATTED = re.compile(r"[fFtT][rR]?[\"']")
_BRACKET = re.compile(r"[][(){}]")
_ODD = re.compile(r"[^\t\n\f -\x7f]")

_BINARY = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod, ast.Pow, ast.BitAnd, ast.BitOr)
_UNARY = (ast.USub, ast.UAdd, ast.Invert)
_COMPARE = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_NOT_WORDS = {
    ast.IfExp: "a conditional expression",
    ast.BoolOp: "'and' / 'or'",
    ast.Lambda: "a lambda",
    ast.ListComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension",
    ast.GeneratorExp: "a generator",
    ast.NamedExpr: "':='",
    ast.List: "a list",
    ast.Tuple: "a tuple",
    ast.Set: "a set",
    ast.Dict: "a dictionary",
    ast.Starred: "'*'",
    ast.Await: "'await'",
    ast.Yield: "'yield'",
    ast.YieldFrom: "'yield'",
    ast.Slice: "a slice",
}
_STATEMENTS = {
    ast.For: "a loop",
    ast.AsyncFor: "a loop",
    ast.While: "a loop",
    ast.If: "'if'",
    ast.With: "'with'",
    ast.AsyncWith: "'with'",
    ast.Try: "'try'",
    ast.TryStar: "'try'",
    ast.Raise: "'raise'",
    ast.Assert: "'assert'",
    ast.Delete: "'del'",
    ast.Global: "'global'",
    ast.Nonlocal: "'nonlocal'",
    ast.ClassDef: "a class",
    ast.FunctionDef: "an inner function",
    ast.AsyncFunctionDef: "an inner function",
    ast.Match: "'match'",
    ast.Pass: "'pass'",
    ast.Break: "'break'",
    ast.Continue: "'continue'",
    ast.Expr: "an expression without effect",
}
_HINTS = {
    ast.IfExp: "write where(condition, a, b)",
    ast.BoolOp: "join conditions with & and |, each in brackets",
    ast.List: "a vector is vec(x, y, z)",
    ast.Tuple: "a vector is vec(x, y, z)",
    ast.If: "write name = where(condition, a, b)",
    ast.For: "use sum, mean, min or max over a vector",
    ast.Pass: "the function's last line is return {...}",
}


class ProgramReader:
    """Collects what is wrong while the tree is walked; ``values`` are the author's names so far."""

    def __init__(self, functions: frozenset[str] = frozenset()) -> None:
        self.found: list[Diagnostic] = []
        self.functions = functions
        self.values: set[str] = set()

    def refuse(self, code: str, message: str, node: Any = None, hint: str = "") -> None:
        """Adds a finding about a node, or about a line number."""
        line = node if isinstance(node, int) else getattr(node, "lineno", 0)
        self.found.append(Diagnostic(code, message, line, hint))

    def check(self) -> None:
        """Ends the reading where something was found.

        Raises:
            Refused: It has every finding so far.
        """
        if self.found:
            raise Refused(self.found) from None


def parse(text: Any, functions: frozenset[str]) -> ast.FunctionDef:
    """Parses a program that uses only allow-listed syntax.

    Args:
        text: The program.
        functions: The names that may be called, each until the author assigns to it.

    Raises:
        Refused: Something is not allowed; it has every finding.
    """
    tree = _tree(text)
    reader = ProgramReader(functions)
    function = _only_function(tree, reader)
    if function is None:
        reader.check()
    assert function is not None
    _signature(function, reader)
    _body(function, reader)
    reader.check()
    return function


def _tree(text: Any) -> ast.Module:
    """Python's own parse, after the caps that keep it from harm."""

    def refuse(code: str, message: str, line: int = 0, hint: str = "") -> Refused:
        return Refused([Diagnostic(code, message, line, hint)])

    if type(text) is not str:
        raise refuse("source", f"expected the program as a str, got {type(text).__name__}")
    if len(text) > MAX_CHARS:
        raise refuse("source", f"expected at most {MAX_CHARS} characters, got {len(text)}")
    text = text.replace("\r\n", "\n").replace("\r", "\n")  # as Python does: comments end there
    if odd := _ODD.search(text):
        line = _line(text, odd)
        if odd[0].isascii():
            raise refuse("source", "the program contains a control character", line)
        raise refuse(
            "ascii", "the program contains a character outside ASCII", line, "use ASCII only"
        )
    for number, line in enumerate(text.split("\n", 2)[:2], 1):
        if _COOKIE.match(line):
            raise refuse("source", "the program declares an encoding", number)
    # Without comments, and of a text its first quote.
    bare = _ASIDE.sub(lambda aside: aside[0][0].strip("#"), text)
    if formatted := _FORMATTED.search(bare):  # what is in f"{...}" would be parsed as well
        raise refuse("string", "f-strings are not supported", _line(bare, formatted))
    depth = deepest = 0
    for bracket in _BRACKET.findall(bare):
        depth += 1 if bracket in "([{" else -1
        deepest = max(deepest, depth)
    if deepest > MAX_BRACKETS:
        raise refuse(
            "source", f"brackets are nested {deepest} deep, at most {MAX_BRACKETS} are allowed"
        )
    if _SIGNS.search(bare):
        raise refuse("source", "more than 8 of the signs +, - and ~ in a row")
    if _CHAIN.search(bare):
        raise refuse("source", "too many attributes in a row")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # For the text of an error Python opens the file it believes to be reading.
            tree = ast.parse(text, filename=os.devnull)
    except SyntaxError as error:
        line, message = error.lineno or 0, str(error.msg)
    except (ValueError, RecursionError, MemoryError, OverflowError):
        line, message = 0, "Python's parser failed"
    else:
        _size(tree)
        return tree
    raise refuse("syntax", f"not valid Python: {message}", line)


def _line(text: str, found: re.Match[str]) -> int:
    return 1 + text.count("\n", 0, found.start())


def _size(tree: ast.AST) -> None:
    nodes, stack = 0, [(tree, 0)]
    while stack:
        node, depth = stack.pop()
        nodes += not isinstance(node, ast.expr_context | ast.operator | ast.unaryop | ast.cmpop)
        if nodes > MAX_NODES or depth > MAX_DEPTH:
            what = f"over {MAX_NODES} parts" if nodes > MAX_NODES else f"over {MAX_DEPTH} deep"
            raise Refused([Diagnostic("source", what, hint="write a shorter program")])
        stack += [(child, depth + 1) for child in ast.iter_child_nodes(node)]


def _only_function(tree: ast.Module, reader: ProgramReader) -> ast.FunctionDef | None:
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef)]
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            hint = "np, and every function of the list, are there without an import"
            reader.refuse("import", "imports are not allowed", node, hint)
        elif not isinstance(node, ast.FunctionDef):
            reader.refuse("structure", "only one function definition is allowed", node)
    if len(functions) != 1 or functions[0].name != "reward":
        names = ", ".join(f.name for f in functions) or "none"
        hint = "write def reward(signal, ...):"
        reader.refuse("structure", f"expected one function 'reward', got {names}", 1, hint)
        return None
    return functions[0]


def _signature(function: ast.FunctionDef, reader: ProgramReader) -> None:
    arguments = function.args
    names = [a.arg for a in arguments.args]
    if function.decorator_list:
        reader.refuse("structure", "decorators are not allowed", function)
    if arguments.posonlyargs or arguments.kwonlyargs or arguments.vararg or arguments.kwarg:
        reader.refuse("structure", "arguments must be plain names", function)
    if arguments.defaults or any(d is not None for d in arguments.kw_defaults):
        reader.refuse("structure", "default values are not allowed", function)
    if any(a.annotation for a in arguments.args) or function.returns is not None:
        reader.refuse(
            "structure", "annotations are not allowed", function, "units come from the task's card"
        )
    if getattr(function, "type_params", None):
        reader.refuse("structure", "type parameters are not allowed", function)
    if len(set(names)) != len(names):
        reader.refuse("structure", "duplicate argument", function)
    if not names and not reader.found:
        hint = "name the signals that it reads"
        reader.refuse("structure", "the reward uses no signal", function, hint)


def _body(function: ast.FunctionDef, reader: ProgramReader) -> None:
    arguments = {a.arg for a in function.args.args}
    for name in sorted(arguments):
        if name in RESERVED or name.startswith("_"):
            reader.refuse("target", f"an argument cannot be named {name!r}", function)
    reader.values |= arguments
    *lines, last = function.body
    for line in lines:
        if isinstance(line, ast.Assign):
            named = _target(line, arguments, reader)
            _expression(line.value, reader)
            reader.values |= named  # from the next line on
        elif isinstance(line, ast.Import | ast.ImportFrom):
            reader.refuse("import", "imports are not allowed", line)
        elif isinstance(line, ast.AugAssign | ast.AnnAssign):
            reader.refuse("target", "an assignment must have the form `name = expression`", line)
        elif isinstance(line, ast.Return):
            reader.refuse("return", "code after return is not allowed", line)
        elif isinstance(line, ast.Expr):  # what is wrong inside it says more
            before = len(reader.found)
            _expression(line.value, reader)
            if len(reader.found) == before:
                reader.refuse("statement", "an expression without effect", line)
        else:
            what = _STATEMENTS.get(type(line), f"'{type(line).__name__.lower()}'")
            reader.refuse(
                "statement", f"{what} is not part of the language", line, _HINTS.get(type(line), "")
            )
    _return(last, reader)


def _target(line: ast.Assign, arguments: set[str], reader: ProgramReader) -> set[str]:
    """The name that is assigned to, if it may be."""
    target = line.targets[0]
    if len(line.targets) > 1 or not isinstance(target, ast.Name):
        reader.refuse("target", "an assignment must have exactly one target name", line)
    elif target.id in RESERVED:
        reader.refuse("target", f"{target.id!r} is a reserved name", line)
    elif target.id in arguments:
        reader.refuse(
            "target",
            f"{target.id!r} is a signal and cannot be reassigned",
            line,
            "take another name",
        )
    elif target.id.startswith("_"):
        reader.refuse("target", f"a name must not begin with '_': {target.id!r}", line)
    else:
        return {target.id}
    return set()


def _return(last: ast.stmt, reader: ProgramReader) -> None:
    hint = 'the last line is return {"component": expression, ...}'
    if isinstance(last, ast.Return) and isinstance(last.value, ast.Dict):
        seen: set[str] = set()
        if not 1 <= len(last.value.keys) <= MAX_COMPONENTS:
            found = f"{len(last.value.keys)} components, expected 1 to {MAX_COMPONENTS}"
            reader.refuse("return", found, last)
        for key, value in zip(last.value.keys, last.value.values, strict=True):
            if not isinstance(key, ast.Constant) or type(key.value) is not str:
                reader.refuse("return", "a component's name must be a string literal", last, hint)
            elif not _COMPONENT.fullmatch(key.value):
                reader.refuse(
                    "return",
                    "a component's name must consist of lower-case letters, digits and _",
                    key,
                )
            elif key.value in seen:
                reader.refuse("return", f"duplicate component {key.value!r}", key)
            else:
                seen.add(key.value)
            _expression(value, reader)
        return
    if isinstance(last, ast.Import | ast.ImportFrom):
        reader.refuse("import", "imports are not allowed", last)
    elif isinstance(last, tuple(_STATEMENTS)) and not isinstance(last, ast.Expr | ast.Pass):
        what = _STATEMENTS[type(last)]
        reader.refuse(
            "statement", f"{what} is not part of the language", last, _HINTS.get(type(last), "")
        )
    elif isinstance(last, ast.Expr):
        _expression(last.value, reader)
        reader.refuse("return", "the program must end by returning its components", last, hint)
    else:
        reader.refuse("return", "the program must end by returning its components", last, hint)


def function_name(node: ast.expr) -> str | None:
    """Returns ``exp`` for ``exp`` and ``np.exp``, ``norm`` for ``np.linalg.norm``, None for
    anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.attr if node.value.id == "np" else None
    if isinstance(node, ast.Attribute) and ast.unparse(node) == "np.linalg.norm":
        return "norm"
    return None


def _expression(node: ast.expr, reader: ProgramReader) -> None:
    """Refuses every node below ``node`` that is not of the language."""
    if isinstance(node, ast.Constant):
        _constant(node, reader)
    elif isinstance(node, ast.Name):
        if node.id.startswith("_"):
            reader.refuse("name", f"a name must not begin with '_': {node.id!r}", node)
        elif node.id in ("np", "numpy"):
            reader.refuse("name", f"{node.id!r} is a function, not a value", node)
    elif isinstance(node, ast.Attribute):
        if function_name(node) not in CONSTANTS:
            _attribute(node, reader)
    elif isinstance(node, ast.BinOp):
        if not isinstance(node.op, _BINARY):
            reader.refuse("operator", f"operator {type(node.op).__name__} is not supported", node)
        if isinstance(node.op, ast.Pow):
            _expression(node.left, reader)
            _exponent(node.right, reader)
            return
        for side in (node.left, node.right):
            _expression(side, reader)
    elif isinstance(node, ast.UnaryOp):
        if not isinstance(node.op, _UNARY):
            reader.refuse("operator", "'not' is not supported", node, "write ~(condition)")
        _expression(node.operand, reader)
    elif isinstance(node, ast.Compare):
        if len(node.ops) > 1 or not isinstance(node.ops[0], _COMPARE):
            hint = "write (a < b) & (b < c)" if len(node.ops) > 1 else ""
            reader.refuse("compare", "compare two numbers with < <= > >= == !=", node, hint)
        for side in (node.left, *node.comparators):
            _expression(side, reader)
    elif isinstance(node, ast.Subscript):
        if isinstance(node.value, ast.Name) and node.value.id == "np":
            reader.refuse("index", "np cannot be indexed", node)
        else:
            _expression(node.value, reader)
        _index(node.slice, reader)
    elif isinstance(node, ast.Call):
        _call(node, reader)
    else:
        what = _NOT_WORDS.get(type(node), type(node).__name__)
        reader.refuse(
            "expression", f"{what} is not part of the language", node, _HINTS.get(type(node), "")
        )


def _constant(node: ast.Constant, reader: ProgramReader) -> None:
    value = node.value
    if isinstance(value, str | bytes):
        reader.refuse("string", "a string is allowed only as the name of a component", node)
    elif type(value) not in (int, float):
        reader.refuse("constant", f"expected a number, got {type(value).__name__}", node)
    elif abs(value) > (MAX_INT if type(value) is int else MAX_FLOAT):  # an int may be no float
        hint = f"at most {MAX_FLOAT:.0e}, a whole one {MAX_INT:.0e}"
        reader.refuse("constant", "a number is too large", node, hint)


def _attribute(node: ast.Attribute, reader: ProgramReader) -> None:
    hint = ""
    if isinstance(node.value, ast.Name) and node.value.id != "np":
        hint = f"write {node.attr}({node.value.id}, ...) if it is a function of the list"
    reader.refuse(
        "attribute", f"unknown attribute {node.attr!r}: values have no attributes", node, hint
    )


def _exponent(node: ast.expr, reader: ProgramReader) -> None:
    if constant_of(node) is None or abs(constant_of(node) or 0.0) > MAX_EXPONENT:
        reader.refuse("power", f"an exponent must be a constant of at most {MAX_EXPONENT}", node)


def constant_of(node: ast.expr) -> float | None:
    """Returns the number of a signed literal; None for anything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        inner = constant_of(node.operand)
        return None if inner is None else -inner if isinstance(node.op, ast.USub) else inner
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return float(node.value) if abs(node.value) <= MAX_FLOAT else None
    return None


def index_of(node: ast.expr) -> int | slice | None:
    """Returns a constant index or slice of a row's vector (``2``, ``:2``, also after ``:,``); None
    for anything else."""
    if isinstance(node, ast.Tuple) and len(node.elts) == 2:
        first, node = node.elts
        whole = isinstance(first, ast.Slice) and not (first.lower or first.upper or first.step)
        if not whole and not (isinstance(first, ast.Constant) and first.value is Ellipsis):
            return None

    def integer(part: ast.expr | None) -> int | None:
        if part is None:
            return None
        value = constant_of(part)
        return int(value) if value is not None and float(value).is_integer() else None

    if isinstance(node, ast.Slice):
        parts = (node.lower, node.upper, node.step)
        if any(p is not None and integer(p) is None for p in parts) or integer(node.step) == 0:
            return None
        return slice(*map(integer, parts))
    literal = node.operand if isinstance(node, ast.UnaryOp) else node
    if isinstance(literal, ast.Constant) and type(literal.value) is int:
        return integer(node)
    return None


def _index(node: ast.expr, reader: ProgramReader) -> None:
    if index_of(node) is None:
        hint = "x[2], x[:2], x[:, 2]; a program speaks of one row"
        reader.refuse("index", "an index must be a constant", node, hint)


def _call(node: ast.Call, reader: ProgramReader) -> None:
    name = function_name(node.func)
    if name is None:
        if isinstance(node.func, ast.Attribute):
            root: ast.expr = node.func
            while isinstance(root, ast.Attribute):
                root = root.value
            if not isinstance(root, ast.Name):
                _expression(root, reader)
            owner = root.id if isinstance(root, ast.Name) else "value"
            hint = "" if owner == "np" else f"write {node.func.attr}({owner}, ...) if it is listed"
            reader.refuse("attribute", f"attribute {node.func.attr!r}", node, hint)
        else:
            reader.refuse("call", "only the listed functions can be called", node)
        return
    if isinstance(node.func, ast.Name) and name in reader.values:
        hint = f"give the value another name, or call np.{name}" if name in reader.functions else ""
        reader.refuse("call", f"{name!r} is a value and cannot be called", node, hint)
        return
    if name not in reader.functions:
        hint = did_you_mean(name, reader.functions)
        reader.refuse("call", f"unknown function {name!r}", node, hint)
        return
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            reader.refuse("argument", "'*' in a call is not supported", node)
        else:
            _expression(argument, reader)
    for keyword in node.keywords:
        if keyword.arg is None:
            reader.refuse("argument", "'**' in a call is not supported", node)
        elif keyword.arg in ("axis", "keepdims"):
            literal = isinstance(keyword.value, ast.Constant) or constant_of(keyword.value)
            if not literal:
                reader.refuse("argument", f"{keyword.arg} must be a constant", node)
        else:
            reader.refuse(
                "argument", f"no argument {keyword.arg!r}", node, "arguments are given by position"
            )


def did_you_mean(name: str, known: Any) -> str:
    """Returns ``did you mean 'x'?`` for an unknown name; "" without a similar one."""
    close = difflib.get_close_matches(name, list(known), 1, 0.6)
    return f"did you mean {close[0]!r}?" if close else ""
