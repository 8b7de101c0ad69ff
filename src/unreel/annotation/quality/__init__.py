"""Quality of annotators: accuracy, changes over time, and answers that do not depend on the clip."""
