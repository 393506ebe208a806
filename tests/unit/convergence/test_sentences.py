from parley.convergence.rounds import sentences


def test_sentences_leave_out_code_and_markup() -> None:
    text = "# Plan\n- Use Kafka for it.\n- Keep the log short.\n```python\nprint('Not this one at all.')\n```\nThen measure it."
    assert sentences(text) == ["Use Kafka for it.", "Keep the log short.", "Then measure it."]
