"""What a person looks at: tables, figures, reports. Never imports torch."""
