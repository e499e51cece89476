"""What `stopline doctor` looks at: a local database, or a deployment on AWS."""
