"""A program that writes many small resumes into a folder: `FOLDER COUNT`."""

import json
import os
import sys


def main() -> None:
    folder, count = sys.argv[1], int(sys.argv[2])
    name = os.path.basename(folder)  # noqa: PTH119  (imports as little as it can, to begin soon)
    for number in range(count):
        document = {
            "header": {"name": f"{name} {number}", "email": "ada@example.com"},
            "sections": {"summaries": {"column": 0, "items": [{"text": "Builds things."}]}},
        }
        with open(f"{folder}/{number}.json", "w") as file:  # noqa: PTH123
            json.dump(document, file)


if __name__ == "__main__":
    main()
