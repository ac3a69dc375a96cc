"""Google's Vertex AI, whose models reply in the words of Gemini's API."""

from __future__ import annotations

from .provider import Provider

VERTEX = Provider(
    title="Vertex AI",
    names=("google_vertexai",),
    price_list="google",
    telemetry={"google_vertexai": "gcp.vertex_ai"},
)
