from __future__ import annotations

import pytest

from satchel.errors import SetupError
from satchel.ports.models import UpstreamOptions
from satchel.settings import load

URL = "http://a:1/v1"


def test_silence_and_heartbeat_can_be_set_and_hold_for_every_upstream():
    times = {"SATCHEL_UPSTREAM_SILENCE_S": "1200.5", "SATCHEL_HEARTBEAT_S": "0"}
    for environ, silence_s, heartbeat_s in (({}, 300, 15), (times, 1200.5, 0)):
        settings = load({"--upstream": (URL, f"ollama:{URL}")}, environ)
        found = [options.silence_s for options in settings.upstreams if isinstance(options, UpstreamOptions)]
        assert (found, settings.server.heartbeat_s) == ([silence_s] * 2, heartbeat_s)


@pytest.mark.parametrize("variable", ["SATCHEL_UPSTREAM_SILENCE_S", "SATCHEL_HEARTBEAT_S"])
@pytest.mark.parametrize("value", ["-1", "soon", "nan", "inf", "1e9"])
def test_a_time_that_is_none_is_refused_by_name(variable: str, value: str):
    with pytest.raises(SetupError) as caught:
        load({}, {variable: value})
    assert caught.value.code == "setting-invalid"
    assert variable in caught.value.message
