"""`python -m tests.deploy.rendered_examples` keeps what the examples render now, for a person to look at the difference."""

from tests.deploy.chart import CHART, EXAMPLES, example

if __name__ == "__main__":
    for name in EXAMPLES:
        (CHART / "examples" / name / "rendered.yaml").write_text(example(name).text)
