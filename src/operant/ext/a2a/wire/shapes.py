"""Our tasks and messages in the shapes of A2A 1.0."""

from __future__ import annotations

from a2a.types.a2a_pb2 import Artifact, Message, Role, Task, TaskStatus
from a2a.types.a2a_pb2 import Part as WirePart
from a2a.types.a2a_pb2 import TaskState as WireState
from a2a.utils.errors import ContentTypeNotSupportedError, InvalidParamsError
from google.protobuf.json_format import MessageToJson
from google.protobuf.timestamp_pb2 import Timestamp

from operant.ext.a2a.standing import Line, Standing, TaskState
from operant.sdk import BlobRef, Host, Part, Text

TEXT = ("text/plain", "text/markdown", "application/json")
FILES = ("image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf")
INPUT_MODES = (*TEXT, *FILES)
LARGEST = 8 << 20

STATES: dict[TaskState, WireState] = {
    "submitted": WireState.TASK_STATE_SUBMITTED,
    "working": WireState.TASK_STATE_WORKING,
    "asking": WireState.TASK_STATE_INPUT_REQUIRED,
    "completed": WireState.TASK_STATE_COMPLETED,
    "failed": WireState.TASK_STATE_FAILED,
    "canceled": WireState.TASK_STATE_CANCELED,
    "rejected": WireState.TASK_STATE_REJECTED,
}


class Shapes:
    """Turn ours into theirs and theirs into ours; bytes go through the store."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def task(self, standing: Standing, history: int | None = None, *, artifacts: bool = True) -> Task:
        """Return a task with at most so many messages of its history (None: all)."""
        letter = standing.letter
        lines = standing.lines if history is None else standing.lines[len(standing.lines) - history :]
        lines = () if history == 0 else lines
        return Task(
            id=letter.id,
            context_id=letter.context,
            status=self.status(standing),
            artifacts=[await self.artifact(standing)] if artifacts and standing.answer else [],
            history=[await self._message(standing, line) for line in lines],
        )

    def status(self, standing: Standing) -> TaskStatus:
        """Return the status of a task, with what there is to say about it."""
        at = Timestamp()
        at.FromMicroseconds(standing.at // 1000 * 1000)
        status = TaskStatus(state=STATES[standing.state], timestamp=at)
        if standing.words:
            letter = standing.letter
            status.message.CopyFrom(
                Message(
                    message_id=f"{letter.id}-{standing.at}",
                    context_id=letter.context,
                    task_id=letter.id,
                    role=Role.ROLE_AGENT,
                    parts=[WirePart(text=standing.words)],
                )
            )
        return status

    async def artifact(self, standing: Standing) -> Artifact:
        """Return what the agent answered."""
        parts = [await self._part(part) for part in standing.answer]
        return Artifact(artifact_id=f"{standing.letter.id}-answer", name="answer", parts=parts)

    async def _message(self, standing: Standing, line: Line) -> Message:
        letter = standing.letter
        return Message(
            message_id=line.id,
            context_id=letter.context,
            task_id=letter.id,
            role=Role.ROLE_AGENT if line.ours else Role.ROLE_USER,
            parts=[await self._part(part) for part in line.parts if isinstance(part, Text | BlobRef)],
        )

    async def _part(self, part: Part) -> WirePart:
        if isinstance(part, BlobRef):
            if part.size > LARGEST:
                return WirePart(text=f"[{part.name or 'A file'} has {part.size:,} bytes and was left out.]")
            raw = await self._host.blobs.get_blob(part.digest)
            return WirePart(raw=raw, filename=part.name, media_type=part.media_type)
        return WirePart(text=part.text if isinstance(part, Text) else "")

    # ------------------------------------------------------------------ what comes in

    async def said(self, message: Message) -> tuple[str, tuple[BlobRef, ...]]:
        """Return the words and files of a message. Raises `A2AError` for what no agent here takes."""
        words: list[str] = []
        blobs: list[BlobRef] = []
        for part in message.parts:
            kind = part.WhichOneof("content")
            if (part.media_type and part.media_type not in INPUT_MODES) or kind == "url":
                what = "A file that is elsewhere" if kind == "url" else f"The media type {part.media_type}"
                raise ContentTypeNotSupportedError(f"{what} is not taken. These are: {', '.join(INPUT_MODES)}.")
            if kind == "text":
                words.append(part.text)
            elif kind == "data":
                words.append(MessageToJson(part.data, indent=None))
            elif kind == "raw":
                blobs.append(await self._blob(part))
        if not any(word.strip() for word in words) and not blobs:
            raise InvalidParamsError("The message is empty: it needs a part with text, data or a file.")
        return "\n\n".join(words), tuple(blobs)

    async def _blob(self, part: WirePart) -> BlobRef:
        if not part.media_type or len(part.raw) > LARGEST:
            raise ContentTypeNotSupportedError(f"A file needs a media type and at most {LARGEST:,} bytes.")
        return await self._host.blobs.put_blob(part.raw, part.media_type, part.filename)
