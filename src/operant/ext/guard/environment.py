"""Which environment variables a child process may not have."""

from __future__ import annotations

import re
from collections.abc import Mapping

from operant.ext.guard.redaction import Redactor

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:"
    r"[A-Z0-9]*(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|APIKEY|COOKIE)S?|"
    r"(?:API|ACCESS|AUTH|PRIVATE|SECRET|SIGNING|ENCRYPTION|MASTER|SSH|GPG|PGP)?KEYS?|"
    r"AUTH|PAT|DSN|PASS|PRIVATE"
    r")(?:_|$)"
)
_PASSWORD_IN_ADDRESS = re.compile(r"://[^/\s:@]*:[^/\s@]+@")


def names_a_secret(name: str) -> bool:
    """Tell whether a variable's name says that its value is a key, a token or a password."""
    return _SECRET_NAME.search(name.upper()) is not None


def without_secrets(env: Mapping[str, str], redactor: Redactor) -> dict[str, str]:
    """Return the variables that neither by name nor by value are a secret, nor an address with a password."""
    return {
        name: value
        for name, value in env.items()
        if not names_a_secret(name) and not _PASSWORD_IN_ADDRESS.search(value) and redactor.clean(value) is value
    }
