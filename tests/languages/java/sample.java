/*
 * Licence: do as you like.
 */
package com.example.shop.orders;

import static java.lang.Math.max;
import static org.junit.Assert.*;

import com.example.shop.ledger.Ledger;
import java.util.*;
import java.util.function.Function;

/**
 * One purchase, with its {@link Line lines}.
 *
 * <p>It is kept in the {@code ledger}.
 */
@Entity
@Table(name = "public_orders", indexes = @Index(columns = "(id)"))
public abstract sealed class Order<T extends Base & Comparable<T>> extends Stored<T>
    implements Repository<Order<T>>, java.io.Closeable permits Order.Paid {

  /** The most lines that an order may have. */
  public static final int MAX_LINES = 100, MIN_LINES = 1;

  static final private Map<String, Ledger> LEDGERS = new HashMap<>();
  private static int counter;
  private final List<? extends Line> lines = new ArrayList<Line>();

  private final Comparator<Line> byName =
      new Comparator<Line>() {
        @Override
        public int compare(Line one, Line other) {
          return one.name().compareTo(other.name());
        }
      };

  static {
    Ledger.register("orders");
  }

  protected Order(String id) {
    this(id, State.OPEN);
  }

  // What is left to pay.
  @Override
  @Transactional(readOnly = true)
  public <R extends Number> R total(
      @NotNull Function<? super Line, R> worth, // of each line
      final int... rest)
      throws LedgerException, Ledger.Closed {
    class Local {
      void helper() {}
    }
    Runnable later = () -> this.lines.forEach(Order::check);
    return lines.stream().map(Line::new).map(worth).reduce(max(0, 1), Numbers.Whole::add);
  }

  abstract @Nullable Line first();

  private static boolean check(Object line) {
    return line instanceof Line found && found.price() > 0;
  }

  synchronized void close() { super.close(); }

  /** States of an order. */
  public enum State implements Named {
    OPEN("open") {
      @Override
      String title() { return "Open"; }
    },
    PAID("paid");

    static final int COUNT = 2;
    private final String name;

    State(String name) { this.name = name; }

    String title() { return name; }
  }

  /** A line. */
  public record Line(String name, @Positive long price) implements Named {
    public Line {
      Objects.requireNonNull(name);
    }

    static Line of(String text) { return new Order.Line(text, Long.parseLong(text)); }
  }

  final class Paid extends Order<Base> {}
}

/** Where orders are kept. */
interface Repository<T> {
  String NAME = "orders";

  /**
   * Finds one.
   *
   * @param id its name
   */
  Optional<T> find(String id);

  default T require(String id) { return find(id).orElseThrow(Missing::new); }

  private void log() {}
}

@Retention(RetentionPolicy.RUNTIME)
public @interface Audited {
  String value() default "";
}
