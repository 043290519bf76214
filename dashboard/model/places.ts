/** What the page shows, as it stands in the address behind `#`: it can be kept, sent and gone back to. */
import { nodeHref } from '../../api/dashboard/node-href.ts'

export const viewNames = ['fleet', 'map', 'pods', 'workloads', 'storage', 'events'] as const
export type ViewName = (typeof viewNames)[number]

export type Place =
  | {
      readonly view: ViewName
      /** What is searched for; '': everything. */
      readonly search: string
      /** By name, such as `zone` or `state`. */
      readonly filters: { readonly [name: string]: string }
    }
  | { readonly view: 'node'; readonly name: string }
  | { readonly view: 'pod'; readonly namespace: string; readonly name: string }
  | { readonly view: 'logins' }

/** The place of an address; the fleet where it names none. */
export function placeOf(hash: string): Place {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?')
  const [view, first, second] = path.split('/').map(decoded)
  if (view === 'node' && first) return { view, name: first }
  if (view === 'pod' && first && second) return { view, namespace: first, name: second }
  if (view === 'logins') return { view }
  const { q: search = '', ...filters } = Object.fromEntries(new URLSearchParams(query))
  return { view: viewNames.find((name) => name === view) ?? 'fleet', search, filters }
}

/** The address of a place, for `href`. */
export function hrefOf(place: Place): string {
  switch (place.view) {
    case 'node':
      return nodeHref(place.name)
    case 'pod':
      return `#/pod/${encodeURIComponent(place.namespace)}/${encodeURIComponent(place.name)}`
    case 'logins':
      return '#/logins'
    default: {
      const { view, search, filters } = place
      const given = Object.entries({ q: search, ...filters }).filter(([, value]) => value !== '')
      return `#/${view}${given.length === 0 ? '' : `?${new URLSearchParams(given)}`}`
    }
  }
}

/** Another list with nothing searched. */
export function listPlace(view: ViewName, filters: { readonly [name: string]: string } = {}): Place {
  return { view, search: '', filters }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
