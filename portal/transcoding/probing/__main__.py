"""Run the child's side: `python -I -m portal.transcoding.probing`."""

from portal.transcoding.probing.child.examine import main

if __name__ == "__main__":
    main()
