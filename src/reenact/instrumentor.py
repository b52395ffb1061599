"""OpenTelemetry's own way in: `opentelemetry-instrument`, entry-point group `opentelemetry_instrumentor`."""

from __future__ import annotations

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
            embedded.carried(self._recording)
            self._recording = None
