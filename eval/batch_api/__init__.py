"""Make the calls of a run through OpenAI's Batch API: half the price, and replies within a day.

pass: every item without a verdict is judged from its start; kept calls are answered, new ones go into a wave
send: the wave's files are uploaded, and a batch is made of each
wait: until all batches have ended; what they brought answers the calls of the next pass

Import ``batch_pipeline`` only for a run over batches: it needs the provider's package.
"""
