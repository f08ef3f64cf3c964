/// <reference types="node" />
import assert from 'assert';
import ledger, { Entry as LedgerEntry, type Page } from '../ledger';
import type { Customer } from './people';
import * as clock from '@/clock';
import fs = require('fs');
import './polyfill';
export { Money } from './money';
export * from './units';

/** The most lines that an order may have. */
export const MAX_LINES = 100;
const currencies = ['EUR', 'USD'] as const;
export let retries: number | undefined;
declare const BUILD: string;

/** How an order is named. */
export type OrderId = string & { readonly brand: unique symbol };

type Handler<T extends Entry = Entry> = (entry: T, ...rest: Page[]) => Promise<void>;

type Nullable<T> = {
  [K in keyof T]: T[K] extends infer U ? U | null : LedgerEntry;
};

export enum State {
  Open = 'open',
  Paid = 'paid',
}

declare const enum Flag { None, Some = 1 << 2 }

/**
 * Where orders are kept.
 */
export interface Repository<T> extends Iterable<T>, clock.Ticking {
  readonly size: number;
  onChange?: (order: T) => void;
  /** Null if there is none. */
  find(id: OrderId): Promise<T | null>;
  save?(order: T): void;
}

export default abstract class Base<T> {
  protected abstract key(value: T): string;
}

/** One purchase. */
@Entity({ name: 'orders' })
@sealed
export class Order extends Base<Line> implements Repository<Line>, ledger.Entry {
  static readonly LIMIT = 3;
  private static instance?: Order;
  #lines: Line[] = [];
  declare kept: string;

  constructor(
    @Inject(CLOCK) private readonly time: clock.Clock, // when it was made
    public state: State = State.Open,
  ) {
    super();
  }

  // What is left to pay.
  @memoized()
  get total(): number { return this.#lines.reduce((sum, line) => sum + line.price, 0); }
  set total(value: number) { assert.fail(`${value}`); }

  static of<T extends Line>(...lines: T[]): Order;
  static of(lines: unknown): Order {
    const order = new Order(new clock.Clock());
    return order.add(lines as Line);
  }

  protected key = (line: Line): string => line.id!;

  private async *pages(): AsyncGenerator<Page> { yield* this.#read<Page>(); }

  #read<T>(): T { return fs.readFileSync('x') as unknown as T; }

  public override toString() { return String(this.total); }
}

export function parse(text: string): Order;
export function parse(text: Buffer, strict: boolean): Order;
export function parse(text: string | Buffer): Order {
  interface Local { x: number }
  return text instanceof Order ? text : Order.of<Line>(JSON.parse(text) satisfies Local);
}

export const isPaid = (order: Order): order is PaidOrder => order?.state === State.Paid;

const lazy = async function* <T>(load: () => Promise<T>) {
  yield await import('./lazy');
};

/** Numbers of all kinds. */
export namespace Numbers.Whole {
  export const zero = 0;
  const hidden = 1;
  export function add(a: number, b: number) { return check(a + b); }
  export class Range {}
}

declare module 'express' {
  interface Request { customer?: Customer }
}

declare function later(order: Order): NodeJS.Timeout;

describe('orders', () => {
  class Fake extends Base<string> { protected key(value: string) { return value; } }
  it('are kept', () => expect(new Fake()).toBeDefined());
});

export { lazy, later as soon };
