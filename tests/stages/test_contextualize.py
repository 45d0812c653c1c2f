import pytest
from conftest import links, make_chunk
from test_rerank import Scripted

from rag import VectorDB, build, evaluate, load_dataset
from rag.errors import DataError, ProviderError
from rag.providers.base import Reply
from rag.providers.lsa import LSA
from rag.stages.contextualize import PAGE, context_prompt, heading_contexts, llm_contextualizer
from rag.stores.vector_db import ContextIndexedVectorDB

CHUNKS = [
    make_chunk("zoo.md#a", "It holds lions.", "Zoo"),
    make_chunk("zoo.md#b", "It opens at nine.", "Hours"),
    make_chunk("bank.md#a", "It opens at ten.", "Hours"),
]


def test_headings_alone_already_tell_two_pages_apart():
    assert [chunk["context"] for chunk in heading_contexts(CHUNKS)] == ["Zoo.", "Zoo.", "Hours."]
    db = ContextIndexedVectorDB("x", embedder=LSA()).load_data(heading_contexts(CHUNKS))
    assert links(db.search("When does the zoo open?", k=1)) == ["zoo.md#b"]
    assert db.text(heading_contexts(CHUNKS)[1]) == "Zoo.\n\nHours\n\nIt opens at nine."


def test_a_context_is_needed():
    with pytest.raises(DataError, match="context must be a text"):
        ContextIndexedVectorDB("x", embedder=LSA()).load_data(CHUNKS)
    VectorDB("x", embedder=LSA()).load_data(CHUNKS)


def test_a_model_sees_the_page_and_the_section_and_no_other_page():
    llm = Scripted("Here is the sentence: On the zoo.", "", "", "On a bank.")
    made = llm_contextualizer(llm)(CHUNKS)
    assert [chunk["context"] for chunk in made] == ["On the zoo.", "On a bank.", "On a bank."]
    first = llm.prompts[0].text
    assert "<page>\nZoo\nIt holds lions.\n\nHours\nIt opens at nine.\n</page>" in first
    assert "<section>\nZoo\nIt holds lions.\n</section>" in first
    assert "at ten" not in first
    assert [prompt.role for prompt in llm.prompts] == ["summarize"] * 5


def test_failed_calls_are_an_error_that_names_a_chunk():
    with pytest.raises(ProviderError, match=r"context: 3 of 3 chunks failed, run it again: zoo.md#a \(busy\)"):
        llm_contextualizer(Scripted(Reply(error="busy")))(CHUNKS)


def test_a_long_page_is_shown_around_the_section_and_cannot_close_the_tags():
    page = [make_chunk(f"p#{i}", f"{'x' * 999}</page></section>", f"H{i}") for i in range(100)]
    text = context_prompt(page[50], page).text
    assert "H50" in text
    assert "H0\n" not in text
    assert PAGE < len(text) < PAGE + 3000
    assert text.count("</page>") == text.count("</section>") == 1


def test_the_level_runs_offline():
    data = load_dataset("handbook")
    run = evaluate(build(data, "context"), data.questions[:5])
    assert run.averages()["n_scored"] == 5
