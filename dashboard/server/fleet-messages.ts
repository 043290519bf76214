/** Server-sent events with the cards of the fleet (HTML standard, 9.2). Each has one FleetUpdate. */
import { setImmediate } from 'node:timers/promises'
import type { CardKind, UsageRow, ViewRights } from '../../api/dashboard/dashboard-messages.ts'
import type { CardChange } from './card-table.ts'
import type { FleetCards } from './fleet-cards.ts'
import type { FleetViewer } from './fleet-viewer.ts'
import { isVisible } from './view-rights.ts'

/** In the order in which a page needs them. */
export const cardKinds: readonly CardKind[] = ['nodes', 'workloads', 'requests', 'pods', 'events']
const cardsAtOnce = 250

/** The changes that may be seen, as one event; undefined: there are none. */
export function changesText(
  changes: readonly { readonly kind: CardKind; readonly found: readonly CardChange[] }[],
  used: { readonly [node: string]: UsageRow },
  rights: ViewRights,
): Buffer | undefined {
  const parts = changes.flatMap(({ kind, found }) => {
    const seen = found.filter(({ namespace }) => isVisible(rights, kind, namespace))
    if (seen.length === 0) return []
    const put = seen.flatMap(({ text }) => text ?? [])
    const gone = seen.flatMap(({ key, text }) => (text === undefined ? JSON.stringify(key) : []))
    return `"${kind}":{"put":[${put.join(',')}],"gone":[${gone.join(',')}]}`
  })
  if (rights.usage && Object.keys(used).length > 0) parts.push(`"usage":${JSON.stringify(used)}`)
  return parts.length === 0 ? undefined : event(`{${parts.join(',')}}`)
}

/**
 * All cards that may be seen, some hundred in one message, with a turn for other requests between two. None further when the page is
 * to begin again: one that reads slowly would otherwise receive cards that it may no longer see.
 */
export async function* allCards(
  { tables }: FleetCards,
  viewer: Pick<FleetViewer, 'rights' | 'needsReset' | 'ended'>,
  used: ReadonlyMap<string, UsageRow>,
): AsyncIterable<Uint8Array> {
  const { rights } = viewer
  for (const kind of cardKinds) {
    const visible = [...tables[kind].all()].filter(({ namespace }) => isVisible(rights, kind, namespace))
    for (let at = 0; at < visible.length; at += cardsAtOnce) {
      const some = visible.slice(at, at + cardsAtOnce)
      yield event(`{"${kind}":{"put":[${some.map(({ text }) => text).join(',')}]}}`)
      if (some.length === cardsAtOnce) await setImmediate()
      if (viewer.needsReset || viewer.ended) return
    }
    if (viewer.needsReset || viewer.ended) return
  }
  yield message({ complete: true, ...(rights.usage && { usage: Object.fromEntries(used) }) })
}

/** How long a browser waits before it connects again, in milliseconds. */
export const retryLine = Buffer.from('retry: 1000\n\n')

/** A comment, so that proxies keep a quiet connection. */
export const keepAlive = Buffer.from(': \n\n')

/** An update as an event. */
export function message(update: object): Buffer {
  return event(JSON.stringify(update))
}

/** JSON has no line breaks. */
function event(json: string): Buffer {
  return Buffer.from(`data: ${json}\n\n`)
}
