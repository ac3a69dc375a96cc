"""The calls of a run in batches of their providers: half the price, and replies within a day.

pass: judge each item without a verdict; answer stored calls, collect new ones in a wave
send: create a batch from each file of the wave; the journal records it before it is sent
wait: poll until all batches have ended; their results answer the calls of the next pass

Import ``batch_pipeline`` only for a run over batches: it needs the packages of the providers.
"""
