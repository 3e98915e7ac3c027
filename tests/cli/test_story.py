"""What a chat shows follows from events and deltas alone."""

import msgspec

from operant.cli.chat.pieces import Answered, Did, Notice, Over, Piece, Question, Said, Words
from operant.cli.chat.question import read_answer
from operant.cli.chat.recap import recap
from operant.cli.chat.story import Story, finished_upto
from operant.kernel.records import (
    ApprovalAnswered,
    ApprovalAsked,
    Delta,
    ModelFailed,
    Note,
    Text,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from tests.cli.recorded import Recorder, queued, received, replied, shell, working_turn


def story() -> Story:
    return Story(lambda: 0.0)


def test_a_turn_is_told_in_order_and_nothing_twice() -> None:
    told = story()
    pieces = [piece for event in working_turn() for piece in told.see(event)]

    kinds = [type(piece) for piece in pieces]
    assert kinds == [Said, Words, Question, Answered, Did, Words, Over]
    assert pieces[1] == Words("I look.")
    assert pieces[5] == Words("Nothing changed.")
    assert isinstance(pieces[4], Did) and pieces[4].outcome == "ok" and pieces[4].seconds == 0.2
    assert not told.busy


def test_words_that_streamed_are_not_shown_again_when_the_reply_is_whole() -> None:
    recorder, told = Recorder(), story()
    begin(recorder, told)
    pieces = see(told, recorder.text("First.\n"), recorder.text("\nSec"), recorder.text("ond."))
    assert pieces == [Words("First.")]
    assert told.partial == "Second."

    pieces = see(told, *recorder.add(replied("First.\n\nSecond."), queued("First.\n\nSecond.")))

    assert pieces == [Words("Second.")]
    assert told.partial == ""


def test_deltas_that_were_dropped_are_made_up_for() -> None:
    recorder, told = Recorder(), story()
    begin(recorder, told)
    see(told, recorder.text("One\n\n"), recorder.text("(three is lost)"))

    pieces = see(told, *recorder.add(replied("One\n\ntwo\n\nthree")))

    assert pieces == [Words("two\n\nthree")]


def test_a_reply_that_a_hook_rewrote_is_shown_whole() -> None:
    recorder, told = Recorder(), story()
    begin(recorder, told)
    see(told, recorder.text("My key is 123\n\n"))

    pieces = see(told, *recorder.add(replied("My key is ***")))

    assert isinstance(pieces[0], Notice)
    assert pieces[1] == Words("My key is ***")


def test_a_call_that_is_tried_again_discards_its_text() -> None:
    recorder, told = Recorder(), story()
    begin(recorder, told)
    see(told, recorder.text("half an ans"))
    see(told, *recorder.add(ModelFailed(model="m", provider="p", error="cut", retriable=True, then="retry")))

    pieces = see(told, Delta(session="s", turn="t1", kind="restart", text="it was cut"))
    assert pieces == [Notice("trying again: it was cut")]
    assert told.partial == ""

    assert see(told, recorder.text("whole"), *recorder.add(replied("whole"))) == [Words("whole")]


def test_ones_own_message_is_not_shown_twice_but_another_ones_is() -> None:
    told = story()
    told.mine.add("x1")
    recorder = Recorder()

    assert see(told, *recorder.add(received("mine", external_id="x1"))) == []
    assert see(told, *recorder.add(received("theirs", external_id="x2"))) == [Said("theirs", "owner")]


def test_a_running_tool_shows_the_end_of_its_output() -> None:
    recorder, told = Recorder(), story()
    begin(recorder, told)
    see(
        told,
        *recorder.add(
            replied("", shell("make")), ToolStarted(call_id="c1", name="shell", arguments={"command": "make"})
        ),
    )
    see(told, Delta(session="s", turn="t1", kind="tool", call_id="c1", text="cc a.c\n"))
    assert told.running["c1"].tail == "cc a.c\n"

    see(told, *recorder.add(ToolEnded(call_id="c1", name="shell", outcome="timeout", parts=(Text(text="stopped"),))))
    assert not told.running


def test_a_denied_call_is_named_although_it_never_started() -> None:
    recorder, told = Recorder(), story()
    begin(recorder, told)
    see(told, *recorder.add(replied("", shell("rm -r x"))))

    (did,) = see(told, *recorder.add(ToolEnded(call_id="c1", outcome="denied", parts=(Text(text="Not allowed"),))))

    assert isinstance(did, Did)
    assert (did.name, did.arguments, did.outcome) == ("shell", {"command": "rm -r x"}, "denied")


def test_what_was_said_before_a_stop_stays() -> None:
    recorder, told = Recorder(), story()
    begin(recorder, told)
    see(told, recorder.text("I was about to"))

    pieces = see(told, *recorder.add(TurnEnded(reason="stopped")))

    assert pieces[0] == Words("I was about to")
    assert isinstance(pieces[1], Over) and pieces[1].reason == "stopped"


def test_the_sentence_of_an_error_is_said_once() -> None:
    recorder, told = Recorder(), story()
    begin(recorder, told)
    pieces = see(told, *recorder.add(queued("No model."), TurnEnded(reason="error", sentence="No model.")))
    assert pieces[0] == Words("No model.")
    assert isinstance(pieces[1], Over) and pieces[1].sentence == ""


def test_escape_sequences_do_not_reach_any_piece() -> None:
    recorder, told = Recorder(), story()
    begin(recorder, told)
    pieces = see(
        told,
        *recorder.add(received("\x1b[2Jx")),
        recorder.text("\x1b]0;t\x07a\n\n"),
        *recorder.add(replied("\x1b]0;t\x07a\n\nb\x1b[1m", shell("x"))),
        *recorder.add(ToolEnded(call_id="c1", outcome="ok", parts=(Text(text="\x1b[31mred"),))),
    )
    assert "\x1b" not in repr(pieces).replace("\\x1b", "\x1b")


def test_blocks_are_finished_by_blank_lines_outside_of_code() -> None:
    assert finished_upto("one line") == 0
    assert finished_upto("a\n\nb") == 3
    code = "```py\na = 1\n\nb = 2\n"
    assert finished_upto(code) == 0
    assert finished_upto(code + "```\n\nmore") == len(code + "```\n\n")


def test_coming_back_to_an_idle_session_shows_its_last_messages() -> None:
    told = story()
    events = working_turn()

    pieces = recap(events, told)

    assert [type(piece) for piece in pieces] == [Notice, Said, Words]
    assert told.seq == events[-1].seq
    assert not told.busy


def test_coming_back_in_the_middle_shows_the_open_turn_and_its_question() -> None:
    events = working_turn()[:5]
    told = story()

    pieces = recap(events, told)

    assert [type(piece) for piece in pieces] == [Said, Words, Question]
    assert told.busy
    assert "a1" in told.questions


def test_a_turn_that_was_taken_up_again_says_so() -> None:
    recorder, told = Recorder(), story()
    begin(recorder, told)
    see(told, *recorder.add(ToolStarted(call_id="c1", name="shell", arguments={})), recorder.text("half"))

    pieces = see(told, *recorder.add(TurnStarted(trigger="resume")))

    assert pieces == [Words("half"), Notice("taken up again where it stopped")]
    assert told.busy


def test_answers_are_read_as_people_write_them() -> None:
    for line, answer, scope in [
        ("y", "allow", "once"),
        ("Yes", "allow", "once"),
        ("s", "allow", "session"),
        ("n", "deny", "once"),
    ]:
        read = read_answer(line)
        assert read is not None and (read.answer, read.scope) == (answer, scope)
    denied = read_answer("no, use the other file")
    assert denied is not None and (denied.answer, denied.reason) == ("deny", "use the other file")
    assert read_answer("yes but carefully") is None
    assert read_answer("something else") is None


def test_an_answer_given_elsewhere_closes_the_question() -> None:
    recorder, told = Recorder(), story()
    begin(recorder, told)
    see(told, *recorder.add(ApprovalAsked(approval_id="a", call_id="c", name="shell", arguments={}, digest="")))
    pieces = see(
        told, *recorder.add(ApprovalAnswered(approval_id="a", call_id="c", answer="deny", by="anna", reason="no"))
    )
    assert pieces == [Answered("shell", "deny", "anna", "no")]
    assert not told.questions


def begin(recorder: Recorder, told: Story) -> None:
    for event in recorder.add(received("go"), TurnStarted()):
        told.see(event)


def see(told: Story, *all_seen: object) -> list[Piece]:
    return [piece for seen in all_seen for piece in told.see(seen)]  # type: ignore[arg-type]


def test_a_sub_agents_question_is_shown_and_closed_and_nobody_else_can_put_one() -> None:
    recorder, told = Recorder(), story()
    data = {"approval_id": "a1", "name": "shell", "arguments": {"command": "ls"}, "question": "May it?", "session": "x"}
    (event,) = recorder.add(Note(kind="approval.asked", data=data))
    assert see(told, event) == []
    assert not told.questions

    ours = msgspec.structs.replace(event, seq=event.seq + 1, actor="extension:subagents")
    (question,) = see(told, ours)
    assert isinstance(question, Question)
    assert question.arguments == {"command": "ls"}

    body = Note(kind="approval.answered", data={"approval_id": "a1", "answer": "deny", "by": "owner", "reason": "no"})
    answered = msgspec.structs.replace(ours, seq=ours.seq + 1, body=body)
    assert see(told, answered) == [Answered("shell", "deny", "owner", "no")]
    assert not told.questions
