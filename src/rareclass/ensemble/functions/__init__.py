"""What every member becomes once learned: plain arrays that score rows, whoever learned them."""
