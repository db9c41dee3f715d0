"""Jobs that are not traced keep the id of their request.

`test_secrets.py` follows the trace of a video.
"""

from portal.telemetry.logs import log_context
from portal.telemetry.tracing import current_trace_context, traced_job


def test_job_enqueued_by_a_job_has_the_same_request() -> None:
    assert current_trace_context() == {}
    with traced_job("test", {"request_id": "first"}, video_id="1"):
        assert current_trace_context() == {"request_id": "first"}
    with log_context(request_id="second"):
        assert current_trace_context() == {"request_id": "second"}
