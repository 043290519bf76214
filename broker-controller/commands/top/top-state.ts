/** What `bramble-controller top` shows, and what a key makes of it. */
import { emptyFleet, type FleetState } from '../../../api/dashboard/fleet-state.ts'
import { cellText } from './cell-text.ts'
import { type PaneName, paneNames } from './top-panes.ts'

export type TopLink =
  | { readonly is: 'connecting' }
  | { readonly is: 'connected' }
  | { readonly is: 'lost'; readonly why: string }

export type TopState = {
  readonly server: string
  readonly fleet: FleetState
  readonly link: TopLink
  /** The pane that keys scroll. */
  readonly pane: PaneName
  /** The first row of each pane that is drawn. */
  readonly first: { readonly [P in PaneName]: number }
  /** Columns by which the last cells are moved to the left. */
  readonly shift: number
  readonly filter: string
  /** Keys go to the filter. */
  readonly isTyping: boolean
}

export type Key = { readonly key: 'text'; readonly text: string } | { readonly key: NamedKey }
export type NamedKey =
  | 'up'
  | 'down'
  | 'left'
  | 'right'
  | 'page-up'
  | 'page-down'
  | 'home'
  | 'end'
  | 'tab'
  | 'back-tab'
  | 'enter'
  | 'escape'
  | 'backspace'
  | 'interrupt'
  | 'suspend'
  | 'redraw'

/** Rows of the pane that keys scroll, and how many of them fit. */
export type Extent = { readonly rows: number; readonly height: number }

const longestFilter = 100
const shiftBy = 20
const mostShift = 2_000

export function firstTopState(server: string): TopState {
  return {
    server: cellText(server),
    fleet: emptyFleet,
    link: { is: 'connecting' },
    pane: 'machines',
    first: { machines: 0, pods: 0, events: 0 },
    shift: 0,
    filter: '',
    isTyping: false,
  }
}

/** 'quit': the command is to end. */
export function afterKey(state: TopState, key: Key, extent: Extent): TopState | 'quit' {
  if (key.key === 'interrupt') return 'quit'
  if (state.isTyping) return whileTyping(state, key)
  if (key.key === 'text')
    return [...key.text].reduce<TopState | 'quit'>((now, letter) => afterLetter(now, letter, extent), state)
  switch (key.key) {
    case 'up':
      return scrolled(state, -1, extent)
    case 'down':
      return scrolled(state, 1, extent)
    case 'page-up':
      return scrolled(state, -extent.height, extent)
    case 'page-down':
      return scrolled(state, extent.height, extent)
    case 'home':
      return scrolled(state, Number.NEGATIVE_INFINITY, extent)
    case 'end':
      return scrolled(state, Number.POSITIVE_INFINITY, extent)
    case 'left':
      return { ...state, shift: Math.max(0, state.shift - shiftBy) }
    case 'right':
      return { ...state, shift: Math.min(mostShift, state.shift + shiftBy) }
    case 'tab':
      return turned(state, 1)
    case 'back-tab':
      return turned(state, -1)
    case 'escape':
      return filtered(state, '')
    default:
      return state
  }
}

function afterLetter(state: TopState | 'quit', letter: string, extent: Extent): TopState | 'quit' {
  if (state === 'quit') return state
  if (state.isTyping) return whileTyping(state, { key: 'text', text: letter })
  switch (letter) {
    case 'q':
      return 'quit'
    case '/':
      return { ...state, isTyping: true }
    case 'k':
      return scrolled(state, -1, extent)
    case 'j':
      return scrolled(state, 1, extent)
    case ' ':
      return scrolled(state, extent.height, extent)
    case 'g':
      return scrolled(state, Number.NEGATIVE_INFINITY, extent)
    case 'G':
      return scrolled(state, Number.POSITIVE_INFINITY, extent)
    case 'h':
      return afterKey(state, { key: 'left' }, extent)
    case 'l':
      return afterKey(state, { key: 'right' }, extent)
    default:
      return state
  }
}

function whileTyping(state: TopState, key: Key): TopState {
  switch (key.key) {
    case 'text':
      return filtered(state, cellText(state.filter + key.text).slice(0, longestFilter))
    case 'backspace':
      return filtered(state, [...state.filter].slice(0, -1).join(''))
    case 'enter':
      return { ...state, isTyping: false }
    case 'escape':
      return { ...filtered(state, ''), isTyping: false }
    default:
      return state
  }
}

/** Another filter has other rows. */
function filtered(state: TopState, filter: string): TopState {
  return { ...state, filter, first: { machines: 0, pods: 0, events: 0 } }
}

function scrolled(state: TopState, by: number, { rows, height }: Extent): TopState {
  const last = Math.max(0, rows - height)
  const next = Math.max(0, Math.min(last, Math.min(last, state.first[state.pane]) + by))
  return { ...state, first: { ...state.first, [state.pane]: next } }
}

function turned(state: TopState, by: 1 | -1): TopState {
  const at = paneNames.indexOf(state.pane)
  return { ...state, pane: paneNames[(at + by + paneNames.length) % paneNames.length] ?? 'machines' }
}
