using System;
using System.Collections.Generic;
using static System.Math;
using Ledgers = Shop.Ledger.Books;
global using Shop.Clock;

[assembly: InternalsVisibleTo("Shop.Tests")]

namespace Shop.Orders;

/// <summary>
/// One purchase, with its <see cref="Line"/>s.
/// </summary>
/// <remarks>Kept in the <c>ledger</c>.</remarks>
[Serializable, Table("public.orders")]
public sealed partial class Order<T> : Entity<T>, IRepository<Order<T>>, Ledgers.IEntry
    where T : class, IComparable<T>, new()
{
    /// <summary>The most lines that an order may have.</summary>
    public const int MaxLines = 100, MinLines = 1;

    private static readonly Dictionary<string, Line> Cache = new();
    private readonly List<Line> _lines = new List<Line>();

    public event EventHandler<OrderArgs>? Changed;

    public State State { get; private set; } = State.Open;

    /// <summary>What is left to pay.</summary>
    /// <value>Never negative.</value>
    [JsonIgnore]
    public decimal Total => Max(0, _lines.Sum(line => line.Price));

    protected string Name
    {
        get { return _name ?? nameof(Order<T>); }
        set => _name = value;
    }

    public Line this[int index] => _lines[index];

    public Order(string id, IClock? clock = null) : base(id)
    {
        Register(this);
    }

    ~Order() => Ledgers.Book.Close();

    public static Order<T> operator +(Order<T> one, Order<T> other) => one;

    // Reads it from the ledger.
    [Obsolete("use Load")]
    [return: NotNull]
    public async Task<TResult?> ReadAsync<TResult>(
        [FromBody] Line line, // the first
        CancellationToken stop = default)
        where TResult : Ledgers.Page, IDisposable
    {
        int Local(int x) => x + 1;
        var page = await this._reader.ReadAsync<TResult>(line.Id, stop).ConfigureAwait(false);
        page?.Check(typeof(Line), Local(1));
        if (page is Draft || line is { Price: > 0 } and Discount found)
            throw new Ledgers.Broken(page as IPage);
        return Convert<TResult>(base.Find(page), new Line<int>("x"));
    }

    protected internal abstract void Close();

    void IRepository<Order<T>>.Save(Order<T> order) => Save(order, (Draft)null);

    private class Shelf { internal void Put(params Line[] lines) { } }
}

/// <inheritdoc cref="Order{T}"/>
public record Line(
    string Id,
    [property: JsonPropertyName("price")] decimal Price) : IPriced;

public readonly record struct Point(int X, int Y)
{
    public double Length() => Sqrt(X * X + Y * Y);
}

public struct Money { public Money(decimal value) { } }

/// <summary>Where orders are kept.</summary>
internal interface IRepository<in T>
{
    const string Kind = "orders";
    int Count { get; }

    /// <summary>Finds one.</summary>
    /// <param name="id">Its name.</param>
    /// <returns>Null if there is none.</returns>
    Task<Line?> FindAsync(string id);

    private void Log() { }
}

public enum State : byte { Open = 1, Paid }

/// <summary>Called after each change.</summary>
public delegate Task Handler<TArgs>(object sender, TArgs args);

static class LineExtensions
{
    public static bool IsFree(this Line line) => line.Price is 0;
}
