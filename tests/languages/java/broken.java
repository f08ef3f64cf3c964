package com.example.shop;

/** Holds the mistakes. */
public class Shelf {
  /** Stands before them. */
  public Line first() {
    return lines.get(0);
  }

  public void put(Line line {
    lines.add(line)
  }

  /** Stands after them. */
  int size() { return lines.size(); }
}
