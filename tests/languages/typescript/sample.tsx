import React, { type ReactNode } from 'react';
import { Button } from './Button';

interface Props<T> {
  items: T[];
  render(item: T): ReactNode;
}

/** Shows whatever it is given. */
export function List<T,>({ items, render }: Props<T>): JSX.Element {
  return <ul>{items.map((item) => <Item<T> key={String(item)}>{render(item)}</Item>)}</ul>;
}

const Item: React.FC<{ children: ReactNode }> = ({ children }) => {
  const [open, setOpen] = React.useState<boolean>(false);
  return (
    <li>
      <Button.Icon onClick={() => setOpen(!open)} />
      {children}
    </li>
  );
};

export const Field = React.forwardRef<HTMLInputElement, Props<string>>((props, ref) => {
  function label() { return props.items[0]; }
  return <input ref={ref} aria-label={label()} />;
});

export default class Page extends React.Component<Props<string>> {
  state = { open: false };
  private handle = (event: React.MouseEvent) => this.setState({ open: !!event });
  override render() { return <List {...this.props} />; }
}
