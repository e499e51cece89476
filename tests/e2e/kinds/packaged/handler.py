"""Uses the compiled part of its own package."""

import msgpack._cmsgpack  # type: ignore[import-not-found]

from stopline import Job


def run(job: Job) -> str:
    packed: bytes = msgpack._cmsgpack.Packer().pack({"n": job.payload["n"]})
    return packed.hex()
