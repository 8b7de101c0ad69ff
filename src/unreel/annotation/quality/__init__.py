"""Quality of annotators: accuracy, changes over time, and answers without looking."""
