namespace Shop;

/// <summary>Holds the mistakes.</summary>
public class Shelf
{
    /// <summary>Stands before them.</summary>
    public Line First() => _lines[0];

    public void Put(Line line
    {
        _lines.Add(line)
    }

    /// <summary>Stands after them.</summary>
    private int Count() { return _lines.Count(); }
}
