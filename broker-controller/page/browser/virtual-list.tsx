/** A list of any length: only the rows in the window are in the document. */
import type { ComponentChildren } from 'preact'
import { columnsIn, drawnRows } from '../model/virtual-rows.ts'
import { useWindow } from './hooks.ts'

export type VirtualListProps<T> = {
  readonly label: string
  readonly items: readonly T[]
  readonly keyOf: (item: T) => string
  /** In pixels. */
  readonly rowHeight: number
  /** As many columns as fit of this width; undefined: one. */
  readonly columnWidth?: number
  readonly row: (item: T) => ComponentChildren
}

const gap = 12

export function VirtualList<T>({ label, items, keyOf, rowHeight, columnWidth, row }: VirtualListProps<T>) {
  const { element, seen } = useWindow<HTMLDivElement>()
  const columns = columnWidth === undefined ? 1 : columnsIn(seen.width, columnWidth, gap)
  const { first, end, above, total } = drawnRows(Math.ceil(items.length / columns), rowHeight, seen)
  const shown = items.slice(first * columns, end * columns)
  return (
    <div ref={element} class="virtual" style={{ height: `${total}px` }}>
      <ul
        aria-label={label}
        class={columnWidth === undefined ? 'rows' : 'tiles'}
        style={{
          transform: `translateY(${above}px)`,
          ...(columnWidth !== undefined && { gridTemplateColumns: `repeat(${columns}, minmax(0, 1fr))` }),
        }}
      >
        {shown.map((item, i) => (
          <li
            key={keyOf(item)}
            style={{ height: `${columnWidth === undefined ? rowHeight : rowHeight - gap}px` }}
            aria-posinset={first * columns + i + 1}
            aria-setsize={items.length}
          >
            {row(item)}
          </li>
        ))}
      </ul>
    </div>
  )
}
