/** State and size of a terminal → the lines of `bramble-controller top`. */
import { levelOf, meanUsage, type UrgencyLevel } from '../../../api/dashboard/node-view.ts'
import { counted } from '../../../api/dashboard/view-words.ts'
import { cellText, fitted, widthOf, withoutFirst } from './cell-text.ts'
import { type Pane, type PaneCell, type PaneRow, panesOf } from './top-panes.ts'
import type { Extent, TopState } from './top-state.ts'

export type Size = { readonly columns: number; readonly rows: number }
export type Style = UrgencyLevel | 'strong' | 'faint'
export type Span = { readonly text: string; readonly style?: Style }
/** No longer than the terminal is wide. */
export type Line = readonly Span[]

export type Screen = {
  readonly lines: readonly Line[]
  /** Extent of the pane that keys scroll. */
  readonly extent: Extent
}

/** The meaning of a colour stands in front of each row as well. */
const marks: { readonly [L in UrgencyLevel]: string } = { bad: '!!', warn: '! ', idle: '- ', good: '  ' }

/** A title and a head. */
const headLines = 2
const leastColumns = 20
const leastLastColumn = 24

/** `now`: milliseconds since 1970. */
export function topScreen(state: TopState, { columns, rows }: Size, now: number): Screen {
  const panes = panesOf(state.fleet, state.filter, Math.floor(now / 1000))
  const width = Math.max(columns, leastColumns)
  const heights = paneHeights(panes, state.pane, rows - 2)
  const body = panes.flatMap((pane, i) => paneLines(pane, state, width, heights[i] ?? 0))
  const filling = Array.from({ length: Math.max(0, rows - 2 - body.length) }, (): Line => [])
  const at = panes.findIndex(({ name }) => name === state.pane)
  const lines = [headLine(state, now), ...body, ...filling, footLine(state)]
  return {
    lines: lines.slice(0, Math.max(1, rows)).map((line) => cutLine(line, columns)),
    extent: { rows: panes[at]?.rows.length ?? 0, height: Math.max(1, (heights[at] ?? 0) - headLines) },
  }
}

/** The focused pane gets two lines for each one of the others, until none wants more. In a low terminal it stands alone. */
function paneHeights(panes: readonly Pane[], focus: Pane['name'], lines: number): readonly number[] {
  const wanted = panes.map(({ rows }) => headLines + Math.max(1, rows.length))
  const isAlone = lines < panes.length * (headLines + 1)
  const heights = panes.map(({ name }) => (isAlone ? (name === focus ? lines : 0) : headLines + 1))
  let left = isAlone ? 0 : lines - heights.reduce((sum, height) => sum + height, 0)
  while (left > 0) {
    const before = left
    for (const [i, pane] of panes.entries()) {
      const more = Math.min(left, pane.name === focus ? 2 : 1, (wanted[i] ?? 0) - (heights[i] ?? 0))
      if (more <= 0) continue
      heights[i] = (heights[i] ?? 0) + more
      left -= more
    }
    if (left === before) break
  }
  return heights
}

function paneLines(pane: Pane, state: TopState, width: number, height: number): readonly Line[] {
  if (height <= 0) return []
  const room = Math.max(0, height - headLines)
  const first = Math.max(0, Math.min(state.first[pane.name], pane.rows.length - room))
  const shown = pane.rows.slice(first, first + room)
  const columns = columnsThatFit(pane, width)
  const [head, ...lines] = tableLines(pane, columns, shown, { width, shift: state.shift })
  const title = titleLine(pane, state, { first, shown: shown.length })
  const body = pane.rows.length === 0 ? [[{ text: `   ${pane.empty}`, style: 'faint' } as const]] : lines
  return [title, head ?? [], ...body].slice(0, height)
}

function titleLine(
  pane: Pane,
  state: TopState,
  { first, shown }: { readonly first: number; readonly shown: number },
): Line {
  const { length } = pane.rows
  const isFocused = pane.name === state.pane
  const part = shown < length ? `, rows ${first + 1}-${first + shown}` : ''
  const filter = state.filter === '' ? '' : `, filter: ${state.filter}`
  const title = `${isFocused ? '>' : ' '} ${pane.title} (${length}${part}${filter})`
  return [{ text: title, ...(isFocused && { style: 'strong' as const }) }]
}

