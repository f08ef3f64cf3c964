<?php
namespace Shop;

/** Still there. */
class Order
{
    public function total(: int
    {
        return $this->sum();
    }

    private function after(): int { return next_one(); }
}

function last(): Order { return new Order(); }
