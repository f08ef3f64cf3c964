-- Orders; and what belongs to them.

/* CREATE TABLE none (id int); */

-- What a customer asked for.
CREATE TABLE IF NOT EXISTS shop.orders (
    id bigint PRIMARY KEY,
    note text DEFAULT 'a ; b',
    customer bigint REFERENCES shop.customers (id) ON UPDATE CASCADE
);

create temporary table "Line Items" (id int);

CREATE OR REPLACE VIEW open_orders AS
SELECT o.id FROM shop.orders o
JOIN `lines` l ON l.order_id = o.id;

-- The sum of an order.
CREATE FUNCTION shop.total(order_id bigint,
                           tax numeric DEFAULT 0)
RETURNS numeric AS $body$
BEGIN
    RETURN (SELECT sum(price) FROM lines WHERE id = order_id);
END;
$body$ LANGUAGE plpgsql;

CREATE PROCEDURE close_order(IN id INT)
BEGIN
    UPDATE orders SET state = 'closed';
    DELETE FROM carts;
END;

CREATE TYPE state AS ENUM ('open', 'paid');

CREATE TRIGGER touched BEFORE UPDATE ON orders
FOR EACH ROW EXECUTE FUNCTION touch();

CREATE INDEX by_customer ON shop.orders (customer);
INSERT INTO shop.orders VALUES (1, 'x', 2);
ALTER TABLE ONLY carts ADD COLUMN at timestamp
