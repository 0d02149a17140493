"""`python -m cli`, which is how `resumes up` starts its processes."""

from cli.main import main

if __name__ == "__main__":
    main()
