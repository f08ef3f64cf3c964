# Still there.
class Order
  def total
    sum = ) 1
    lines.sum(&:price)
  end

  def after
    validate
  end
end

def last = Order.new
