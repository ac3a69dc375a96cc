"""Runs over a provider's batches: half the price, and replies when the provider finds the time, a day at most.

pass: every item without a verdict is judged from its start; kept calls are answered, new ones go into a wave
send: the wave's files are uploaded, and a batch is made of each
wait: until all batches have ended; what they brought answers the calls of the next pass

Only who runs over batches imports ``checking`` and ``desk``, which need the provider's package.
"""
