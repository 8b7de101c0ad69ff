"""Who answers well, who has changed, and who does not look."""
