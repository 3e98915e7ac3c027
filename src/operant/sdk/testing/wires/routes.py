"""Which protocol answers at which address."""

from __future__ import annotations

from operant.sdk.testing.wires.chat import Chat
from operant.sdk.testing.wires.embeddings import Embeddings, GoogleEmbeddings
from operant.sdk.testing.wires.gemini import Gemini
from operant.sdk.testing.wires.images import Images
from operant.sdk.testing.wires.messages import Messages
from operant.sdk.testing.wires.models import models
from operant.sdk.testing.wires.responses import Responses
from operant.sdk.testing.wires.wire import Request, Wire

_GOOGLE = ("/v1beta/models/", "/v1/models/")


class Routes:
    """The protocols of one server; what they remember of what they gave is theirs alone."""

    def __init__(self) -> None:
        self.usual: Wire = Chat()
        self._exact: dict[str, Wire] = {
            "/v1/chat/completions": self.usual,
            "/v1/responses": Responses(),
            "/v1/messages": Messages(),
            "/v1/embeddings": Embeddings(),
            "/v1/images/generations": Images(),
        }
        self._gemini: Wire = Gemini()
        embeddings: Wire = GoogleEmbeddings()
        self._verbs: dict[str, Wire] = {
            "generateContent": self._gemini,
            "streamGenerateContent": self._gemini,
            "batchEmbedContents": embeddings,
            "embedContent": embeddings,
        }

    def find(self, path: str) -> Wire | None:
        """Return the protocol of an address, without its query."""
        return self._exact.get(path) or self._verbs.get(path.rpartition(":")[2] if path.startswith(_GOOGLE) else "")

    def near(self, path: str) -> Wire:
        """Return the protocol in whose words an address is refused."""
        return self._exact.get(path) or (self._gemini if path.startswith("/v1beta/") else self.usual)

    def models(self, request: Request) -> bytes | None:
        """Return the list of models in the words of whoever asks, None where another thing is asked. Raises `Wrong`."""
        return models(request) if request.path in {"/v1/models", "/v1beta/models"} else None
