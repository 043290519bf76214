/** All machines: what needs attention first, with why. */
import type { NodeCard, SessionAnswer } from '../../api/dashboard/dashboard-messages.ts'
import { compareNames, levelOf, meanUsage, shownNodes } from '../../api/dashboard/node-view.ts'
import { counted } from '../../api/dashboard/view-words.ts'
import { hrefOf, type Place } from '../model/places.ts'
import { AddMachineButton } from './add-machine.tsx'
import { FleetNotices } from './fleet-notices.tsx'
import { useFleet, useNow } from './fleet-stream.ts'
import { NodeTile } from './node-tile.tsx'
import { VirtualList } from './virtual-list.tsx'
import { WaitingMachines } from './waiting-machines.tsx'

type ListPlace = Extract<Place, { readonly search: string }>

export function FleetView({ place, session }: { readonly place: ListPlace; readonly session: SessionAnswer }) {
  const { fleet } = useFleet()
  const now = useNow()
  const all = [...fleet.nodes.values()]
  const { state, zone } = place.filters
  const shown = shownNodes(all, place.search, { ...(state && { state }), ...(zone && { zone }) })
  if (fleet.rights?.nodes === false) return <p class="empty">You may not list the machines of this fleet.</p>
  return (
    <>
      <div class="lead">
        <Headline nodes={all} isComplete={fleet.isComplete} />
        <Means />
        <AddMachineButton session={session} />
      </div>
      <WaitingMachines />
      <FleetNotices />
      {all.length > 0 && <Filters place={place} nodes={all} />}
      {fleet.isComplete && all.length > 0 && shown.length === 0 && (
        <p class="empty">
          No machine matches. <a href="#/fleet">Show all</a>
        </p>
      )}
      <VirtualList
        label="Machines"
        items={shown}
        keyOf={({ name }) => name}
        rowHeight={216}
        columnWidth={290}
        row={(node) => <NodeTile node={node} usage={fleet.usage.get(node.name)} now={now} />}
      />
    </>
  )
}

/** The state of the whole fleet in one line. */
function Headline({ nodes, isComplete }: { readonly nodes: readonly NodeCard[]; readonly isComplete: boolean }) {
  if (!isComplete && nodes.length === 0) return <h1>Loading…</h1>
  if (nodes.length === 0) return <h1>No machine has joined yet</h1>
  const bad = nodes.filter((node) => levelOf(node) === 'bad').length
  const warn = nodes.filter((node) => levelOf(node) === 'warn').length
  const parts = [
    bad > 0 && (
      <a key="bad" class="bad" href="#/fleet?state=notready">
        {bad} not ready
      </a>
    ),
    warn > 0 && (
      <a key="warn" class="warn" href="#/fleet?state=attention">
        {warn} {warn === 1 ? 'needs' : 'need'} attention
      </a>
    ),
  ].filter((part) => part !== false)
  return (
    <h1>
      {counted(nodes.length, 'machine')}
      <span class="verdict">{parts.length === 0 ? <span class="good">all well</span> : parts}</span>
    </h1>
  )
}

function Means() {
  const { fleet } = useFleet()
  const rows = [...fleet.usage.values()]
  const [cpu, memory] = [meanUsage(rows, 0), meanUsage(rows, 1)]
  const hottest = Math.max(...rows.flatMap((row) => row[2] ?? []))
  if (cpu === undefined && memory === undefined) return null
  return (
    <dl class="means">
      {cpu !== undefined && <Figure name="CPU" value={`${cpu} %`} />}
      {memory !== undefined && <Figure name="Memory" value={`${memory} %`} />}
      {Number.isFinite(hottest) && <Figure name="Hottest" value={`${hottest} °C`} />}
    </dl>
  )
}

function Figure({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  )
}

const states = [
  ['', 'All'],
  ['notready', 'Not ready'],
  ['attention', 'Attention'],
  ['ready', 'Ready'],
  ['cordoned', 'Cordoned'],
] as const

function Filters({ place, nodes }: { readonly place: ListPlace; readonly nodes: readonly NodeCard[] }) {
  const zones = [...new Set(nodes.map(({ zone = '' }) => zone))].sort(compareNames)
  const to = (filters: { readonly [name: string]: string }) =>
    hrefOf({ ...place, filters: { ...place.filters, ...filters } })
  return (
    <div class="filters">
      <nav aria-label="State">
        {states.map(([state, text]) => (
          <a key={state} href={to({ state })} aria-current={(place.filters['state'] ?? '') === state}>
            {text}
          </a>
        ))}
      </nav>
      {zones.length > 1 && (
        <label>
          Zone{' '}
          <select
            value={place.filters['zone'] ?? ''}
            onChange={({ currentTarget }) => {
              location.hash = to({ zone: currentTarget.value })
            }}
          >
            <option value="">All</option>
            {zones
              .filter((zone) => zone !== '')
              .map((zone) => (
                <option key={zone} value={zone}>
                  {zone}
                </option>
              ))}
          </select>
        </label>
      )}
    </div>
  )
}
