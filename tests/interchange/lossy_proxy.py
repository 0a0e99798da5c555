"""A UDP proxy, run as a program of its own, that loses, repeats and reorders packets.

python lossy_proxy.py PORT TARGET_PORT SEED SHARE

Each packet, in either direction, is lost, sent twice, or held back until the next one in its
direction (at most 2 ms), each with probability SHARE. The numbers of what it did are printed.
"""

import random
import select
import socket
import sys
import time

port, target, seed, share = (*map(int, sys.argv[1:4]), float(sys.argv[4]))
draw = random.Random(seed)
front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
front.bind(("127.0.0.1", port))
back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
back.bind(("127.0.0.1", 0))
client, held, counts = None, {front: [], back: []}, [0, 0, 0, 0]
print("ready", flush=True)
quiet = time.monotonic()


def forward(source, data):
    if source is front:
        back.sendto(data, ("127.0.0.1", target))
    elif client is not None:
        front.sendto(data, client)


while time.monotonic() < quiet + 4.0:
    ready, _, _ = select.select([front, back], [], [], 0.002)
    if not ready:
        for source, packets in held.items():
            while packets:
                forward(source, packets.pop())
    for source in ready:
        try:
            data, sender = source.recvfrom(65535)
        except ConnectionError:
            continue
        quiet = time.monotonic()
        if source is front:
            client = sender
        chance = draw.random()
        what = min(int(chance / share), 3)
        counts[what] += 1
        if what == 0:  # lost
            continue
        if what == 2 and not held[source]:  # held back: the next overtakes it
            held[source].append(data)
            continue
        forward(source, data)
        if what == 1:
            forward(source, data)
        while held[source]:
            forward(source, held[source].pop())
print(*counts, flush=True)
