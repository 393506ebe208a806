"""What follows an answer to find out what it rests on. Knows no format; nothing here may delay or fail the answer."""
