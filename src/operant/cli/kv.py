"""`operant kv …`: values that extensions and scripts keep."""

from __future__ import annotations

import sys

import click

from operant.cli.here import call
from operant.cli.output import json_option, print_json, print_table, say_text
from operant.kernel.errors import NotFound
from operant.kernel.syscalls import KvDelete, KvGet, KvList, KvSet

_namespace = click.option("--namespace", default="user", show_default=True, help="Whose values.")


@click.group(help="Read and write kept values.")
def command() -> None:
    """Hold the commands about values."""


@command.command("get", help="Print a value.")
@click.argument("key")
@_namespace
@json_option
def get(key: str, namespace: str, as_json: bool) -> None:
    """Print one value."""
    value = call(KvGet(namespace=namespace, key=key))
    if value is None:
        raise NotFound(f"There is no value {key!r} in {namespace!r}.", "See: operant kv list.")
    print_json({"key": key, "value": value}) if as_json else say_text(value)


@command.command("set", help="Keep a value; - reads it from standard input.")
@click.argument("key")
@click.argument("value")
@_namespace
@click.option("--ttl", default=0.0, help="Seconds after which it is gone; 0: never.")
@json_option
def set_value(key: str, value: str, namespace: str, ttl: float, as_json: bool) -> None:
    """Set one value."""
    words = sys.stdin.read() if value == "-" else value
    call(KvSet(namespace=namespace, key=key, value=words, ttl_s=ttl))
    if as_json:
        print_json({"key": key, "value": words})


@command.command("delete", help="Delete a value.")
@click.argument("key")
@_namespace
@json_option
def delete(key: str, namespace: str, as_json: bool) -> None:
    """Delete one value."""
    if call(KvGet(namespace=namespace, key=key)) is None:
        raise NotFound(f"There is no value {key!r} in {namespace!r}.", "See: operant kv list.")
    call(KvDelete(namespace=namespace, key=key))
    if as_json:
        print_json({"key": key, "deleted": True})


@command.command("list", help="List values by key.")
@click.argument("prefix", default="")
@_namespace
@json_option
def list_values(prefix: str, namespace: str, as_json: bool) -> None:
    """Print values."""
    values = call(KvList(namespace=namespace, prefix=prefix))
    if as_json:
        print_json(values)
        return
    print_table(("key", "value"), list(values.items()), f"There are no values in {namespace!r}.")
