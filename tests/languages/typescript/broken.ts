/** Stands before the mistakes. */
export interface Named {
  name: string;
}

export function open(named: Named: string {
  return find(named.name);
}

export class Shelf<T {
  put(value: T): void { this.values.push(value); }
}

/** Stands after them. */
export const after = (shelf: Shelf<string>) => shelf.put('x');
