#!/usr/bin/env node
'use strict';

/*!
 * Orders of a shop, as CommonJS has them.
 */

var debug = require('debug')('shop:orders');
const path = require('path'),
  { Ledger, open: openLedger, close = noop } = require('./ledger');
const Clock = require('../clock').Clock;
require('./polyfill');

/** The most lines that an order may have. */
const MAX_LINES = 100, MIN_LINES = 1;

var counter = 0, last;
let cache = {
  orders: new Map(),
};
const { EUR, USD } = Ledger.currencies;

var shop = (exports = module.exports = {});

/**
 * Make an order.
 *
 * @param {Line[]} lines
 */
function createOrder(lines, { currency = EUR, ...rest } = {}) {
  const worth = (line) => line.price;
  function local() {
    return lines.map(worth);
  }
  return new Order(local(), currency, new Clock.Time());
}

async function* pages(ledger) {
  for await (const page of ledger.pages()) yield parse?.(page);
}

// Adds up what is left of each line.
const total = (order) =>
  order.lines.reduce((sum, line) => sum + line.price, 0);

const later = async function (order /* not yet paid */, days = 3) {
  await openLedger(path.join(order.id, `${days}`));
};

const memoized = memoize(function (order) {
  function inner() {}
  return inner(order);
});

/**
 * An order, in the old way.
 * @constructor
 */
function Order(lines, currency) {
  if (!(this instanceof Order)) throw new TypeError('new');
  this.lines = lines;
}

/** Whether nothing is left to pay. */
Order.prototype.isPaid = function isPaid() {
  return total(this) === 0;
};

Order.parse = (text) => JSON.parse(text);

shop.find = function (id, done) {
  cache.orders.get(id)
    .then(function (found) {
      done(null, found);
    })
    .catch(done);
};

class Shelf extends Ledger.Base {
  static LIMIT = 12;
  #values = [];
  onPut = (value) => this.#check(value);

  constructor(room) {
    super(room);
  }

  // How much there is.
  get size() { return this.#values.length; }
  set size(value) { throw new Error('fixed'); }

  static async load(file) { return new this(await read(file)); }

  #check(value) { return isLine(value); }

  *[Symbol.iterator]() { yield* this.#values; }
}

exports.retry = function (times) { return times; };
module.exports.once = async () => exports.retry(1);
exports.version = '1.0';
exports.plain = { walk() {}, run: function () {} };

module.exports = { createOrder, list: pages, Shelf, ...shop };

(function () {
  function registerAll() { debug('ready'); }
  registerAll();
})();
