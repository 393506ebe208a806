from tests.support.fixtures import model_server
from tests.unit.support.clients import openai_client

__all__ = ["model_server", "openai_client"]
