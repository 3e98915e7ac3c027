"""Make the JSON Schemas of the wire `svc/1` and the types of the TypeScript SDK, or check them (`--check`)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

TOP = Path(__file__).parents[1]
SCHEMA = TOP / "docs" / "reference" / "svc-1.schema.json"
TYPES = TOP / "sdk" / "typescript" / "wire.d.ts"


def schemas() -> dict[str, Any]:
    """Return every message and every record in it."""
    from operant.ext.services import wire

    asked = [kind for pair in wire.ASKED.values() for kind in pair if kind is not None and kind.__name__ != "Record"]
    kinds = [*dict.fromkeys((*asked, *wire.TOLD.values()))]
    _, components = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    methods: dict[str, Any] = {}
    for name, (params, result) in wire.ASKED.items():
        empty = params.__name__ == "Record"
        methods[name] = {
            "params": {"type": "object"} if empty else {"$ref": f"#/$defs/{params.__name__}"},
            "result": {"$ref": f"#/$defs/{result.__name__}"} if result else {},
        }
    for name, params in wire.TOLD.items():
        methods[name] = {"params": {"$ref": f"#/$defs/{params.__name__}"}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "svc/1: the messages between Operant and the service of a skill",
        "description": "JSON-RPC 2.0, one message a line. `methods` names the parameters and results of each.",
        "methods": methods,
        "$defs": dict(sorted(components.items())),
    }


def types(schema: dict[str, Any]) -> str:
    """Return TypeScript interfaces for the records of the schema."""
    lines = ["// Made by scripts/wire.py from the wire svc/1. Do not edit.", ""]
    for name, record in schema["$defs"].items():
        lines.append(f"/** {' '.join(record.get('description', '').split())} */")
        lines.append(f"export interface {name} {{")
        required = set(record.get("required", ()))
        for field, kind in record.get("properties", {}).items():
            lines.append(f"  {field}{'' if field in required else '?'}: {typed(kind)};")
        lines += ["}", ""]
    return "\n".join(lines)


def typed(kind: dict[str, Any]) -> str:
    """Return a JSON Schema as a TypeScript type."""
    if "$ref" in kind:
        return kind["$ref"].rpartition("/")[2]
    if "enum" in kind:
        return " | ".join(json.dumps(one) for one in kind["enum"])
    if "anyOf" in kind:
        return " | ".join(dict.fromkeys(typed(one) for one in kind["anyOf"]))
    match kind.get("type"):
        case "array":
            return f"Array<{typed(kind.get('items', {}))}>"
        case "object":
            inner = kind.get("additionalProperties")
            return f"Record<string, {typed(inner) if isinstance(inner, dict) and inner else 'unknown'}>"
        case "integer" | "number":
            return "number"
        case "string" | "boolean" | "null" as plain:
            return plain
        case _:
            return "unknown"


def main(arguments: list[str]) -> int:
    """Write, or compare."""
    schema = schemas()
    wanted = {SCHEMA: json.dumps(schema, indent=2) + "\n", TYPES: types(schema)}
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text("utf-8") != text]
    if "--check" in arguments:
        for path in stale:
            print(f"{path.relative_to(TOP)} is not up to date: run `make docs`", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.write_text(wanted[path], "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
