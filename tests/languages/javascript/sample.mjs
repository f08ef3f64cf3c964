import fs, { readFile as read, writeFile } from 'node:fs';
import * as path from 'node:path';
import './polyfill.mjs';
export { Clock, now as time } from './clock.mjs';
export * from './money.mjs';
export * as units from './units.mjs';

export const VERSION = '2.0';
export let retries = 3;
export const { host, port } = new URL(import.meta.url);

/** Reads an order from a file. */
export async function load(file) {
  const { parse } = await import('./parse.mjs');
  return parse(await read(path.resolve(file)));
}

export const save = async (file, order) => {
  await writeFile(file, JSON.stringify(order));
};

function internal() {}
function named() {}
const hidden = 1;

@sealed
export class Store {
  // Where it is.
  @observable place = '';

  @logged({ level: 1 })
  open() {}
}

export default class extends Store {
  close() { return fs.closed; }
}

export { named, internal as renamed };
