#!/usr/bin/env python3
"""Takes the snippets of README.md out so that the tests can build and run them.

usage: readme_snippets.py programs README FOLDER   writes snippet_1.cpp, snippet_2.cpp, ... for the
                                                   blocks of C++, where they differ from what is there
       readme_snippets.py commands README BINARIES runs the commands that start with
                                                   build/release/bin/ in a fresh folder, on small
                                                   files and with small numbers, and fails if one fails
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path


def blocks(readme, language):
    text = Path(readme).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def write_programs(readme, folder):
    Path(folder).mkdir(parents=True, exist_ok=True)
    for number, program in enumerate(blocks(readme, "cpp"), 1):
        path = Path(folder) / f"snippet_{number}.cpp"
        if not path.exists() or path.read_text(encoding="utf-8") != program:
            path.write_text(program, encoding="utf-8")


def shortened(command, binaries):
    command = command.replace("build/release/bin", str(Path(binaries).resolve()))
    for found, small in ((r"--valid-pairs \d+", "--valid-pairs 2"), (r"--steps \d+", "--steps 20 --valid-pairs 2"), (r"--held-out-test \d+", "--held-out-test 2"), (r"--subword-size \d+", "--subword-size 284")):
        command = re.sub(found, small, command)
    return command


def run_commands(readme, binaries):
    animals = (("the dog", "der Hund"), ("the cat", "die Katze"), ("the cow", "die Kuh"), ("a goose", "eine Gans"))
    verbs = (("sleeps", "schläft"), ("drinks", "trinkt"), ("waits", "wartet"))
    places = (("in the house", "im Haus"), ("in the garden", "im Garten"), ("in the park", "im Park"))
    english, german = ("\n".join(f"{a[side]} {v[side]} {p[side]} ." for a in animals for v in verbs for p in places) for side in (0, 1))
    pairs = "\n".join("\t".join(pair) for pair in zip(english.split("\n"), german.split("\n")))
    lines = [line for block in blocks(readme, "sh") for line in block.splitlines() if "build/release/bin/" in line]
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("my.en", english), ("my.de", german), ("pairs.tsv", pairs)):
            Path(folder, name).write_text(text + "\n", encoding="utf-8")
        # What the quickstart leaves, so that commands without a model find one.
        train = f"build/release/bin/train_translation --output runs/toy --toy-pairs 200 --test-pairs 5 --steps 20"
        for line in [train, *lines]:
            result = subprocess.run(["bash", "-o", "pipefail", "-c", shortened(line, binaries)], cwd=folder, capture_output=True, text=True)
            print(f"{result.returncode}  {line}")
            if result.returncode != 0:
                sys.exit(result.stdout + result.stderr)


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("programs", "commands"):
        sys.exit(__doc__)
    (write_programs if sys.argv[1] == "programs" else run_commands)(sys.argv[2], sys.argv[3])


if __name__ == "__main__":
    main()
