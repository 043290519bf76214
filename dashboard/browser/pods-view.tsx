/** All pods: phase, restarts, node, age, and why one waits. */
import type { PodCard } from '../../api/dashboard/dashboard-messages.ts'
import { compareNames } from '../../api/dashboard/node-view.ts'
import { podLevel, shownPods } from '../../api/dashboard/pod-view.ts'
import { counted, duration } from '../../api/dashboard/view-words.ts'
import { hrefOf, type Place } from '../model/places.ts'
import { useFleet, useNow } from './fleet-stream.ts'
import { VirtualList } from './virtual-list.tsx'

type ListPlace = Extract<Place, { readonly search: string }>

export function PodsView({ place }: { readonly place: ListPlace }) {
  const { fleet } = useFleet()
  const all = [...fleet.pods.values()]
  const shown = shownPods(all, place.search, place.filters)
  const waiting = all.filter((pod) => podLevel(pod) !== 'good').length
  if (fleet.rights?.pods === false) return <p class="empty">You may not list the pods of any namespace.</p>
  return (
    <>
      <div class="lead">
        <h1>
          {counted(all.length, 'pod')}
          <span class="verdict">
            {waiting > 0 ? (
              <a class="warn" href="#/pods?state=waiting">
                {waiting} not ready
              </a>
            ) : (
              fleet.isComplete && all.length > 0 && <span class="good">all well</span>
            )}
          </span>
        </h1>
      </div>
      <PodFilters place={place} pods={all} />
      <PodList pods={shown} />
      {fleet.isComplete && shown.length === 0 && <p class="empty">No pod matches.</p>}
    </>
  )
}

function PodFilters({ place, pods }: { readonly place: ListPlace; readonly pods: readonly PodCard[] }) {
  const namespaces = [...new Set(pods.map(({ namespace }) => namespace))].sort(compareNames)
  const to = (filters: { readonly [name: string]: string }) =>
    hrefOf({ ...place, filters: { ...place.filters, ...filters } })
  const state = place.filters['state'] ?? ''
  return (
    <div class="filters">
      <nav aria-label="State">
        <a href={to({ state: '' })} aria-current={state === ''}>
          All
        </a>
        <a href={to({ state: 'waiting' })} aria-current={state === 'waiting'}>
          Not ready
        </a>
      </nav>
      <label>
        Namespace{' '}
        <select
          value={place.filters['namespace'] ?? ''}
          onChange={({ currentTarget }) => {
            location.hash = to({ namespace: currentTarget.value })
          }}
        >
          <option value="">All</option>
          {namespaces.map((namespace) => (
            <option key={namespace} value={namespace}>
              {namespace}
            </option>
          ))}
        </select>
      </label>
    </div>
  )
}

/** Rows of pods, as the list and the page of a machine show them. */
export function PodList({ pods }: { readonly pods: readonly PodCard[] }) {
  const now = useNow()
  return (
    <VirtualList
      label="Pods"
      items={pods}
      keyOf={({ namespace, name }) => `${namespace}/${name}`}
      rowHeight={60}
      row={(pod) => <PodRow pod={pod} now={now} />}
    />
  )
}

function PodRow({ pod, now }: { readonly pod: PodCard; readonly now: number }) {
  const { namespace, name, node, status, ready, restarts = 0, created, why } = pod
  return (
    <a class={`row ${podLevel(pod)}`} href={hrefOf({ view: 'pod', namespace, name })}>
      <span class="dot" aria-hidden="true" />
      <span class="main">
        <strong>{name}</strong> <span class="muted">{namespace}</span>
        {why !== undefined && <span class="why">{why}</span>}
      </span>
      <span class="cell-status">
        {status} <span class="muted">{ready}</span>
      </span>
      <span class="cell-node">{node ?? 'no node yet'}</span>
      <span class="cell-small">{restarts > 0 ? `${restarts} restart${restarts === 1 ? '' : 's'}` : ''}</span>
      <span class="cell-small">{created === undefined ? '' : duration(now - created)}</span>
    </a>
  )
}
