"""What the lab's guided tours share; each paper's own tour is `papers/<key>/tour.py` and its cards
`tour_cards.py`.
"""
