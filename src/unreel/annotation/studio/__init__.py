"""The real Label Studio as the screen: started, filled and read over its plain HTTP calls."""
