"""OpenTelemetry's own way in: `opentelemetry-instrument`, entry-point group `opentelemetry_instrumentor`."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any

from opentelemetry.instrumentation.instrumentor import BaseInstrumentor


class ReenactInstrumentor(BaseInstrumentor):  # type: ignore[misc]  # the base is untyped
    """Records this process: spans on the application's provider, and the full recording in the local store.

    `instrument(tracer_provider=…)` projects to that provider, else to the global one. `uninstrument()` gives every
    patched function back and carries the recording into the store.
    """

    _recording: Any = None

    def instrumentation_dependencies(self) -> Collection[str]:
        """Name nothing: whatever client library is there is cut when it is imported."""
        return ()

    def _instrument(self, **kwargs: Any) -> None:
        from reenact.pipeline import embedded, recording

        if recording.current() is None:
            self._recording = embedded.begin(recording.Setup(application=kwargs.get("tracer_provider")))

    def _uninstrument(self, **kwargs: Any) -> None:
        del kwargs
        from reenact.pipeline import embedded, recording

        if self._recording is not None:
            recording.stop(self._recording)
            embedded.carried(self._recording, latest=0)
            self._recording = None


class RedactionInstrumentor(BaseInstrumentor):  # type: ignore[misc]  # the base is untyped
    """Redacts whatever the process exports, where REENACT_REDACT is set to anything but `0`, `off` or `false`.

    For programs that are not to be changed: `REENACT_REDACT=1 opentelemetry-instrument python app.py`. It does what
    `reenact.redact_everything` does, for every provider that the process has or will make, until it ends.
    """

    def instrumentation_dependencies(self) -> Collection[str]:
        """Name nothing, as above."""
        return ()

    def _instrument(self, **kwargs: Any) -> None:
        if os.environ.get("REENACT_REDACT", "").lower() in {"", "0", "off", "false"}:
            return
        from reenact.redact.provider_guard import redact_everything, redact_process

        redact_process()
        if (provider := kwargs.get("tracer_provider")) is not None:
            redact_everything(provider)

    def _uninstrument(self, **kwargs: Any) -> None:
        """Leave it: what was asked to be redacted is not let through in the middle of a program."""
