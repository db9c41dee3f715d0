"""Run the child's side: `python -I -m portal.transcoding.copying`."""

from portal.transcoding.copying.child.remuxing import main

if __name__ == "__main__":
    main()
