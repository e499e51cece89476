"""The kind of machine that a function runs on: what pip must find packages for."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Machine:
    """A processor as Lambda names it ("arm64" or "x86_64") and a Python such as "3.14"."""

    architecture: str
    python: str

    @property
    def platforms(self) -> tuple[str, ...]:
        """Wheel platforms that run there, newest first: with manylinux2014 alone pip quietly takes an older psycopg."""
        processor = "aarch64" if self.architecture == "arm64" else self.architecture
        return f"manylinux_2_28_{processor}", f"manylinux2014_{processor}"
