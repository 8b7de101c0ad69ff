"""The words of unreel: frozen, exact values. Imports the standard library only."""
