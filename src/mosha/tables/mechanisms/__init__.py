"""The randomized functions of tables, without tables: noise, choices by ranks, windows, shares of a budget."""
