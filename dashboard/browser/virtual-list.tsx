/** A list of any length: only the rows in the window are in the document. */
import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'
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

type Drawn<T> = {
  readonly row: (item: T) => ComponentChildren
  readonly columns: number
  readonly rows: ReadonlyMap<T, ComponentChildren>
}

export function VirtualList<T>({ label, items, keyOf, rowHeight, columnWidth, row }: VirtualListProps<T>) {
  const listRow = (item: T, at: number) => (
    <li
      key={keyOf(item)}
      style={{ height: `${columnWidth === undefined ? rowHeight : rowHeight - gap}px` }}
      aria-posinset={at + 1}
      aria-setsize={items.length}
    >
      {row(item)}
    </li>
  )
  const { element, seen } = useWindow<HTMLDivElement>()
  const columns = columnWidth === undefined ? 1 : columnsIn(seen.width, columnWidth, gap)
  const { first, end, above, total } = drawnRows(Math.ceil(items.length / columns), rowHeight, seen)
  const shown = items.slice(first * columns, end * columns)
  // While it is only scrolled, `row` stays the same: rows that were drawn before are not compared again.
  const before = useRef<Drawn<T>>({ row, columns, rows: new Map() })
  const isSame = before.current.row === row && before.current.columns === columns
  const rows = new Map(
    shown.map((item, i) => {
      const drawn = isSame ? before.current.rows.get(item) : undefined
      return [item, drawn ?? listRow(item, first * columns + i)] as const
    }),
  )
  before.current = { row, columns, rows }
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
        {[...rows.values()]}
      </ul>
    </div>
  )
}
