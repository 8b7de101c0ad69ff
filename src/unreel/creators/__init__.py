"""Who makes clips: folders, endpoints, pipelines and controls behind one contract."""
