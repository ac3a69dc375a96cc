"""Make the calls of a run in batches of their providers: half the price, and replies within a day.

pass: every item without a verdict is judged from its start; kept calls are answered, new ones go into a wave
send: a batch is made of each of the wave's files; what is about to be sent is noted before
wait: until all batches have ended; what they brought answers the calls of the next pass

Import ``batch_pipeline`` only for a run over batches: it needs the packages of the providers.
"""
