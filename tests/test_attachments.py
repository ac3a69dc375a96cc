"""Test images and files: models that accept them get them, others are refused by name."""

import base64
from pathlib import Path
from typing import Any

import pytest
from jurygraph import create_judge
from jurygraph.eval import evaluate, load_dataset
from jurygraph.eval.judges.answer_gate import AnswerGate
from jurygraph.nodes.models.capabilities import with_text
from jurygraph.state import CompareTask, ScoreTask, UsageError, media
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage

from .loopback import Provider
from .loopback_debate import OPENAI, Debaters, google
from .sample_data import write_lines

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(40)).decode()
IMAGE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
PDF = {
    "type": "file",
    "base64": base64.b64encode(b"%PDF-1.7").decode(),
    "mime_type": "application/pdf",
}
ASKED = {"role": "user", "content": [{"type": "text", "text": "What is shown in "}, IMAGE]}
ANSWERED = {"role": "assistant", "content": "A lighthouse."}


def users_content(provider: Provider, place: int) -> list[dict[str, Any]]:
    """The blocks of the user's message in a request to OpenAI."""
    return provider.requests[place].body["messages"][-1]["content"]  # type: ignore[no-any-return]


def test_every_agent_is_shown_what_the_texts_name_also_when_it_is_asked_again(
    provider: Provider,
) -> None:
    debaters = Debaters(satisfied_in=2)
    refuses = "I would rather not."
    provider.play(by=lambda request: debaters(request) if len(provider.requests) > 1 else refuses)
    result = create_judge("debate", aspect="consistency", model=OPENAI)(outputs=[ASKED, ANSWERED])
    assert result["score"] is not None
    assert len(provider.requests) == 5
    for request in provider.requests:
        system, user, *_ = request.body["messages"]
        image, text = user["content"]
        assert image == IMAGE
        assert "What is shown in [image 1]" in text["text"]
        assert "Attached to the user's message, in this order: [image 1]." in system["content"]


def test_images_come_in_order_and_the_same_one_is_sent_once(provider: Provider) -> None:
    provider.play(by=Debaters(scores=[(7, 5)] * 3))
    other = {"type": "image", "source": {"type": "url", "url": "https://example.org/b.png"}}
    answers = [[IMAGE, {"type": "text", "text": " or "}, other], [other]]
    judge = create_judge("single", model=OPENAI, position_calibration=False)
    judge(
        inputs="Draw it.", outputs=[{"role": "assistant", "content": answer} for answer in answers]
    )
    first, second, text = users_content(provider, 0)
    assert first["image_url"] == IMAGE["image_url"]
    assert second["image_url"]["url"] == "https://example.org/b.png"
    assert "[image 1] or [image 2]" in text["text"]
    assert text["text"].count("[image 2]") == 2


def test_gemini_is_sent_its_own_form_and_files_too(provider: Provider) -> None:
    provider.play({"reasoning": "Fine.", "score": 4})
    judge = create_judge("single", aspect="consistency", model=google(provider))
    judge(inputs=[{"role": "user", "content": [IMAGE, PDF]}], outputs="A lighthouse.")
    [user] = provider.requests[0].body["contents"]
    kinds = [part["inlineData"]["mime_type"] for part in user["parts"] if "inlineData" in part]
    assert kinds == ["image/png", "application/pdf"]


def test_items_bring_theirs_and_a_run_resumes_with_them(provider: Provider, tmp_path: Path) -> None:
    rows = [
        {"id": f"{n}", "messages": [ASKED, {**ANSWERED, "content": f"Answer {n}."}]}
        for n in range(2)
    ]
    data = write_lines(tmp_path / "mine.jsonl", rows)
    assert [item.media for item in load_dataset(data)] == [{"[image 1]": IMAGE}] * 2
    provider.play(*[{"reasoning": "Fine.", "score": 4}] * 2)
    done, again = (
        evaluate(
            "single", data, aspects=["consistency"], models={"*": OPENAI}, out=tmp_path / "out"
        )
        for _ in range(2)
    )
    assert [result.status for result in done.results] == ["ok"] * 2
    assert list(again.results) == list(done.results)
    assert len(provider.requests) == 2
    assert users_content(provider, 1)[0] == IMAGE


def test_a_gate_judges_what_its_agent_saw(provider: Provider) -> None:
    from langchain.agents import create_agent

    provider.play({"reasoning": "Fine.", "score": 5})
    judge = create_judge("single", aspect="consistency", model=OPENAI)
    writer = GenericFakeChatModel(messages=iter([AIMessage("A lighthouse.")]))
    agent = create_agent(writer, middleware=[AnswerGate(judge)])
    content: Any = ASKED["content"]
    found = agent.invoke({"messages": [HumanMessage(content)]})
    assert found["judged"][-1]["verdict"]["score"] == pytest.approx(5)
    assert users_content(provider, 0)[0] == IMAGE


@pytest.mark.parametrize(("model", "part", "kind"), [
    ("offline", IMAGE, "image"), ("openai:gpt-3.5-turbo", IMAGE, "image"),
    (OPENAI, {"type": "input_audio", "input_audio": {"data": PNG, "format": "wav"}}, "audio"),
])  # fmt: skip
def test_blind_models_are_not_asked(
    provider: Provider, model: str, part: dict[str, Any], kind: str
) -> None:
    judge = create_judge("debate", aspect="consistency", model=model)
    with pytest.raises(
        UsageError, match=rf"{model} cannot be shown \[{kind} 1\], which is part of what is"
    ):
        judge(inputs=[{"role": "user", "content": [part]}], outputs="A lighthouse.")
    assert not provider.requests


INLINE = {"type": "image", "mime_type": "image/png"}


@pytest.mark.parametrize(("part", "words"), [
    ({"type": "image_url", "image_url": {"url": "cat.png"}}, "its address 'cat.png' is not a web"),
    ({**INLINE, "base64": "a cat"}, "its content is not base64"), ({**INLINE, "base64": ""}, "it is empty"),
    ({**INLINE, "base64": b"cat"}, "its bytes must be base64"),
    ({**INLINE, "base64": "A" * 4_004}, "it has 4,004 characters"),
    ({"type": "image"}, "it has neither address nor content"),
])  # fmt: skip
def test_what_is_no_image_is_refused_with_its_place(
    part: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(media, "LARGEST_MEDIUM", 1_000)
    with pytest.raises(UsageError, match="holds an image") as refused:
        ScoreTask(
            source=[ANSWERED, {"role": "user", "content": [part]}], candidate="c", aspect="fluency"
        )
    assert f"source[1] holds an image ({part['type']}): {words}" in str(refused.value)
    images = [{"type": "image", "url": f"https://example.org/{n}.png"} for n in range(51)]
    with pytest.raises(
        UsageError, match=r"question holds an image \(image\): more than 50 of them"
    ):
        CompareTask(question={"role": "user", "content": images}, answer_1="a", answer_2="b")


def test_a_name_alone_attaches_nothing_and_another_text_detaches_nothing(
    provider: Provider,
) -> None:
    provider.play({"reasoning": "Fine.", "score": 4})
    create_judge("single", aspect="consistency", model=OPENAI)(
        inputs="See [image 1].", outputs="A cat."
    )
    assert isinstance(provider.requests[0].body["messages"][-1]["content"], str)
    message = HumanMessage([IMAGE, {"type": "text", "text": "before"}])
    assert with_text(message, "after").content == [IMAGE, {"type": "text", "text": "after"}]
    assert with_text(HumanMessage("before"), "after").content == "after"
