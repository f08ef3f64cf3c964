/** Stands before the mistakes. */
function whole(name) {
  return find(name);
}

const options = {
  retries: 3,
  timeout 5,
};

class Shelf {
  put(value) {
    this.values.push(value;
  }

  get(key) { return this.values[key]; }
}

// Stands after them.
const after = () => whole('x');
