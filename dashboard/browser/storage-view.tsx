/** Pools, claims with their volumes, and what is in the trash. */

import { type VolumeProgress, volumeProgress } from '../../api/backups/volume-progress.ts'
import { counted, duration } from '../../api/dashboard/view-words.ts'
import type { FleetPool, FleetTrash, FleetVolume, FleetVolumes } from '../../api/storage/fleet-volumes.ts'
import { byteText } from '../../api/text/byte-text.ts'
import { hrefOf, type Place } from '../model/places.ts'
import { type Judged, judgedPool, sortedVolumes } from '../model/volume-view.ts'
import { useNow } from './fleet-stream.ts'
import { useLoaded } from './hooks.ts'
import { VirtualList } from './virtual-list.tsx'

/** Nodes report sizes once a minute at most. */
const everySeconds = 10

export function StorageView({ place }: { readonly place: Extract<Place, { readonly search: string }> }) {
  const now = useNow()
  const { value, problem } = useLoaded<FleetVolumes>('/fleet/volumes', Math.floor(now / everySeconds))
  if (value === undefined) return <p class="empty">{problem ?? 'Loading…'}</p>
  const { pools, volumes, trash } = value
  const shown = sortedVolumes(volumes, pools, place.search)
  return (
    <>
      <div class="lead">
        <h1>
          {counted(volumes.length, 'volume')}, {counted(pools.length, 'pool')}
        </h1>
      </div>
      {problem !== undefined && <p class="notice bad">{problem}</p>}
      {pools.length > 0 && <h2>Pools</h2>}
      <VirtualList
        label="Pools"
        items={pools.map(judgedPool)}
        keyOf={({ row }) => row.id}
        rowHeight={60}
        row={(pool) => <PoolRow pool={pool} />}
      />
      {shown.length > 0 && <h2>Volumes</h2>}
      <VirtualList
        label="Volumes"
        items={shown}
        keyOf={({ row }) => `${row.claim ?? ''} ${row.volume ?? ''}`}
        rowHeight={60}
        row={(volume) => <VolumeRow volume={volume} />}
      />
      {shown.length === 0 && <p class="empty">No claim{place.search === '' ? ' exists' : ' matches'}.</p>}
      {trash.length > 0 && (
        <>
          <h2>Trash</h2>
          <p class="muted">
            <code>bramble-controller volumes undelete</code> gives data back, with the claim or the UID.
          </p>
        </>
      )}
      <VirtualList
        label="Trash"
        items={trash}
        keyOf={({ uid }) => uid}
        rowHeight={60}
        row={(entry) => <TrashRow entry={entry} />}
      />
    </>
  )
}

function Machine({ node }: { readonly node: string | undefined }) {
  return node === undefined ? null : <a href={hrefOf({ view: 'node', name: node })}>{node}</a>
}

function PoolRow({ pool: { row, level, why } }: { readonly pool: Judged<FleetPool> }) {
  const { id, node, path, capacityBytes, availableBytes, inTrash = 0, volumes } = row
  const isMeasured = capacityBytes !== undefined && availableBytes !== undefined
  return (
    <div class={`row stored ${level}`}>
      <span class="dot" aria-hidden="true" />
      <span class="main">
        <strong>{path ?? id}</strong> <span class="muted">{counted(volumes, 'volume')}</span>
        {inTrash > 0 && <span class="muted">, {inTrash} in the trash</span>}
        {why !== undefined && <span class="why">{why}</span>}
      </span>
      <span class="cell-status">
        {isMeasured && `${byteText(availableBytes, Math.floor)} of ${byteText(capacityBytes)} free`}
      </span>
      <span class="cell-node">
        <Machine node={node} />
      </span>
    </div>
  )
}

function VolumeRow({ volume: { row, level, why } }: { readonly volume: Judged<FleetVolume> }) {
  const { claim, volume, node, requestedBytes, usedBytes, pods } = row
  const [namespace, name] = claim?.split('/') ?? []
  const progress = volumeProgress(row)
  return (
    <div class={`row stored ${level}`}>
      <span class="dot" aria-hidden="true" />
      <span class="main">
        <strong>{name ?? volume}</strong> <span class="muted">{namespace && `in ${namespace}`}</span>
        {pods.length > 0 && <span class="muted"> used by {pods.slice(0, 3).join(', ')}</span>}
        {progress !== undefined ? <Progress of={progress} /> : why !== undefined && <span class="why">{why}</span>}
      </span>
      <span class="cell-status">
        {usedBytes === undefined ? byteText(requestedBytes) : `${byteText(usedBytes)} of ${byteText(requestedBytes)}`}
      </span>
      <span class="cell-node">
        <Machine node={node} />
      </span>
    </div>
  )
}

/** Sizes are those of the last load: the page loads them every few seconds. */
function Progress({ of: { text, part } }: { readonly of: VolumeProgress }) {
  return (
    <span class="why doing">
      {part !== undefined && <progress value={part} aria-label={text} />}
      {text}
    </span>
  )
}

function TrashRow({ entry }: { readonly entry: FleetTrash }) {
  const { claim, uid, node, usedBytes, leftSeconds } = entry
  return (
    <div class="row stored idle">
      <span class="dot" aria-hidden="true" />
      <span class="main">
        <strong>{claim ?? uid}</strong> <span class="muted">{claim !== undefined && uid}</span>
      </span>
      <span class="cell-status">
        {usedBytes !== undefined && `${byteText(usedBytes)}, `}kept for at least {duration(leftSeconds)}
      </span>
      <span class="cell-node">
        <Machine node={node} />
      </span>
    </div>
  )
}
