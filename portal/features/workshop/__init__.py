"""Workshop: the page on which editors change a video, part by part."""
