#!/usr/bin/env python3
"""Fuel budget of the survey aircraft Petrel, burnt in one-minute steps. Standard library only."""

import argparse
import sys

EMPTY_KG = 1184.0
MAX_PAYLOAD_KG = 480.0
MAX_DISTANCE_KM = 5000.0
MAX_WIND_KMH = 120.0
TANK_KG = 395.0
TAXI_KG = 6.4
AIRSPEED_KMH = 236.0
FLOW_KG_MIN = 0.529
FLOW_PER_KG = 0.000187
CLIMB_MIN = 14
CLIMB_FACTOR = 1.38
RESERVE_MIN = 41
CONTINGENCY = 0.035


def flow(mass_kg: float, minute: int) -> float:
    """Kilograms burnt in one minute at a mass."""
    burnt = FLOW_KG_MIN + FLOW_PER_KG * mass_kg
    return burnt * CLIMB_FACTOR if minute < CLIMB_MIN else burnt


def trip(distance_km: float, landing_kg: float, headwind_kmh: float, fuel_kg: float) -> float:
    """Kilograms burnt over the distance by an aircraft that starts with so much fuel above its landing mass."""
    per_minute_km = (AIRSPEED_KMH - headwind_kmh) / 60.0
    mass, left, burnt, minute = landing_kg + fuel_kg, distance_km, 0.0, 0
    while left > 0:
        share = min(1.0, left / per_minute_km)
        used = flow(mass, minute) * share
        mass, left, burnt, minute = mass - used, left - per_minute_km * share, burnt + used, minute + 1
    return burnt


def budget(distance_km: float, payload_kg: float, headwind_kmh: float) -> "dict[str, float]":
    """Trip, reserve, taxi and total in kilograms. The trip fuel is part of the mass, so it is found by iteration."""
    dry = EMPTY_KG + payload_kg
    trip_kg, reserve_kg = 0.0, 0.0
    for _ in range(60):
        reserve_kg = RESERVE_MIN * flow(dry + reserve_kg, CLIMB_MIN) + CONTINGENCY * trip_kg
        trip_kg = trip(distance_km, dry + reserve_kg, headwind_kmh, trip_kg)
    return {"trip": trip_kg, "reserve": reserve_kg, "taxi": TAXI_KG, "total": trip_kg + reserve_kg + TAXI_KG}


def main() -> int:
    """Prints one line a part and the total last; 2 when the flight is not possible."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--distance", type=float, required=True, metavar="KM", help="whole route over ground")
    parser.add_argument("--payload", type=float, default=0.0, metavar="KG", help="instruments and people (default 0)")
    parser.add_argument(
        "--headwind", type=float, default=0.0, metavar="KMH", help="negative for a tailwind (default 0)"
    )
    asked = parser.parse_args()
    if not 0 < asked.distance <= MAX_DISTANCE_KM:
        parser.error(f"--distance must be above 0 and at most {MAX_DISTANCE_KM:g}")
    if not 0 <= asked.payload <= MAX_PAYLOAD_KG:
        parser.error(f"--payload must be from 0 to {MAX_PAYLOAD_KG:g}")
    if not abs(asked.headwind) <= MAX_WIND_KMH:
        parser.error(f"--headwind must be from -{MAX_WIND_KMH:g} to {MAX_WIND_KMH:g}")
    parts = budget(asked.distance, asked.payload, asked.headwind)
    if parts["total"] > TANK_KG:
        print(f"not possible: {parts['total']:.2f} kg needed, the tanks hold {TANK_KG:g} kg", file=sys.stderr)
        return 2
    for name in ("trip", "reserve", "taxi"):
        print(f"{name}: {parts[name]:.2f} kg")
    print(f"fuel to load: {parts['total']:.2f} kg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