/** The widths of the columns that fit, by their place; the last column takes what is left. */
function columnsThatFit({ columns, rows }: Pane, width: number): ReadonlyMap<number, number> {
  const widths = new Map(
    columns.slice(0, -1).map(({ title, most }, at) => {
      const widest = rows.reduce((most, { cells }) => Math.max(most, widthOf(cells[at]?.text ?? '')), 0)
      return [at, widest === 0 ? 0 : Math.min(most, Math.max(title.length, widest))]
    }),
  )
  for (const [at, width] of widths) if (width === 0) widths.delete(at)
  const taken = () => [...widths.values()].reduce((sum, one) => sum + one + 1, 3)
  const optional = columns
    .map((column, at) => ({ at, order: column.optional }))
    .filter(({ order }) => order !== undefined)
    .sort((a, b) => (b.order ?? 0) - (a.order ?? 0))
  for (const { at } of optional) {
    if (width - taken() >= leastLastColumn) break
    widths.delete(at)
  }
  return widths
}

function tableLines(
  { columns }: Pane,
  widths: ReadonlyMap<number, number>,
  rows: readonly PaneRow[],
  { width, shift }: { readonly width: number; readonly shift: number },
): readonly Line[] {
  const last = columns.length - 1
  const room = Math.max(0, width - [...widths.values()].reduce((sum, one) => sum + one + 1, 3))
  const lineOf = (cellAt: (at: number) => PaneCell | undefined): Line =>
    columns.flatMap(({ isRight }, at): Span[] => {
      const { text = '', level } = cellAt(at) ?? {}
      const columnWidth = at === last ? room : widths.get(at)
      if (columnWidth === undefined) return []
      const shown = at === last && shift > 0 ? withoutFirst(text, shift) : text
      return [
        { text: `${fitted(shown, columnWidth, isRight)}${at === last ? '' : ' '}`, ...(level && { style: level }) },
      ]
    })
  const head = lineOf((at) => ({ text: columns[at]?.title ?? '' })).map(({ text }): Span => ({ text, style: 'faint' }))
  return [
    [{ text: '   ' }, ...head],
    ...rows.map(({ level, cells }): Line => [{ text: `${marks[level]} `, style: level }, ...lineOf((at) => cells[at])]),
  ]
}

function headLine(state: TopState, now: number): Line {
  const { server, link } = state
  const clock: Span = { text: ` ${new Date(now).toISOString().slice(11, 19)} UTC` }
  const live: Span =
    link.is === 'connected'
      ? { text: ' live' }
      : link.is === 'connecting'
        ? { text: ' connecting…' }
        : { text: ` NOT CONNECTED, trying again: ${cellText(link.why)}`, style: 'bad' }
  const spans: Line = [{ text: `Bramble ${server}`, style: 'strong' }, { text: '  ' }, ...fleetSpans(state)]
  return link.is === 'lost' ? [live, clock, { text: '  ' }, ...spans] : [...spans, { text: '  ' }, live, clock]
}

function fleetSpans({ fleet }: TopState): readonly Span[] {
  if (!fleet.isComplete && fleet.nodes.size === 0) return []
  const levels = [...fleet.nodes.values()].map(levelOf)
  const count = (level: UrgencyLevel) => levels.filter((one) => one === level).length
  const [bad, warn] = [count('bad'), count('warn')]
  const rows = [...fleet.usage.values()]
  const [cpu, memory] = [meanUsage(rows, 0), meanUsage(rows, 1)]
  const celsius = rows.reduce((most, row) => Math.max(most, row[2] ?? most), Number.NEGATIVE_INFINITY)
  const figures = [
    cpu === undefined ? [] : `CPU ${cpu} %`,
    memory === undefined ? [] : `memory ${memory} %`,
    Number.isFinite(celsius) ? `hottest ${celsius} °C` : [],
    fleet.requests.size === 0 ? [] : `${counted(fleet.requests.size, 'machine')} to approve`,
  ].flat()
  return [
    { text: counted(fleet.nodes.size, 'machine') },
    ...(bad > 0 ? [{ text: `, ${bad} not ready`, style: 'bad' } as const] : []),
    ...(warn > 0 ? [{ text: `, ${warn} ${warn === 1 ? 'needs' : 'need'} attention`, style: 'warn' } as const] : []),
    ...(bad + warn === 0 && fleet.nodes.size > 0 ? [{ text: ', all well', style: 'good' } as const] : []),
    ...figures.map((text): Span => ({ text: `  ${text}` })),
  ]
}

function footLine({ isTyping, filter }: TopState): Line {
  if (isTyping)
    return [
      { text: `/${filter}_`, style: 'strong' },
      { text: '  Enter: keep  Esc: clear', style: 'faint' },
    ]
  const keys = 'q quit  Tab next list  ↑↓ PgUp PgDn scroll  ←→ shift  / filter'
  return [{ text: filter === '' ? keys : `${keys}  Esc clear the filter`, style: 'faint' }]
}

function cutLine(line: Line, columns: number): Line {
  const cut: Span[] = []
  let left = columns
  for (const span of line) {
    if (left <= 0) break
    const width = widthOf(span.text)
    cut.push(width <= left ? span : { ...span, text: fitted(span.text, left) })
    left -= width
  }
  return cut
}
