# frozen_string_literal: true

require 'json'
require_relative 'lib/line'
autoload :Report, 'shop/report'

# The shop.
module Shop
  MAX_LINES = 50
  CURRENCIES = [
    'EUR',
    'USD'
  ].freeze
  FIRST, LAST = 0, -1

  # Raised when an order is full.
  class Full < StandardError; end

  # An order with its lines.
  #
  # It is open until it is paid.
  class Order < Store::Record
    # States, in order.
    STATES = %i[open paid].freeze

    include Comparable
    attr_reader :id, :lines

    # A new order.
    # @param id [Integer]
    def initialize(id, *lines, limit: MAX_LINES, **options, &block)
      super()
      @id = id
      @lines = lines.map { |each| Line.new(each) }
      validate
      block&.call(self)
    end

    def self.open(id) = new(id).tap { |made| made.save }

    def <=>(other) = id <=> other.id

    def empty?; lines.empty?; end

    def state=(value)
      raise ArgumentError, "no #{value}" unless STATES.include?(value)

      @state = value
    end

    class << self
      # Finds one.
      def find(id)
        Store::Index.lookup(id) || raise(Full)
      end
    end

    private

    # Sums up.
    def total(from:,
              to: LAST)
      lines[from..to].sum(&:price)
    end

    def self.still_public; end

    class Inner; end

    public

    def shown
      log total(from: FIRST)
    end

    # Not for others.
    private def inline_hidden
    end

    protected

    def compare; end # as a friend
  end

  def self.log(text) = puts(JSON.dump(text))

=begin
Totals, for mixing in.
=end
  module Totals
    def grand_total = orders.sum(&:total)
  end
end

class Shop::Invoice
  def größe
    Shop.log(self.class.name)
  end
end

# A point on the map.
Point = Struct.new(:x, :y) do
  def distance(other)
    Math.sqrt(dx(other)**2)
  end
end

Failure = Class.new(StandardError)

$orders = []

# Starts it all.
def main
  $orders << Shop::Order.open(1)
  run
end

main if $PROGRAM_NAME == __FILE__
