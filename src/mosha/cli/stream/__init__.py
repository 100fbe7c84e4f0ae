"""`mosha stream`: statistics that go on, fed from files."""
