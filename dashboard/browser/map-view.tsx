/** The zones of the fleet, each machine in them as a small field, and the links to the controller. */
import type { NodeCard } from '../../api/dashboard/dashboard-messages.ts'
import { compareNames, concernOf, levelOf, shownNodes, stateWords } from '../../api/dashboard/node-view.ts'
import { counted } from '../../api/dashboard/view-words.ts'
import { lostLinks } from '../model/lost-links.ts'
import { hrefOf, type Place } from '../model/places.ts'
import { useFleet } from './fleet-stream.ts'

export function MapView({ place }: { readonly place: Extract<Place, { readonly search: string }> }) {
  const { fleet } = useFleet()
  const zones = new Map<string, NodeCard[]>()
  for (const node of shownNodes(fleet.nodes.values(), place.search, {})) {
    const zone = node.zone ?? ''
    zones.set(zone, [...(zones.get(zone) ?? []), node])
  }
  const sorted = [...zones].sort(([a], [b]) => compareNames(a, b))
  return (
    <>
      <div class="lead">
        <h1>
          Map <span class="verdict">{counted(zones.size, 'zone')}</span>
        </h1>
        <ul class="legend" aria-label="Colours">
          <li class="good">Ready</li>
          <li class="warn">Needs attention</li>
          <li class="bad">Not ready</li>
          <li class="idle">Cordoned or joining</li>
        </ul>
      </div>
      <div class="map">
        <p class="hub">Controller</p>
        <ul class="zones">
          {sorted.map(([zone, nodes]) => (
            <Zone key={zone} name={zone} nodes={nodes} />
          ))}
        </ul>
      </div>
      {zones.size === 0 && fleet.isComplete && <p class="empty">No machine matches.</p>}
    </>
  )
}

/** A zone with more machines takes the whole width. */
const largeZone = 60

function Zone({ name, nodes }: { readonly name: string; readonly nodes: readonly NodeCard[] }) {
  const lost = nodes.filter(({ state }) => state === 'lost').length
  const weak = nodes.filter(({ link }) => link === 'weak').length
  const link = lost === nodes.length ? 'bad' : lost + weak > 0 ? 'warn' : 'good'
  const words = [
    `${nodes.length - lost} of ${nodes.length} connected`,
    ...(weak > 0 ? [`${weak} with weak Wi-Fi`] : []),
  ].join(', ')
  return (
    <li class={`zone-box link-${link} ${nodes.length > largeZone ? 'large' : ''}`}>
      <h2>{name === '' ? 'No zone' : name}</h2>
      <p>{words}</p>
      {lostLinks(nodes).map(({ link, machines }) => (
        <p key={link} class="lost-link">
          Link {link} took down {counted(machines, 'machine')}
        </p>
      ))}
      <ul class="cells">
        {[...nodes]
          .sort((a, b) => compareNames(a.name, b.name))
          .map((node) => (
            <li key={node.name}>
              <a
                class={`cell ${levelOf(node)} ${node.link === 'weak' ? 'weak' : ''}`}
                href={hrefOf({ view: 'node', name: node.name })}
                title={[node.name, stateWords(node), concernOf(node)].filter((text) => text).join(' · ')}
              >
                <span>{node.name}</span>
              </a>
            </li>
          ))}
      </ul>
    </li>
  )
}
