"""Our edits to TypeScript's compiler, applied when the image is made: each finds its anchor, or the build fails."""

from __future__ import annotations

from typing import NamedTuple


class Patch(NamedTuple):
    """Puts `after` in place of `before`, wherever that stands."""

    why: str
    before: str
    after: str
    times: int = 1


PATCHES = (
    Patch(
        why="What a stub does not know, a program may use as it likes: `unknown` in declarations is `any`",
        before="      case 159 /* UnknownKeyword */:\n        return unknownType;",
        after="      case 159 /* UnknownKeyword */:\n"
        "        return node.flags & 33554432 /* Ambient */ ? anyType : unknownType;",
    ),
    Patch(
        why="A method that only throws, or does nothing, is there to be overridden: what it gives may be anything",
        before="      if (types.length === 0) {\n"
        "        const contextualReturnType = getContextualReturnType(\n          func,",
        after="      if (types.length === 0) {\n"
        "        const isPlaceholder = !functionHasImplicitReturn(func) || !some(func.body.statements);\n"
        "        if (isClassElement(func) && isPlaceholder) return anyType;\n"
        "        const contextualReturnType = getContextualReturnType(\n          func,",
    ),
    Patch(
        why="A program's checker may be one that was warmed before (checkers.js)",
        before="    return typeChecker || (typeChecker = createTypeChecker(program));",
        after="    return typeChecker || (typeChecker = host.checkerFor(program));",
    ),
    Patch(
        why="A checker that was warmed is handed the files of a program",
        before="  initializeTypeChecker();\n  return checker;",
        after="  initializeTypeChecker();\n"
        "  checker.hasGlobal = (name) => globals.has(name);\n"
        "  checker.addFile = (file) => isExternalOrCommonJsModule(file) || mergeSymbolTable(globals, file.locals);\n"
        "  checker.hideBehind = (file) => file.locals.forEach((symbol, name) => globals.set(name, symbol));\n"
        "  return checker;",
    ),
)


def patched(source: str) -> str:
    """The compiler's source with every edit made.

    Raises:
        ValueError: an anchor is not there as often as it should be.
    """
    for patch in PATCHES:
        found = source.count(patch.before)
        if found != patch.times:
            raise ValueError(f"the compiler's source has {found} places for {patch.why!r}, not {patch.times}")
        source = source.replace(patch.before, patch.after)
    return source
