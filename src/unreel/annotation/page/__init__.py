"""HTML page of a campaign: disputed tasks first, with the traces of all annotators on a timeline."""
