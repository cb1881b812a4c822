dummy:
