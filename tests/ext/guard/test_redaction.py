"""What is taken out of texts, and what is left as it is."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operant.ext.guard.environment import names_a_secret, without_secrets
from operant.ext.guard.redaction import Redactor

KEY = "".join(["-----BEGIN RSA ", "PRIVATE KEY-----\n", "MIIEow" * 11, "\n", "QUJD" * 16, "\nab==\n"])
PEM = KEY + "-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    "secret",
    [
        "sk-" + "proj-abcdefgh12345678ijkl",
        "sk-" + "ant-api03-abcdefgh12345678",
        "ghp_" + "a1" * 18,
        "github_pat_" + "A1" * 15,
        "xoxb-" + "123456789012-abcdef",
        "AKIA" + "ABCDEFGHIJKLMNO1",
        "AIza" + "a" * 35,
        PEM,
        KEY[:-6],
    ],
)
def test_what_looks_like_a_key_is_taken_out(secret: str) -> None:
    redactor = Redactor()

    assert redactor.clean(f"use {secret} now") == "use [secret] now"
    assert redactor.suspects(json.dumps({"a": secret}))


@pytest.mark.parametrize(
    "text",
    ["risk-averse people ask-and-tell", "sk-toggleable__label-arrow-icon", "ghp_short", "AKIAB", "a task-list", ""],
)
def test_ordinary_words_stay(text: str) -> None:
    assert Redactor(["short", ""]).clean(text) is text


def test_known_secrets_are_taken_out_longest_first() -> None:
    redactor = Redactor(["hunter22-hunter", "hunter22-hunter22"])

    assert redactor.clean("a hunter22-hunter22 b hunter22-hunter c") == "a [secret] b [secret] c"


def test_known_secrets_are_found_in_other_clothes() -> None:
    secret = 'pass/"word" 123'
    redactor = Redactor([secret], encoded=True)

    for shown in (json.dumps(secret), quote(secret, safe=""), secret.encode().hex()):
        assert "word" not in redactor.clean(shown) and "[secret]" in redactor.clean(shown)


@given(st.binary(max_size=7), st.binary(max_size=7))
def test_base64_hides_a_known_secret_nowhere(before: bytes, after: bytes) -> None:
    shown = base64.b64encode(before + b"correct-horse-battery" + after).decode()

    assert "[secret]" in Redactor(["correct-horse-battery"], encoded=True).clean(shown)


def test_json_is_cleaned_in_all_depths_and_untouched_without_secrets() -> None:
    redactor = Redactor(["hunter22-hunter22"])
    body = {"a": [1, {"b": "is hunter22-hunter22"}], "c": "x" * 20, "d": None}

    assert redactor.clean_json(body) == {"a": [1, {"b": "is [secret]"}], "c": "x" * 20, "d": None}
    assert body["a"] == [1, {"b": "is hunter22-hunter22"}]
    clean = {"a": ["nothing to see here"], "b": {"c": "or here, either"}}
    assert redactor.clean_json(clean) is clean


@given(st.text(min_size=8).filter(lambda text: len(text.strip()) >= 8), st.text(), st.text())
def test_a_known_secret_is_never_left(secret: str, before: str, after: str) -> None:
    secret = secret.strip()
    cleaned = Redactor([secret]).clean(f"{before}{secret}{after}")

    assert secret not in cleaned or secret in "[secret]" or "[secret]" in secret


@pytest.mark.parametrize(
    "text", ["-----BEGIN PRIVATE KEY-----" * 1_000, "sk-" * 50_000, "-----BEGIN PRIVATE KEY-----" + "A" * 100_000]
)
def test_texts_made_to_be_slow_are_not(text: str) -> None:
    import time

    began = time.perf_counter()
    Redactor().clean(text)
    assert time.perf_counter() - began < 2


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "openai_api_key",
        "GITHUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "PGPASSWORD",
        "SSH_AUTH_SOCK",
        "DB_PASS",
        "MY_APIKEY",
        "SENTRY_DSN",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "KEYS",
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert names_a_secret(name)


@pytest.mark.parametrize("name", ["PATH", "PWD", "HOME", "KEYBOARD", "MONKEY", "TOKENIZERS_PARALLELISM", "COMPASS"])
def test_names_of_other_things(name: str) -> None:
    assert not names_a_secret(name)


def test_a_child_gets_neither_keys_nor_values_that_are_some() -> None:
    env = {
        "PATH": "/usr/bin",
        "API_TOKEN": "x",
        "HARMLESS": "the hunter22-hunter22",
        "DATABASE_URL": "postgresql://me:pw@db/x",
        "HTTP_PROXY": "http://proxy:3128",
    }

    kept = without_secrets(env, Redactor(["hunter22-hunter22"]))

    assert kept == {"PATH": "/usr/bin", "HTTP_PROXY": "http://proxy:3128"}
