#!/usr/bin/env python3
"""Draws latency.svg, the timeline of docs/latency.md.

  draw_latency.py           write latency.svg beside this file
  draw_latency.py --check   write nothing; exit with 1 when it is stale

The test of the page plays the same times through the library and compares.
"""

import pathlib
import sys

# Milliseconds from the arrival of one request with six output tokens.
QUEUED = 2
SCHEDULED = 202
CHUNKS = [302, 402]
TOKENS = [500, 520, 540, 840, 860, 880]
FRONT_END = 2  # from a step's end until the front end has its output

FIRST, LAST = TOKENS[0], TOKENS[-1]
GAPS = [b - a for a, b in zip(TOKENS, TOKENS[1:])]

LATENCIES = {
    "e2e_request_latency": LAST + FRONT_END,
    "time_to_first_token": FIRST + FRONT_END,
    "request_queue_time": SCHEDULED - QUEUED,
    "request_prefill_time": FIRST - SCHEDULED,
    "request_decode_time": LAST - FIRST,
    "request_inference_time": LAST - SCHEDULED,
    "inter_token_latency": GAPS,
    "request_time_per_output_token": (LAST - FIRST) / (len(TOKENS) - 1),
}

LEFT, SCALE, WIDTH = 236, 0.68, 850
ROW, BAR, TOP = 30, 18, 92

GREY, AMBER, BLUE, GREEN, RED = "#d3d8de", "#eec06a", "#8fb3f5", "#86cb98", "#ee9d95"


def x(ms):
    return round(LEFT + ms * SCALE, 1)


def text(at, y, words, size=12, anchor="start", colour="#24292f", more=""):
    return (
        f'<text x="{at}" y="{y}" font-size="{size}" text-anchor="{anchor}"'
        f' fill="{colour}"{more}>{words}</text>'
    )


def bar(row, begin, end, colour, label=""):
    y = TOP + row * ROW
    out = [
        f'<rect x="{x(begin)}" y="{y}" width="{round((end - begin) * SCALE, 1)}"'
        f' height="{BAR}" rx="2" fill="{colour}" stroke="#fff"/>'
    ]
    if label:
        middle = round((x(begin) + x(end)) / 2, 1)
        size = 11 if end - begin > 30 else 9
        out.append(text(middle, y + 13, label, size, "middle"))
    return out


def name(row, words):
    return text(12, TOP + row * ROW + 13, words)


def milliseconds(value):
    return f"{value:g} ms"


def moments():
    """The dashed lines, each with what happens then."""
    bottom = TOP + 9 * ROW + 6
    out = []
    for at, words, level, anchor in [
        (0, "arrival", 0, "start"),
        (QUEUED, "queued", 1, "start"),
        (SCHEDULED, "first scheduled", 1, "middle"),
        (FIRST, "first token", 1, "middle"),
        (LAST, "last token", 1, "end"),
    ]:
        out.append(
            f'<line x1="{x(at)}" y1="{TOP - 10}" x2="{x(at)}" y2="{bottom}"'
            ' stroke="#8c959f" stroke-dasharray="3 3"/>'
        )
        out.append(text(x(at), TOP - 34 + 18 * level, words, 11, anchor, "#57606a"))
    return out


def steps():
    """What the engine computes: steps of others, and of this request."""
    out = [name(0, "steps of the engine")]
    for begin in range(0, SCHEDULED - 2, 40):
        out += bar(0, begin + 2, begin + 42, GREY)
    for begin, end in zip([SCHEDULED, *CHUNKS], [*CHUNKS, FIRST]):
        out += bar(0, begin, end, BLUE, "prompt")
    for begin, end in zip(TOKENS, TOKENS[1:]):
        stalled = end - begin > 100
        label = "token, beside another's prompt" if stalled else ""
        out += bar(0, begin, end, RED if stalled else GREEN, label)
    return out


def latencies():
    # The row of each: from, to, colour.
    spans = {
        "time_to_first_token": (0, FIRST + FRONT_END, BLUE),
        "e2e_request_latency": (0, LAST + FRONT_END, GREY),
        "request_queue_time": (QUEUED, SCHEDULED, AMBER),
        "request_prefill_time": (SCHEDULED, FIRST, BLUE),
        "request_decode_time": (FIRST, LAST, GREEN),
        "request_inference_time": (SCHEDULED, LAST, GREY),
    }
    out = []
    for row, (latency, (begin, end, colour)) in enumerate(spans.items(), 1):
        out.append(name(row, f"{latency}_seconds"))
        out += bar(row, begin, end, colour, milliseconds(LATENCIES[latency]))
    out.append(name(7, "inter_token_latency_seconds"))
    for begin, gap in zip(TOKENS, GAPS):
        out += bar(7, begin, begin + gap, RED if gap > 100 else GREEN, f"{gap}")
    mean = LATENCIES["request_time_per_output_token"]
    out.append(name(8, "request_time_per_output_"))
    out.append(text(12, TOP + 8 * ROW + 28, "token_seconds"))
    for i in range(len(GAPS)):
        out += bar(8, FIRST + i * mean, FIRST + (i + 1) * mean, GREEN, f"{mean:g}")
    return out


def drawing():
    height = TOP + 9 * ROW + 44
    title = "A request's time, and which part of it each histogram observes"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        f' width="{WIDTH}" height="{height}" role="img"'
        ' font-family="Helvetica, Arial, sans-serif">'
    )
    lines = [
        head,
        f"<title>{title}</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#fff"/>',
        text(12, 26, title, 15, more=' font-weight="bold"'),
        *moments(),
        *steps(),
        *latencies(),
        text(
            12,
            height - 14,
            "Names without vllm: in front. Milliseconds. The front end adds"
            f" {FRONT_END} on the way in and {FRONT_END} on the way out.",
            11,
            colour="#57606a",
        ),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def main(check):
    file = pathlib.Path(__file__).parent / "latency.svg"
    if not check:
        file.write_text(drawing(), "utf-8")
    elif not file.exists() or file.read_text("utf-8") != drawing():
        print(f"latency.svg is stale; write it anew: {__file__}")
        return 1
    return 0


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    sys.exit(main(check=len(sys.argv) > 1))
