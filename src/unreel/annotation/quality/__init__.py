"""Quality of annotators: accuracy, changes over time, speed, and answers that ignore the clip."""
