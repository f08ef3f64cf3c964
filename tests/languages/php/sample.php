<?php

declare(strict_types=1);

namespace Shop\Orders;

use Psr\Log\LoggerInterface;
use Shop\Line as Row, Countable;
use Shop\Money\{Amount, Tax\Rate as TaxRate};
use function Shop\Helpers\total;
use const Shop\MAX_LINES;

require_once __DIR__ . '/legacy.php';
include 'helpers.php';

const FIRST = 0, LAST = -1;
define('SHOP_VERSION', '1.2');

/**
 * What can be paid.
 */
interface Payable extends \JsonSerializable
{
    const CURRENCY = 'EUR';

    /** The amount, with tax. */
    public function amount(?TaxRate $rate = null): Amount;
}

trait Logs
{
    private ?LoggerInterface $logger = null;

    protected function log(string $text): void
    {
        $this->logger?->info($text, ['order' => static::class]);
    }
}

/** The state of an order. */
enum State: string implements HasLabel
{
    case Open = 'open';
    case Paid = 'paid';

    const DEFAULT = self::Open;

    public function label(): string
    {
        return ucfirst($this->value);
    }
}

/**
 * An order with its lines.
 *
 * @template T
 */
#[Entity(repository: OrderRepository::class)]
abstract class Order extends Record implements Payable, Countable
{
    use Logs, Stamps { log as protected write; }

    public const int LIMIT = MAX_LINES;
    private const STATES = [
        'open',
        'paid',
    ];

    protected static int $opened = 0;

    public function __construct(
        private readonly int $id,
        protected array $lines = [],
    ) {
        parent::__construct($id);
        self::$opened++;
    }

    /** Opens an order. */
    #[Pure]
    final public static function open(int|string $id, Row ...$lines): static
    {
        $made = new static($id, $lines);
        $made->log(Messages::opened($id));
        return $made->save()->fresh();
    }

    #[Route('/private'), Deprecated] abstract protected function close(\DateTimeInterface $at): bool;

    function count(): int { return count($this->lines); }

    private function sum(callable $price): Amount
    {
        function local_helper() { return 1; }
        if (!$price instanceof \Closure) {
            throw new \InvalidArgumentException('no price');
        }
        return total(array_map(fn (Row $row) => $price($row), $this->lines));
    }
}

/** Größe einer Bestellung. */
function größe(Order $order): int
{
    return \Shop\Helpers\size($order) ?? $order->count();
}

return new class extends Migration {
    public function up(): void { Schema::create('orders', fn ($table) => $table->id()); }
};
