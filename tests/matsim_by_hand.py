"""A MATSim network and events by hand: a square a → b → c → d → a of 300 m, and a street from b to a."""

import gzip

CORNERS = {"a": (0, 0), "b": (300, 0), "c": (300, 300), "d": (0, 300), "far": (9000, 9000)}
LINKS = {"ab": 2, "bc": 1, "cd": 1, "da": 1, "ba": 1.5}
"""Names of links, from node to node, and their lanes."""


def network_xml(*, crs="EPSG:32632", more=""):
    nodes = "".join(
        f'<node id="{name}" x="{500_000 + x}.0" y="{5_400_000 + y}.0"/>' for name, (x, y) in CORNERS.items()
    )
    links = "".join(
        f'<link id="{name}" from="{name[0]}" to="{name[1]}" length="300.0" freespeed="15.0" capacity="7200.0" '
        f'permlanes="{lanes}" oneway="1" modes="car,bus"/>'
        for name, lanes in LINKS.items()
    )
    stated = f'<attribute name="coordinateReferenceSystem" class="java.lang.String">{crs}</attribute>'
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<!DOCTYPE network SYSTEM "http://www.matsim.org/files/dtd/network_v2.dtd">\n'
        f"<network><attributes>{stated if crs else ''}</attributes><nodes>{nodes}</nodes>"
        f'<links capperiod="02:00:00">{links}{more}</links></network>'
    )


#: time, type, link and vehicle
EVENTS = [
    (21600, "vehicle enters traffic", "ab", "p"), (21601, "left link", "ab", "p"), (21601, "entered link", "bc", "p"),
    (21610, "vehicle enters traffic", "ab", "q"), (21621, "left link", "bc", "p"), (21621, "entered link", "cd", "p"),
    (21630, "left link", "ab", "q"), (21630, "entered link", "rail", "q"), (21640, "left link", "rail", "q"),
    (21640, "entered link", "bc", "q"), (21651, "vehicle leaves traffic", "cd", "p"),
    (21700, "vehicle leaves traffic", "bc", "q"), (25300, "vehicle enters traffic", "cd", "p"),
    (25301, "left link", "cd", "p"), (25301, "entered link", "da", "p"), (25331, "vehicle leaves traffic", "da", "p"),
]  # fmt: skip


def write_events(file, events=EVENTS):
    body = "".join(
        f'<event time="{time}.0" type="{kind}" person="{vehicle}" link="{link}" vehicle="{vehicle}"/>\n'
        for time, kind, link, vehicle in events
    )
    other = '<event time="21600.0" type="actend" person="p" link="ab" actType="home"/>'
    file.write_bytes(gzip.compress(f'<events version="1.0">{other}{body}</events>'.encode(), mtime=0))
    return file
