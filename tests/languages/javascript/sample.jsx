import React, { useState } from 'react';
import { Button } from './Button';

/** One line of an order. */
export function Line({ name, price }) {
  const [open, setOpen] = useState(false);
  const toggle = () => setOpen(!open);
  return (
    <li onClick={toggle}>
      <Button.Icon name="x" /> {name}: {format(price)}
      {open && <Details of={name}>more</Details>}
    </li>
  );
}

const Total = ({ lines }) => <b>{lines.map((line) => <Line key={line.id} {...line} />)}</b>;

export const Cart = React.memo(function Cart(props) {
  const remove = (line) => props.onRemove(line);
  function Empty() { return <p>nothing</p>; }
  return <>{props.lines.length ? <Total lines={props.lines} /> : <Empty />}</>;
});

export default Total;
