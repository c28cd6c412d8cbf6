"""The device ends of arms' wire protocols, with the simulated arm behind them.

Each file speaks one vendor's protocol well enough for that vendor's own client, unmodified. They
prove what goes over the wire; they are not the hardware.
"""
