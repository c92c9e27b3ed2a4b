"""What all pages and pictures are drawn with."""
