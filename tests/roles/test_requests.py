"""A member reads the parts of a request's path, whatever is in them."""

from types import SimpleNamespace

import pytest

from opfl_chain.roles.member.requests import round_in
from opfl_chain.transport.routes import Refusal, Request


@pytest.mark.parametrize("text", ["", "x", "-1", "²", "1" * 29, "1" * 5_000], ids=len)
def test_rounds_that_do_not_exist_are_refused(text):
    view = SimpleNamespace(round=lambda number: None)
    node = SimpleNamespace(job=SimpleNamespace(id=1), view=view)
    with pytest.raises(Refusal):
        round_in(node, Request("GET", "/", {"round": text}, {}, b"", "127.0.0.1"))
